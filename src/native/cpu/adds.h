#pragma once
// Additions of many threads to the same memory: each thread has a copy of its own where that is worth it, and where no
// other thread runs, they are plain. Else kernels compare and swap (slangpy/slang/prelude_cpp.h).
#include "../../slangpy/slang/adds_cpp.h"

#include "core/interrupt.h"
#include "cpu/api.h"
#include "cpu/thread_pool.h"
#include "device/device.h"

#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace spy::cpu {

/// Says how the calling thread adds, in pieces of a launch.
using SetAdds = void (*)(const SpyAdds* adds);
/// Null for a kernel that adds to no shared memory.
SetAdds find_set_adds(const Library& library);

/// Held by a launch that adds; of the process, because two devices may be given the same memory.
PoliteMutex& adding();

/// Copies of memory for launches to come; all zero.
class SpareCopies {
public:
    using Copy = std::unique_ptr<uint8_t[]>;
    Copy take(uint64_t size); ///< null without memory
    void give(Copy copy, uint64_t size);
    void clear() noexcept;

private:
    static constexpr uint64_t most_bytes = 64 << 20;
    struct Spare {
        Copy copy;
        uint64_t size;
    };
    std::mutex m_mutex;
    std::vector<Spare> m_spare;
    uint64_t m_bytes = 0;
};

/// The additions of one launch.
class SharedAdds final : public Sharing {
public:
    SharedAdds(SetAdds set, std::span<const AddedRange> ranges, ThreadPool& pool, SpareCopies& spare);
    bool begin(double rest) override;
    /// After the launch: what the copies hold goes where it belongs.
    void add_copies();

    /// While this lives, the thread that made it runs a piece of the launch.
    class Piece {
    public:
        explicit Piece(SharedAdds& adds) : m_set(adds.m_set) { m_set(adds.of_thread()); }
        ~Piece() { m_set(nullptr); }
        Piece(const Piece&) = delete;
        Piece& operator=(const Piece&) = delete;

    private:
        SetAdds m_set;
    };

private:
    struct Slot {
        SpyAdds adds{};
        std::vector<SpareCopies::Copy> copies; ///< by range
        bool is_made = false;
    };

    const SpyAdds* of_thread();
    bool make_copies(Slot& slot);
    template <typename Real>
    void add_copies_of(size_t range);

    const SetAdds m_set;
    const std::span<const AddedRange> m_ranges;
    ThreadPool& m_pool;
    SpareCopies& m_spare;
    const uint64_t m_number;
    bool m_is_shared = false, m_has_copies = false;
    std::vector<Slot> m_slots; ///< by thread, once it has come
    std::atomic<uint32_t> m_next{0};
};

} // namespace spy::cpu
