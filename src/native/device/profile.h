#pragma once
// What a device runs while somebody measures: each launch and each copy, between two timestamps of the device.
#include "device/command.h"

#include <mutex>

namespace spy {

/// What is measured, as users see it. Without a name it is nothing to measure.
struct Work {
    std::string name;
    std::vector<int64_t> shape; ///< of the call, else threads, else what is copied: bytes or texels
};
Work work_of(const LaunchDesc& desc);
Work work_of(const Command& command);

/// Nanoseconds of the clock that host devices write timestamps with.
uint64_t host_ticks();

/// Belongs to a backend's device. Measurements may overlap: each sees what was added after its start.
class Profiler {
public:
    struct Event {
        Work work;
        uint64_t begin = 0, end = 0; ///< ticks
    };
    struct Result {
        std::vector<Event> events; ///< what ran, in the order of submission
        uint64_t lost = 0;         ///< what there was no room to measure
    };
    /// Where the two timestamps of an event go: to `index` and the next. No pool: it is not measured.
    struct Place {
        ref<QueryPool> pool;
        uint32_t index = 0;
        size_t event = 0;
    };

    explicit Profiler(Device& device) : m_device(device) { }

    /// Another measurement: the number of the first event that belongs to it. Throws when there are no timestamps.
    size_t start();
    /// The end of one, whose work must be over when `read`; else what it measured is dropped.
    Result stop(size_t first, bool read);

    // For backends, which hold their lock.
    Place begin(Work work);
    void end(const Place& place);
    void note(Work work, uint64_t begin, uint64_t end); ///< where the host runs it
    size_t count();
    void drop_from(size_t first); ///< these were recorded, and never submitted

private:
    struct Record {
        Event event;
        ref<QueryPool> pool; ///< none: the ticks are known
        uint32_t index = 0;
        bool is_done = false;
    };
    static constexpr uint32_t pool_size = 1024;

    void add_pool();
    static void read(std::vector<Record>& records);

    Device& m_device;
    std::mutex m_mutex;               ///< taken after a backend's lock, and not held while one is taken
    size_t m_users = 0, m_origin = 0; ///< number of the first record
    uint64_t m_lost = 0;
    std::vector<Record> m_records;
    ref<QueryPool> m_pool; ///< the newest
    uint32_t m_used = 0;   ///< of its queries
};

/// Runs `run`; while somebody measures, between two timestamps, which `write` puts where the work goes.
template <typename What, typename Write, typename Run>
void timed(Device& device, const What& what, Write write, Run run)
{
    Profiler* const profiler = device.profiler();
    if (!profiler) [[likely]] {
        run();
        return;
    }
    const Profiler::Place place = profiler->begin(work_of(what));
    if (place.pool)
        write(command::WriteTimestamp{place.pool, place.index});
    run();
    if (!place.pool)
        return;
    write(command::WriteTimestamp{place.pool, place.index + 1});
    profiler->end(place);
}

} // namespace spy
