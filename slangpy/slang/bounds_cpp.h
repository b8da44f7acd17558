// Goes in front of Slang's C++ output for backward calls. Slang keeps the state of each iteration of a loop in an array
// of the size that [MaxIters(n)] says, and neither checks nor ends a loop that takes more trips. Here such an access is
// noted, for the launch to report, and goes to the first element instead of beyond the array. (Nested loops of different
// lengths would be noted too, because Slang confuses their sizes: src/native/slang/rewrite/loops.cpp makes them fit.)
#include <atomic>

#if defined(_MSC_VER)
extern "C" __declspec(dllexport) std::atomic<int> _spy_overrun{0};
#else
extern "C" __attribute__((visibility("default"))) std::atomic<int> _spy_overrun{0};
#endif

#undef SLANG_BOUND_CHECK_FIXED_ARRAY
#define SLANG_BOUND_CHECK_FIXED_ARRAY(index, count) \
    if (index >= (count)) \
    { \
        _spy_overrun.store(1, std::memory_order_relaxed); \
        index = 0; \
    }
