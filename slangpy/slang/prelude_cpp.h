// Atomic floating-point additions for kernels that run on the CPU, called by the text that atomics.slang emits.
// Goes in front of Slang's C++ output. Nothing here depends on Slang's own prelude: the half type is a template
// parameter, because what `half` is depends on the compiler.
#pragma once

// libstdc++'s <math.h> brings in the special functions of C++17 (Bessel and others), which take longer to compile than
// everything else here together. This name keeps them out.
#define _GLIBCXX_BITS_SPECFUN_H

#include <stddef.h>
#include <stdint.h>
#if defined(_MSC_VER)
#include <intrin.h>
#include <string.h>
#define SPY_COPY memcpy
#else
#define SPY_COPY __builtin_memcpy
#endif

namespace spy_atomics {

#if defined(_MSC_VER)
inline uint16_t swap_if(uint16_t* word, uint16_t expected, uint16_t desired)
{
    return static_cast<uint16_t>(
        _InterlockedCompareExchange16(reinterpret_cast<volatile short*>(word), static_cast<short>(desired), static_cast<short>(expected)));
}
inline uint32_t swap_if(uint32_t* word, uint32_t expected, uint32_t desired)
{
    return static_cast<uint32_t>(
        _InterlockedCompareExchange(reinterpret_cast<volatile long*>(word), static_cast<long>(desired), static_cast<long>(expected)));
}
inline uint64_t swap_if(uint64_t* word, uint64_t expected, uint64_t desired)
{
    return static_cast<uint64_t>(_InterlockedCompareExchange64(
        reinterpret_cast<volatile long long*>(word), static_cast<long long>(desired), static_cast<long long>(expected)));
}
#endif

// Replaces *word by desired if it holds expected; else reads it into expected.
template<class Word>
inline bool exchange(Word* word, Word& expected, Word desired)
{
#if defined(_MSC_VER)
    const Word seen = swap_if(word, expected, desired);
    const bool done = seen == expected;
    expected = seen;
    return done;
#else
    return __atomic_compare_exchange_n(word, &expected, desired, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
#endif
}

template<class Word>
inline Word load(const Word* word)
{
#if defined(_MSC_VER)
    return *const_cast<const volatile Word*>(word);
#else
    return __atomic_load_n(word, __ATOMIC_RELAXED);
#endif
}

// Returns what was there before.
template<class Word, class Real>
inline Real add(Real* to, Real v)
{
    static_assert(sizeof(Word) == sizeof(Real));
    Word* word = reinterpret_cast<Word*>(to);
    Word expected = load(word);
    Word desired;
    Real before;
    do {
        SPY_COPY(&before, &expected, sizeof(Real));
        Real sum = before + v;
        SPY_COPY(&desired, &sum, sizeof(Real));
    } while (!exchange(word, expected, desired));
    return before;
}

template<int Bytes>
struct WordOf {
    using type = uint32_t;
};
template<>
struct WordOf<8> {
    using type = uint64_t;
};

// Replaces *to by f(*to); returns what was there before.
template<class Integer, class Function>
inline Integer update(Integer* to, Function f)
{
    using Word = typename WordOf<sizeof(Integer)>::type;
    Word* word = reinterpret_cast<Word*>(to);
    Word expected = load(word);
    while (!exchange(word, expected, Word(f(Integer(expected))))) {
    }
    return Integer(expected);
}

} // namespace spy_atomics

/// T, without a say in what T is: Slang's 64-bit literals are of another type than its 64-bit integers.
template<class T> struct _spy_of_type { typedef T type; };
template<class T> using _spy_given = typename _spy_of_type<T>::type;
template<class T>
inline T _spy_fetch_add(T* to, _spy_given<T> v) { return spy_atomics::update(to, [v](T x) { return T(x + v); }); }
template<class T>
inline T _spy_fetch_min(T* to, _spy_given<T> v) { return spy_atomics::update(to, [v](T x) { return x < v ? x : v; }); }
template<class T>
inline T _spy_fetch_max(T* to, _spy_given<T> v) { return spy_atomics::update(to, [v](T x) { return x > v ? x : v; }); }
template<class T>
inline T _spy_fetch_and(T* to, _spy_given<T> v) { return spy_atomics::update(to, [v](T x) { return T(x & v); }); }
template<class T>
inline T _spy_fetch_or(T* to, _spy_given<T> v) { return spy_atomics::update(to, [v](T x) { return T(x | v); }); }
template<class T>
inline T _spy_fetch_xor(T* to, _spy_given<T> v) { return spy_atomics::update(to, [v](T x) { return T(x ^ v); }); }
template<class T>
inline T _spy_fetch_exchange(T* to, _spy_given<T> v) { return spy_atomics::update(to, [v](T) { return v; }); }
template<class T>
inline T _spy_fetch_compare(T* to, _spy_given<T> expected, _spy_given<T> v)
{
    return spy_atomics::update(to, [expected, v](T x) { return x == expected ? v : x; });
}

// Additions whose result nobody asks for go to this thread's own copy, or are plain where no other thread runs.
#ifdef SPY_HAS_ADDS
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
#else
template<class Word, class Real>
inline void _spy_atomic_add(Real* to, Real v) { spy_atomics::add<Word>(to, v); }
#endif

inline void _spy_atomic_add_f32(float* to, float v) { _spy_atomic_add<uint32_t>(to, v); }
inline float _spy_fetch_add_f32(float* to, float v) { return spy_atomics::add<uint32_t>(to, v); }
inline void _spy_atomic_add_f64(double* to, double v) { _spy_atomic_add<uint64_t>(to, v); }
template<class Half>
inline void _spy_atomic_add_f16(Half* to, Half v) { _spy_atomic_add<uint16_t>(to, v); }

namespace spy_stream {

// Copies a small array to memory aligned to 16 bytes without reading the destination's cache lines first.
template <typename T, typename A>
inline __attribute__((always_inline)) void store(T* to, const A& values)
{
#if defined(__SSE2__)
    static_assert(sizeof(A) % 16 == 0, "whole 16-byte pieces");
    typedef long long Piece __attribute__((vector_size(16))); // as in emmintrin.h, which takes long to compile
    Piece* piece = reinterpret_cast<Piece*>(to);
    for (size_t i = 0; i < sizeof(A) / 16; i++) {
        Piece v;
        SPY_COPY(&v, reinterpret_cast<const char*>(&values) + 16 * i, 16);
#if defined(__clang__)
        __builtin_nontemporal_store(v, piece + i);
#else
        __builtin_ia32_movntdq(piece + i, v);
#endif
    }
#else
    SPY_COPY(to, &values, sizeof(A));
#endif
}

} // namespace spy_stream

// With GCC on x86-64, loops over these functions are vectorised: glibc has them for several numbers at once (libmvec, which
// libm names to the linker), with an error of up to 4 units in the last place. That is far less than with -ffast-math,
// which the compiler asks for elsewhere before it uses them.
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__OPTIMIZE__) && !defined(SPY_SCALAR_MATH)
#include <math.h>
#if defined(__GLIBC__) && defined(__GLIBC_PREREQ)
#if __GLIBC_PREREQ(2, 22)
#define SPY_VECTOR_1(F) \
    __attribute__((simd("notinbranch"), const)) float F##f(float) noexcept; \
    __attribute__((simd("notinbranch"), const)) double F(double) noexcept;
#define SPY_VECTOR_2(F) \
    __attribute__((simd("notinbranch"), const)) float F##f(float, float) noexcept; \
    __attribute__((simd("notinbranch"), const)) double F(double, double) noexcept;
extern "C" {
SPY_VECTOR_1(sin)
SPY_VECTOR_1(cos)
SPY_VECTOR_1(exp)
SPY_VECTOR_1(log)
SPY_VECTOR_2(pow)
#if __GLIBC_PREREQ(2, 35)
SPY_VECTOR_1(tan)
SPY_VECTOR_1(asin)
SPY_VECTOR_1(acos)
SPY_VECTOR_1(atan)
SPY_VECTOR_2(atan2)
SPY_VECTOR_1(sinh)
SPY_VECTOR_1(cosh)
SPY_VECTOR_1(tanh)
SPY_VECTOR_1(exp2)
SPY_VECTOR_1(log2)
SPY_VECTOR_1(log10)
#endif
}
#endif
#endif
#endif
