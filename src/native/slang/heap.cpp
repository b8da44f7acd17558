#include "slang/heap.h"

#include "core/align.h"

#include <algorithm>
#include <cstdlib> // defines __GLIBC__ where it is

#if defined(__GLIBC__) && defined(__linux__)
#include <cstdint>
#include <sys/mman.h>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#endif

namespace spy {

#if defined(__GLIBC__) && defined(__linux__)

namespace {

/// Less than what malloc asks the system for apart (128 KiB).
constexpr size_t piece = size_t(96) << 10;
constexpr uintptr_t page = 4096;
/// Whoever wants to change the memory of the process waits for one such part at most.
constexpr uintptr_t step = size_t(1) << 20;

using Ranges = std::vector<std::pair<uintptr_t, uintptr_t>>;

/// Ends where the system does not know how (before Linux 5.14).
void fill(const Ranges& ranges)
{
    for (auto [begin, end] : ranges) {
        end = end / page * page;
        for (begin = round_up(begin, page); begin < end; begin += step)
            if (madvise(reinterpret_cast<void*>(begin), std::min(step, end - begin), MADV_POPULATE_WRITE) != 0)
                return;
    }
}

} // namespace

// malloc takes memory for threads in areas of their own, which grow by single pages, each with a call of the system. So
// they are made to grow beforehand. The last piece of each area stays taken, lest malloc gives the area back.
void prepare_heap(size_t size)
{
    std::vector<uintptr_t> pieces;
    for (size_t taken = 0; taken < size; taken += piece)
        if (void* memory = std::malloc(piece))
            pieces.push_back(reinterpret_cast<uintptr_t>(memory));
    Ranges ranges;
    size_t first = 0;
    for (size_t i = 0; i < pieces.size(); ++i) {
        const bool is_last = i + 1 == pieces.size() || pieces[i + 1] - pieces[i] > 2 * piece;
        if (!is_last)
            continue;
        ranges.emplace_back(pieces[first], pieces[i] + piece);
        for (size_t j = first; j < i; ++j)
            std::free(reinterpret_cast<void*>(pieces[j]));
        first = i + 1;
    }
    try {
        std::thread(fill, std::move(ranges)).detach();
    } catch (const std::system_error&) { // no thread: pages come when they are used
    }
}

#else

void prepare_heap(size_t) { }

#endif

} // namespace spy
