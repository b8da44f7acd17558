#include "slang/heap.h"

#include <cstdlib> // defines __GLIBC__ where it is

#if defined(__GLIBC__) && defined(__linux__)
#include <cstdint>
#include <fstream>
#include <string>
#include <sys/mman.h>
#include <vector>
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif
#endif

namespace spy {

#if defined(__GLIBC__) && defined(__linux__)

namespace {

/// Less than what malloc asks the system for apart (128 KiB).
constexpr size_t piece = size_t(96) << 10;
constexpr uintptr_t large_page = size_t(2) << 20;

/// Whether the machine's owner wants large pages at all: MADV_COLLAPSE does not ask.
bool has_large_pages()
{
    std::ifstream file("/sys/kernel/mm/transparent_hugepage/enabled");
    std::string text;
    return std::getline(file, text) && text.find("[never]") == text.npos;
}

void use_large_pages(uintptr_t begin, uintptr_t end)
{
    begin = (begin + large_page - 1) / large_page * large_page;
    end = end / large_page * large_page;
    if (begin >= end)
        return;
    void* address = reinterpret_cast<void*>(begin);
    madvise(address, end - begin, MADV_HUGEPAGE);
    madvise(address, end - begin, MADV_COLLAPSE);
}

} // namespace

// malloc takes memory for threads in areas of their own, which grow by single pages, too small for large ones to fit.
// So they are made to grow beforehand. The last piece of each area stays taken, lest malloc gives the area back.
void prepare_heap(size_t size)
{
    if (!has_large_pages())
        return;
    std::vector<uintptr_t> pieces;
    for (size_t taken = 0; taken < size; taken += piece)
        if (void* memory = std::malloc(piece))
            pieces.push_back(reinterpret_cast<uintptr_t>(memory));
    size_t first = 0;
    for (size_t i = 0; i < pieces.size(); ++i) {
        const bool is_last = i + 1 == pieces.size() || pieces[i + 1] - pieces[i] > 2 * piece;
        if (!is_last)
            continue;
        use_large_pages(pieces[first], pieces[i] + piece);
        for (size_t j = first; j < i; ++j)
            std::free(reinterpret_cast<void*>(pieces[j]));
        first = i + 1;
    }
}

#else

void prepare_heap(size_t) { }

#endif

} // namespace spy
