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

/// What a kernel has its arguments in (slangpy/compiler/text/arguments.py): a copy, unless they are large.
template<class T, bool is_large> struct _spy_Arguments { typedef T type; };
template<class T> struct _spy_Arguments<T, true> { typedef T& type; };

// Of two types where a literal has another name for its own.
template<class T, class U>
inline auto _slang_select(bool condition, T a, U b) { return condition ? a : b; }

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

inline float _spy_fetch_add_f32(float* to, float v) { return spy_atomics::add<uint32_t>(to, v); }

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
