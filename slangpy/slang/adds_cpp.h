// How a thread of the CPU device adds to memory that other threads of its launch add to, too. Both sides include this:
// src/native/cpu, and the C++ code of kernels.
#pragma once

#include <stdint.h>

struct SpyAdds {
    struct Range {
        uintptr_t begin, size;
        intptr_t to_copy; ///< bytes from an address in the range to the same place of this thread's own copy
    };
    uint32_t count; ///< of ranges, at least 1
    Range ranges[4];
};

/// Instead of a distance: threads have no copies of an address.
#define SPY_NO_COPY INTPTR_MIN

// A kernel's thread_local would cost a call for each addition. Here one of the process has a fixed distance from the
// thread pointer, which kernels are told.
#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__)) && defined(__has_builtin)
#if __has_builtin(__builtin_thread_pointer)
#define SPY_ADDS_BY_OFFSET
#endif
#endif
