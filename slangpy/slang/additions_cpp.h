// Atomic additions of kernels that run on the CPU, called by the text that atomics.slang emits. Stands in front of kernels that
// add, after Slang's prelude, which is then the same for all kernels.
#pragma once

// Additions whose result nobody asks for go to this thread's own copy, or are plain where no other thread runs.
#if defined(_MSC_VER)
#define SPY_EXPORT extern "C" __declspec(dllexport)
#else
#define SPY_EXPORT extern "C" __attribute__((visibility("default")))
#endif

#if defined(SPY_ADDS_BY_OFFSET)
static intptr_t _spy_adds_offset = 0;
SPY_EXPORT void _spy_set_adds_offset(intptr_t offset) { _spy_adds_offset = offset; }
inline const SpyAdds* _spy_adds()
{
    return *reinterpret_cast<const SpyAdds* const*>(static_cast<const char*>(__builtin_thread_pointer()) + _spy_adds_offset);
}
#else
static thread_local const SpyAdds* _spy_adds_here = nullptr;
SPY_EXPORT void _spy_set_adds(const SpyAdds* adds) { _spy_adds_here = adds; }
inline const SpyAdds* _spy_adds() { return _spy_adds_here; }
#endif

#if defined(__GNUC__)
__attribute__((noinline, cold))
#endif
static intptr_t _spy_other_copy(const SpyAdds* adds, uintptr_t at)
{
    for (uint32_t i = 1; i < adds->count; i++)
        if (at - adds->ranges[i].begin < adds->ranges[i].size)
            return adds->ranges[i].to_copy;
    return SPY_NO_COPY;
}

template<class Word, class Real>
inline void _spy_atomic_add(Real* to, Real v)
{
    if (const SpyAdds* adds = _spy_adds()) {
        const uintptr_t at = reinterpret_cast<uintptr_t>(to);
        const bool is_first = at - adds->ranges[0].begin < adds->ranges[0].size;
        const intptr_t to_copy = is_first ? adds->ranges[0].to_copy : _spy_other_copy(adds, at);
        if (is_first || to_copy != SPY_NO_COPY) {
            Real* own = reinterpret_cast<Real*>(at + uintptr_t(to_copy));
            *own = *own + v;
            return;
        }
    }
    spy_atomics::add<Word>(to, v);
}

inline void _spy_atomic_add_f32(float* to, float v) { _spy_atomic_add<uint32_t>(to, v); }
inline void _spy_atomic_add_f64(double* to, double v) { _spy_atomic_add<uint64_t>(to, v); }
template<class Half>
inline void _spy_atomic_add_f16(Half* to, Half v) { _spy_atomic_add<uint16_t>(to, v); }
