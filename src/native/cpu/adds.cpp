#include "cpu/adds.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace spy::cpu {

namespace {

/// What a byte of a copy costs, most of it on the way from the processor that wrote it.
constexpr double ns_per_byte = 1.5;
constexpr uint64_t most_copied = 1ull << 30;
/// How much longer threads take that swap at each addition.
constexpr double swapping = 8;
/// What several threads must be ahead by.
constexpr double worth_sharing = 1.2;

std::atomic<uint64_t> launches{0};

struct Seen {
    uint64_t launch = 0;
    uint32_t slot = 0;
};
thread_local Seen seen;

#ifdef SPY_ADDS_BY_OFFSET
thread_local const SpyAdds* adds_here __attribute__((tls_model("initial-exec"))) = nullptr;
#endif

} // namespace

SetAdds find_set_adds(const Library& library)
{
    SetAdds set = nullptr;
#ifdef SPY_ADDS_BY_OFFSET
    if (void* symbol = library.symbol("_spy_set_adds_offset")) {
        void (*set_offset)(intptr_t) = nullptr;
        std::memcpy(&set_offset, &symbol, sizeof(symbol));
        set_offset(reinterpret_cast<const char*>(&adds_here) - static_cast<const char*>(__builtin_thread_pointer()));
        return [](const SpyAdds* adds) { adds_here = adds; };
    }
#endif
    if (void* symbol = library.symbol("_spy_set_adds"))
        std::memcpy(&set, &symbol, sizeof(symbol));
    return set;
}

PoliteMutex& adding()
{
    static PoliteMutex mutex;
    return mutex;
}

SpareCopies::Copy SpareCopies::take(uint64_t size)
{
    {
        std::lock_guard lock(m_mutex);
        auto fits = [size](const Spare& spare) { return spare.size >= size && spare.size <= 2 * size + 4096; };
        if (auto found = std::find_if(m_spare.begin(), m_spare.end(), fits); found != m_spare.end()) {
            Copy copy = std::move(found->copy);
            m_bytes -= found->size;
            m_spare.erase(found);
            return copy;
        }
    }
    return Copy(new (std::nothrow) uint8_t[size]());
}

void SpareCopies::give(Copy copy, uint64_t size)
{
    std::lock_guard lock(m_mutex);
    if (m_bytes + size > most_bytes)
        return;
    m_bytes += size;
    m_spare.push_back({std::move(copy), size});
}

void SpareCopies::clear() noexcept
{
    std::lock_guard lock(m_mutex);
    m_spare.clear();
    m_bytes = 0;
}

SharedAdds::SharedAdds(SetAdds set, std::span<const AddedRange> ranges, ThreadPool& pool, SpareCopies& spare)
    : m_set(set),
      m_ranges(ranges),
      m_pool(pool),
      m_spare(spare),
      m_number(++launches)
{
}

bool SharedAdds::begin(double rest)
{
    const unsigned threads = m_pool.thread_count();
    uint64_t bytes = 0;
    for (const AddedRange& range : m_ranges)
        bytes += range.size;
    if (bytes > 0) {
        const double swaps = rest * swapping / threads, copies = rest / threads + double(bytes) * ns_per_byte;
        m_has_copies = m_ranges.size() <= std::size(SpyAdds{}.ranges) && bytes * threads <= most_copied &&
            copies < swaps && copies * worth_sharing < rest;
        if (!m_has_copies && swaps * worth_sharing > rest)
            return false;
    }
    if (m_has_copies)
        m_slots.resize(threads);
    m_is_shared = true;
    return true;
}

/// How the calling thread adds: it alone, to copies, or (null) by swapping.
const SpyAdds* SharedAdds::of_thread()
{
    static constexpr SpyAdds alone{1, {{0, UINTPTR_MAX, 0}}};
    if (!m_is_shared)
        return &alone;
    if (!m_has_copies)
        return nullptr;
    if (seen.launch != m_number)
        seen = {m_number, m_next.fetch_add(1, std::memory_order_relaxed)};
    if (seen.slot >= m_slots.size())
        return nullptr;
    Slot& slot = m_slots[seen.slot];
    return slot.is_made || make_copies(slot) ? &slot.adds : nullptr;
}

bool SharedAdds::make_copies(Slot& slot)
{
    std::vector<SpareCopies::Copy> copies;
    for (const AddedRange& range : m_ranges) {
        copies.push_back(m_spare.take(range.size));
        if (!copies.back())
            return false;
        slot.adds.ranges[copies.size() - 1] = {uintptr_t(range.begin), uintptr_t(range.size),
                                               intptr_t(uintptr_t(copies.back().get()) - uintptr_t(range.begin))};
    }
    slot.adds.count = uint32_t(copies.size());
    slot.copies = std::move(copies);
    return slot.is_made = true;
}

/// Adds, and leaves zeros in the copies. What nobody added to is not touched: it may be another's.
template <typename Real>
void SharedAdds::add_copies_of(size_t index)
{
    constexpr uint64_t piece = 4096;
    const AddedRange& range = m_ranges[index];
    const uint64_t count = range.size / sizeof(Real);
    auto* to = reinterpret_cast<Real*>(range.begin);
    m_pool.run((count + piece - 1) / piece, [&](uint64_t begin, uint64_t end) {
        const uint64_t first = begin * piece, last = std::min(count, end * piece);
        for (const Slot& slot : m_slots) {
            if (!slot.is_made)
                continue;
            auto* from = reinterpret_cast<Real*>(slot.copies[index].get());
            for (uint64_t i = first; i < last; ++i)
                if (from[i] != 0) {
                    to[i] += from[i];
                    from[i] = 0;
                }
        }
    });
}

void SharedAdds::add_copies()
{
    if (!m_has_copies)
        return;
    for (size_t i = 0; i < m_ranges.size(); ++i)
        m_ranges[i].is_double ? add_copies_of<double>(i) : add_copies_of<float>(i);
    for (Slot& slot : m_slots)
        for (size_t i = 0; i < slot.copies.size(); ++i)
            m_spare.give(std::move(slot.copies[i]), m_ranges[i].size);
}

} // namespace spy::cpu
