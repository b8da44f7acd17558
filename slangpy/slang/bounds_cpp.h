// Goes in front of Slang's C++ output for backward calls. Slang keeps the state of each iteration of a loop in an array
// of the size that [MaxIters(n)] says, and neither checks nor ends a loop that takes more trips. Here such an access is
// noted, for the launch to report, and goes to the first element instead of beyond the array. (Nested loops of different
// lengths would be noted too, because Slang confuses their sizes: src/native/slang/rewrite/rules/nested_loops.cpp makes them fit.)

// Set by kernels, read by the device.
#if defined(_MSC_VER)
#include <atomic>
extern "C" __declspec(dllexport) std::atomic<int> _spy_overrun{0};
#define SPY_NOTE(flag) flag.store(1, std::memory_order_relaxed)
#else
extern "C" __attribute__((visibility("default"))) int _spy_overrun = 0;
#define SPY_NOTE(flag) __atomic_store_n(&flag, 1, __ATOMIC_RELAXED)
#endif

#undef SLANG_BOUND_CHECK_FIXED_ARRAY
#define SLANG_BOUND_CHECK_FIXED_ARRAY(index, count) \
    if (index >= (count)) \
    { \
        SPY_NOTE(_spy_overrun); \
        index = 0; \
    }
