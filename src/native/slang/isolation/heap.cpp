// Room in the heap, made ahead of what Slang fills as it starts.
#include "slang/isolation/heap.h"

#include "core/align.h"

#include <algorithm>
#include <cstdlib> // defines __GLIBC__ where it is

#if defined(__GLIBC__) && defined(__linux__)
#include <cstdint>
#include <sys/mman.h>
#include <system_error>
#include <thread>
#include <time.h>
#include <utility>
#include <vector>
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif
#endif

namespace spy {

#if defined(__GLIBC__) && defined(__linux__)

namespace {

/// Less than what malloc asks the system for apart (128 KiB).
constexpr size_t piece = size_t(96) << 10;
constexpr uintptr_t page = 4096;
/// A large page of most systems; and whoever wants to change the memory of the process waits for one such part at most.
constexpr uintptr_t step = size_t(2) << 20;

using Ranges = std::vector<std::pair<uintptr_t, uintptr_t>>;

bool advise(uintptr_t begin, uintptr_t end, int what)
{
    return madvise(reinterpret_cast<void*>(begin), end - begin, what) == 0;
}

/// Milliseconds that this thread has worked.
double worked()
{
    timespec time = {};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return double(time.tv_sec) * 1e3 + double(time.tv_nsec) * 1e-6;
}

/// Whether a large page is there now. One that takes longer than its small ones would is the last: the system had to
/// make room for it.
bool collapse(uintptr_t begin, uintptr_t end, bool& is_worth_it)
{
    const double start = worked();
    const bool done = advise(begin, end, MADV_COLLAPSE);
    is_worth_it = done && worked() - start < 1.0;
    return done;
}

/// Large pages are filled in a quarter of the time, and Slang, which follows pointers all over them, is faster in them.
/// malloc has already written to each, so the system has to move what is there (since Linux 6.1). Where it cannot, it
/// gives small ones; ends where it does not know how (before 5.14).
void fill(const Ranges& ranges)
{
    bool wants_large = true;
    for (const auto& [first, last] : ranges) {
        const uintptr_t end = last / page * page;
        for (uintptr_t begin = round_up(first, page), next = 0; begin < end; begin = next) {
            next = std::min(end, begin / step * step + step);
            const bool is_large = wants_large && next - begin == step && collapse(begin, next, wants_large);
            if (!is_large && !advise(begin, next, MADV_POPULATE_WRITE))
                return;
        }
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
