#pragma once
// The order of work, and what is freed when work is done.
//
// The device's own queue is the legacy default stream, which is also torch's default, so the usual call needs no event.
// All work of a device forms one order: m_tail is the stream that the newest work went to, and work for another stream
// first makes that stream wait for it. Memory is allocated and freed in the order of the own queue.
#include "cuda/context.h"

#include <atomic>
#include <deque>
#include <functional>

namespace spy {

class CudaArray;
class CudaMemory;

/// All but the questions at its end need the lock of the context.
class CudaQueue {
public:
    CudaQueue(CudaContext& context, CudaMemory& memory) : m_context(context), m_memory(memory) { }
    void open();
    /// Waits for all work, and runs and destroys what waited for it.
    void close() noexcept;

    /// Orders `stream` after all earlier work. False while the stream is recorded into a graph: nothing is ordered
    /// then.
    bool begin_work(CUstream stream)
    {
        if (stream == nullptr && m_tail == nullptr) [[likely]]
            return true;
        return begin_work_slow(stream);
    }
    void end_work(CUstream stream, bool tracked);
    /// begin_work() ... end_work(), also when a command in between fails.
    struct Work {
        Work(CudaQueue& owner, CUstream target) : queue(owner), stream(target), tracked(owner.begin_work(target)) { }
        ~Work() { queue.finish_work(stream, tracked); }
        Work(const Work&) = delete;
        CudaQueue& queue;
        CUstream stream;
        bool tracked;
    };
    /// The own queue, ordered after all earlier work; what the caller puts there counts as new work.
    CUstream own_queue()
    {
        begin_work(nullptr);
        m_sequence.fetch_add(1, std::memory_order_relaxed);
        return nullptr;
    }
    /// Waits on the host, where Ctrl-C gets through; the driver's own waits do not let it. CUDA_SUCCESS or a failure.
    CUresult wait_event(CUevent event);
    /// Waits for what has been put on `stream` so far, without the lock when that is given.
    void wait_stream(CUstream stream, CudaContext::Lock* lock);
    /// Runs `action` once all work up to now is done.
    void defer(std::function<void()> action) noexcept;
    /// Keeps what the work being submitted uses and nothing else holds until it counts as submitted.
    void retire(std::shared_ptr<CudaArray> array) { m_retired.push_back(std::move(array)); }
    /// Notes that all work so far can be asked about.
    void record_mark();
    /// Looks how far the device is, and frees what finished work has used.
    void poll();

    uint64_t newest_id() const { return m_sequence.load(std::memory_order_relaxed); }
    bool is_finished(uint64_t submit_id);
    bool wait(uint64_t submit_id, uint64_t timeout_ns);
    bool is_capturing(CUstream stream);
    void sync_to_stream(CUstream stream);
    void sync_stream_to(CUstream stream);

private:
    struct Mark {
        uint64_t sequence;
        CUevent event;
    };
    struct Garbage {
        uint64_t sequence;
        std::function<void()> action;
    };

    bool begin_work_slow(CUstream stream);
    void finish_work(CUstream stream, bool tracked) noexcept;
    CUevent take_event();

    CudaContext& m_context;
    CudaMemory& m_memory;
    CUstream m_tail = nullptr; ///< stream of the newest work
    CUevent m_own_event = nullptr, m_tail_event = nullptr;
    std::atomic<uint64_t> m_sequence{0}; ///< number of pieces of work so far
    uint64_t m_completed = 0;
    std::deque<Mark> m_marks;
    std::deque<Garbage> m_garbage;
    std::vector<std::shared_ptr<CudaArray>> m_retired;
    std::vector<CUevent> m_spare_events;
};

/// The stream that a handle names; null for the own queue.
CUstream cuda_stream_of(NativeHandle handle);

} // namespace spy
