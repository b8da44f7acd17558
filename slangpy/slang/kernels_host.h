// What programs emitted for CUDA need to compile for the host: goes in front of the program of a kernel module on the
// CPU device (slangpy/pytorch/raw/host.py, docs/slangtorch.md). Written from what Slang emits and from CUDA's
// documentation; nothing of CUDA's or Slang's headers is in it. Comes after divisions_cpp.h,
// wrapping.h and halves_cpp.h.
#pragma once

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define SPY_INLINE inline __attribute__((always_inline))
#define SLANG_PRELUDE_EXPORT
#define SLANG_INFINITY __builtin_inff()
#define __device__
#define __global__
#define __host__
#define __shared__
#define __forceinline__ inline
#define __restrict__

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef long long longlong;
typedef unsigned long long ulonglong;

// --- 16-bit floats: stored narrow, computed as float

template <class Format>
struct Narrow {
    uint16_t bits;
    Narrow() = default;
    SPY_INLINE constexpr Narrow(float v) : bits(Format::narrow(v)) {}
    SPY_INLINE constexpr Narrow(double v) : bits(Format::narrow(float(v))) {}
    template <class I, class = decltype(I() % 1)>
    SPY_INLINE constexpr Narrow(I v) : bits(Format::narrow(float(v))) {}
    SPY_INLINE operator float() const { return Format::widen(bits); }
    SPY_INLINE Narrow operator-() const { return Narrow(-float(*this)); }
#define SPY_NARROW(op) \
    friend SPY_INLINE Narrow operator op(Narrow a, Narrow b) { return Narrow(float(a) op float(b)); } \
    SPY_INLINE Narrow& operator op##=(Narrow b) { return *this = *this op b; }
    SPY_NARROW(+) SPY_NARROW(-) SPY_NARROW(*) SPY_NARROW(/)
#undef SPY_NARROW
#define SPY_NARROW(op) \
    friend SPY_INLINE bool operator op(Narrow a, Narrow b) { return float(a) op float(b); }
    SPY_NARROW(==) SPY_NARROW(!=) SPY_NARROW(<) SPY_NARROW(>) SPY_NARROW(<=) SPY_NARROW(>=)
#undef SPY_NARROW
};

template <class To, class From>
SPY_INLINE constexpr To spy_bits(From from)
{
    static_assert(sizeof(To) == sizeof(From), "sizes differ");
    return __builtin_bit_cast(To, from);
}

struct HalfFormat {
    static constexpr uint16_t narrow(float v)
    {
#if defined(__FLT16_MANT_DIG__)
        return spy_bits<uint16_t>(static_cast<_Float16>(v));
#else
        return _spy_half_of_bits(spy_bits<uint32_t>(v));
#endif
    }
    static float widen(uint16_t bits)
    {
#if defined(__FLT16_MANT_DIG__)
        return float(spy_bits<_Float16>(bits));
#else
        const uint32_t sign = uint32_t(bits & 0x8000u) << 16, exponent = bits >> 10 & 31u, mantissa = bits & 0x3ffu;
        if (exponent == 0)
            return (sign ? -1.0f : 1.0f) * float(mantissa) * 0x1p-24f;
        if (exponent == 31)
            return spy_bits<float>(sign | 0x7f800000u | mantissa << 13);
        return spy_bits<float>(sign | (exponent + 112u) << 23 | mantissa << 13);
#endif
    }
};

struct BrainFormat {
    static constexpr uint16_t narrow(float v)
    {
        const uint32_t x = spy_bits<uint32_t>(v);
        if ((x & 0x7fffffffu) > 0x7f800000u)
            return uint16_t(x >> 16 | 0x40u);
        return uint16_t((x + 0x7fffu + (x >> 16 & 1u)) >> 16);
    }
    static float widen(uint16_t bits) { return spy_bits<float>(uint32_t(bits) << 16); }
};

typedef Narrow<HalfFormat> __half;
typedef Narrow<BrainFormat> __nv_bfloat16;

SPY_INLINE __half __float2half(float v) { return __half(v); }
SPY_INLINE float __half2float(__half v) { return float(v); }
SPY_INLINE __nv_bfloat16 __float2bfloat16(float v) { return __nv_bfloat16(v); }
SPY_INLINE float __bfloat162float(__nv_bfloat16 v) { return float(v); }
SPY_INLINE ushort __half_as_ushort(__half v) { return v.bits; }
SPY_INLINE short __half_as_short(__half v) { return short(v.bits); }
SPY_INLINE __half __ushort_as_half(ushort v) { return spy_bits<__half>(v); }
SPY_INLINE __half __short_as_half(short v) { return spy_bits<__half>(v); }

// --- vectors, with CUDA's alignments

template <class T> struct Apart { static constexpr int two = 2 * sizeof(T), four = 4 * sizeof(T) < 16 ? 4 * sizeof(T) : 16; };
template <> struct Apart<__half> { static constexpr int two = 4, four = 4; };
template <> struct Apart<__nv_bfloat16> { static constexpr int two = 4, four = 2; };

template <class T, int N> struct Vector;
#define SPY_AT \
    SPY_INLINE T& operator[](size_t i) { return (&x)[i]; } \
    SPY_INLINE const T& operator[](size_t i) const { return (&x)[i]; }
template <class T> struct Vector<T, 1> { T x; SPY_AT };
template <class T> struct alignas(Apart<T>::two) Vector<T, 2> { T x, y; SPY_AT };
template <class T> struct Vector<T, 3> { T x, y, z; SPY_AT };
template <class T> struct alignas(Apart<T>::four) Vector<T, 4> { T x, y, z, w; SPY_AT };
#undef SPY_AT

template <class T, int N> SPY_INLINE T _slang_vector_get_element(Vector<T, N> v, int i) { return (&v.x)[i]; }
template <class T, int N> SPY_INLINE T* _slang_vector_get_element_ptr(const Vector<T, N>* v, int i) { return const_cast<T*>(&v->x) + i; }

template <class T> struct Count { static constexpr int value = 1; };
template <class T, int N> struct Count<Vector<T, N>> { static constexpr int value = N; };
template <class To, class T> SPY_INLINE constexpr void spy_put(To*& to, T v) { *to++ = static_cast<To>(v); }
template <class To, class T, int N> SPY_INLINE constexpr void spy_put(To*& to, Vector<T, N> v)
{
    for (int i = 0; i < N; i++)
        *to++ = static_cast<To>((&v.x)[i]);
}

/// From N parts (numbers and vectors), or one number for all.
template <class T, int N, class... Parts>
SPY_INLINE Vector<T, N> spy_make(Parts... parts)
{
    Vector<T, N> v;
    T* to = &v.x;
    (spy_put(to, parts), ...);
    if constexpr (N > 1 && (Count<Parts>::value + ...) == 1)
        for (int i = 1; i < N; i++)
            (&v.x)[i] = v.x;
    return v;
}

#define SPY_VECTOR(T, NAME) \
    typedef Vector<T, 1> NAME##1; typedef Vector<T, 2> NAME##2; typedef Vector<T, 3> NAME##3; typedef Vector<T, 4> NAME##4; \
    template <class... P> SPY_INLINE NAME##1 make_##NAME##1(P... p) { return spy_make<T, 1>(p...); } \
    template <class... P> SPY_INLINE NAME##2 make_##NAME##2(P... p) { return spy_make<T, 2>(p...); } \
    template <class... P> SPY_INLINE NAME##3 make_##NAME##3(P... p) { return spy_make<T, 3>(p...); } \
    template <class... P> SPY_INLINE NAME##4 make_##NAME##4(P... p) { return spy_make<T, 4>(p...); }
SPY_VECTOR(bool, bool)
SPY_VECTOR(char, char)
SPY_VECTOR(uchar, uchar)
SPY_VECTOR(short, short)
SPY_VECTOR(ushort, ushort)
SPY_VECTOR(int, int)
SPY_VECTOR(uint, uint)
SPY_VECTOR(longlong, longlong)
SPY_VECTOR(ulonglong, ulonglong)
SPY_VECTOR(float, float)
SPY_VECTOR(double, double)
SPY_VECTOR(__half, __half)
SPY_VECTOR(__nv_bfloat16, __nv_bfloat16)
#undef SPY_VECTOR
template <class T> SPY_INLINE float make_float(T v) { return float(v); }

SPY_INLINE float _slang_fmod(float a, float b) { return fmodf(a, b); }
SPY_INLINE double _slang_fmod(double a, double b) { return fmod(a, b); }
SPY_INLINE __half _slang_fmod(__half a, __half b) { return __half(fmodf(a, b)); }
template <class T> SPY_INLINE T spy_rest(T a, T b)
{
    if constexpr (T(0.5f) == T(0))
        return T(a % _spy_by % b);
    else
        return _slang_fmod(a, b);
}
template <> SPY_INLINE __half spy_rest(__half a, __half b) { return _slang_fmod(a, b); }

#define SPY_EACH(op) \
    template <class T, int N> SPY_INLINE Vector<T, N> operator op(Vector<T, N> a, Vector<T, N> b) \
    { \
        Vector<T, N> r; \
        for (int i = 0; i < N; i++) (&r.x)[i] = T((&a.x)[i] op (&b.x)[i]); \
        return r; \
    }
SPY_EACH(+) SPY_EACH(-) SPY_EACH(*) SPY_EACH(^) SPY_EACH(&) SPY_EACH(|) SPY_EACH(&&) SPY_EACH(||) SPY_EACH(>>) SPY_EACH(<<)
#undef SPY_EACH
template <class T, int N> SPY_INLINE Vector<T, N> operator/(Vector<T, N> a, Vector<T, N> b)
{
    Vector<T, N> r;
    for (int i = 0; i < N; i++)
        (&r.x)[i] = T((&a.x)[i] / _spy_by / (&b.x)[i]);
    return r;
}
template <class T, int N> SPY_INLINE Vector<T, N> operator%(Vector<T, N> a, Vector<T, N> b)
{
    Vector<T, N> r;
    for (int i = 0; i < N; i++)
        (&r.x)[i] = spy_rest((&a.x)[i], (&b.x)[i]);
    return r;
}
#define SPY_COMPARE(op) \
    template <class T, int N> SPY_INLINE Vector<bool, N> operator op(Vector<T, N> a, Vector<T, N> b) \
    { \
        Vector<bool, N> r; \
        for (int i = 0; i < N; i++) (&r.x)[i] = (&a.x)[i] op (&b.x)[i]; \
        return r; \
    }
SPY_COMPARE(<) SPY_COMPARE(>) SPY_COMPARE(<=) SPY_COMPARE(>=) SPY_COMPARE(==) SPY_COMPARE(!=)
#undef SPY_COMPARE
#define SPY_UNARY(op) \
    template <class T, int N> SPY_INLINE Vector<T, N> operator op(Vector<T, N> a) \
    { \
        for (int i = 0; i < N; i++) (&a.x)[i] = T(op (&a.x)[i]); \
        return a; \
    }
SPY_UNARY(-) SPY_UNARY(~) SPY_UNARY(!)
#undef SPY_UNARY

template <class T, class U> SPY_INLINE auto _slang_select(bool c, T a, U b) { return c ? a : b; }
template <class T, int N> SPY_INLINE Vector<T, N> _slang_select(Vector<bool, N> c, Vector<T, N> a, Vector<T, N> b)
{
    for (int i = 0; i < N; i++)
        (&a.x)[i] = (&c.x)[i] ? (&a.x)[i] : (&b.x)[i];
    return a;
}

template <class T, size_t N>
struct FixedArray {
    T m_data[N];
    SPY_INLINE constexpr const T& operator[](size_t i) const { return m_data[i]; }
    SPY_INLINE constexpr T& operator[](size_t i) { return m_data[i]; }
};

// --- matrices: rows of vectors

template <class T, int R, int C>
struct Matrix {
    Vector<T, C> rows[R];
    SPY_INLINE Vector<T, C>& operator[](size_t i) { return rows[i]; }
    SPY_INLINE const Vector<T, C>& operator[](size_t i) const { return rows[i]; }
};

template <class T, int R, int C, class... Parts>
SPY_INLINE Matrix<T, R, C> makeMatrix(Parts... parts)
{
    Matrix<T, R, C> m;
    T flat[sizeof...(Parts) == 1 ? 4 : R * C + 3], *to = flat;
    (spy_put(to, parts), ...);
    for (int i = 0; i < R; i++)
        for (int j = 0; j < C; j++)
            m.rows[i][j] = sizeof...(Parts) == 1 && R > 1 ? flat[0] : flat[i * C + j];
    return m;
}
template <class T, int R, int C, class U, int R2, int C2>
SPY_INLINE Matrix<T, R, C> makeMatrix(Matrix<U, R2, C2> other)
{
    Matrix<T, R, C> m = {};
    for (int i = 0; i < (R < R2 ? R : R2); i++)
        for (int j = 0; j < (C < C2 ? C : C2); j++)
            m.rows[i][j] = T(other.rows[i][j]);
    return m;
}
#define SPY_EACH(op) \
    template <class T, int R, int C> SPY_INLINE Matrix<T, R, C> operator op(Matrix<T, R, C> a, Matrix<T, R, C> b) \
    { \
        for (int i = 0; i < R; i++) a.rows[i] = a.rows[i] op b.rows[i]; \
        return a; \
    }
SPY_EACH(+) SPY_EACH(-) SPY_EACH(*) SPY_EACH(/) SPY_EACH(%) SPY_EACH(^) SPY_EACH(&) SPY_EACH(|) SPY_EACH(&&) SPY_EACH(||)
#undef SPY_EACH
#define SPY_UNARY(op) \
    template <class T, int R, int C> SPY_INLINE Matrix<T, R, C> operator op(Matrix<T, R, C> a) \
    { \
        for (int i = 0; i < R; i++) a.rows[i] = op a.rows[i]; \
        return a; \
    }
SPY_UNARY(-) SPY_UNARY(~) SPY_UNARY(!)
#undef SPY_UNARY

template <class To, class From>
SPY_INLINE To slang_bit_cast(From from)
{
    To to;
    static_assert(sizeof(to) <= sizeof(from), "sizes differ");
    memcpy(&to, &from, sizeof(to));
    return to;
}

// --- scalar functions

#define SPY_FLOATS(P, T, S) \
    SPY_INLINE T P##_ceil(T v) { return T(ceil##S(v)); } \
    SPY_INLINE T P##_floor(T v) { return T(floor##S(v)); } \
    SPY_INLINE T P##_round(T v) { return T(rint##S(v)); } \
    SPY_INLINE T P##_trunc(T v) { return T(trunc##S(v)); } \
    SPY_INLINE T P##_sin(T v) { return T(sin##S(v)); } \
    SPY_INLINE T P##_cos(T v) { return T(cos##S(v)); } \
    SPY_INLINE void P##_sincos(T v, T* s, T* c) { *s = T(sin##S(v)), *c = T(cos##S(v)); } \
    SPY_INLINE T P##_tan(T v) { return T(tan##S(v)); } \
    SPY_INLINE T P##_asin(T v) { return T(asin##S(v)); } \
    SPY_INLINE T P##_acos(T v) { return T(acos##S(v)); } \
    SPY_INLINE T P##_atan(T v) { return T(atan##S(v)); } \
    SPY_INLINE T P##_sinh(T v) { return T(sinh##S(v)); } \
    SPY_INLINE T P##_cosh(T v) { return T(cosh##S(v)); } \
    SPY_INLINE T P##_tanh(T v) { return T(tanh##S(v)); } \
    SPY_INLINE T P##_asinh(T v) { return T(asinh##S(v)); } \
    SPY_INLINE T P##_acosh(T v) { return T(acosh##S(v)); } \
    SPY_INLINE T P##_atanh(T v) { return T(atanh##S(v)); } \
    SPY_INLINE T P##_log(T v) { return T(log##S(v)); } \
    SPY_INLINE T P##_log2(T v) { return T(log2##S(v)); } \
    SPY_INLINE T P##_log10(T v) { return T(log10##S(v)); } \
    SPY_INLINE T P##_exp(T v) { return T(exp##S(v)); } \
    SPY_INLINE T P##_exp2(T v) { return T(exp2##S(v)); } \
    SPY_INLINE T P##_abs(T v) { return T(fabs##S(v)); } \
    SPY_INLINE T P##_sqrt(T v) { return T(sqrt##S(v)); } \
    SPY_INLINE T P##_rsqrt(T v) { return T(1 / sqrt##S(v)); } \
    SPY_INLINE int P##_sign(T v) { return v == T(0) ? 0 : v < T(0) ? -1 : 1; } \
    SPY_INLINE T P##_frac(T v) { return v - P##_floor(v); } \
    SPY_INLINE bool P##_isnan(T v) { return __builtin_isnan(spy_plain(v)); } \
    SPY_INLINE bool P##_isinf(T v) { return __builtin_isinf(spy_plain(v)); } \
    SPY_INLINE bool P##_isfinite(T v) { return __builtin_isfinite(spy_plain(v)); } \
    SPY_INLINE T P##_min(T a, T b) { return T(fmin##S(a, b)); } \
    SPY_INLINE T P##_max(T a, T b) { return T(fmax##S(a, b)); } \
    SPY_INLINE T P##_pow(T a, T b) { return T(pow##S(a, b)); } \
    SPY_INLINE T P##_fmod(T a, T b) { return T(fmod##S(a, b)); } \
    SPY_INLINE T P##_remainder(T a, T b) { return T(remainder##S(a, b)); } \
    SPY_INLINE T P##_atan2(T a, T b) { return T(atan2##S(a, b)); } \
    SPY_INLINE T P##_fma(T a, T b, T c) { return T(fma##S(a, b, c)); } \
    SPY_INLINE T P##_frexp(T v, int* e) { return T(frexp##S(v, e)); }
SPY_INLINE float spy_plain(float v) { return v; }
SPY_INLINE double spy_plain(double v) { return v; }
SPY_INLINE float spy_plain(__half v) { return v; }
SPY_FLOATS(F32, float, f)
SPY_FLOATS(F64, double, )
SPY_FLOATS(F16, __half, f)
#undef SPY_FLOATS
SPY_INLINE float F32_modf(float v, float* whole) { return modff(v, whole); }
SPY_INLINE double F64_modf(double v, double* whole) { return modf(v, whole); }
SPY_INLINE uint32_t F32_asuint(float v) { return spy_bits<uint32_t>(v); }
SPY_INLINE int32_t F32_asint(float v) { return spy_bits<int32_t>(v); }
SPY_INLINE uint16_t F16_asuint(__half v) { return v.bits; }
SPY_INLINE int16_t F16_asint(__half v) { return int16_t(v.bits); }
SPY_INLINE void F64_asuint(double v, uint32_t* low, uint32_t* high)
{
    const uint64_t bits = spy_bits<uint64_t>(v);
    *low = uint32_t(bits), *high = uint32_t(bits >> 32);
}
SPY_INLINE void F64_asint(double v, int32_t* low, int32_t* high) { F64_asuint(v, reinterpret_cast<uint32_t*>(low), reinterpret_cast<uint32_t*>(high)); }

#define SPY_INTEGERS(I, U, S, T) \
    SPY_INLINE S I##_abs(S v) { return S(v < 0 ? 0 - v : v); } \
    SPY_INLINE S I##_min(S a, S b) { return a < b ? a : b; } \
    SPY_INLINE S I##_max(S a, S b) { return a > b ? a : b; } \
    SPY_INLINE int I##_sign(S v) { return int(v > 0) - int(v < 0); } \
    SPY_INLINE T U##_abs(T v) { return v; } \
    SPY_INLINE T U##_min(T a, T b) { return a < b ? a : b; } \
    SPY_INLINE T U##_max(T a, T b) { return a > b ? a : b; } \
    SPY_INLINE uint32_t U##_countbits(T v) { return uint32_t(__builtin_popcountll(v)); } \
    SPY_INLINE uint32_t I##_countbits(S v) { return U##_countbits(T(v)); } \
    SPY_INLINE uint32_t U##_firstbitlow(T v) { return v ? uint32_t(__builtin_ctzll(v)) : ~0u; } \
    SPY_INLINE uint32_t I##_firstbitlow(S v) { return U##_firstbitlow(T(v)); } \
    SPY_INLINE uint32_t U##_firstbithigh(T v) { return v ? 63u - uint32_t(__builtin_clzll(v)) : ~0u; } \
    SPY_INLINE T U##_reversebits(T v) \
    { \
        T r = 0; \
        for (unsigned i = 0; i < 8 * sizeof(T); i++) r = T(r | (v >> i & T(1)) << (8 * sizeof(T) - 1 - i)); \
        return r; \
    } \
    SPY_INLINE S I##_reversebits(S v) { return S(U##_reversebits(T(v))); }
SPY_INTEGERS(I8, U8, int8_t, uint8_t)
SPY_INTEGERS(I16, U16, int16_t, uint16_t)
SPY_INTEGERS(I32, U32, int32_t, uint32_t)
SPY_INTEGERS(I64, U64, int64_t, uint64_t)
#undef SPY_INTEGERS
SPY_INLINE uint32_t I32_firstbithigh(int32_t v) { return U32_firstbithigh(uint32_t(v < 0 ? ~v : v)); }
SPY_INLINE uint32_t I64_firstbithigh(int64_t v) { return U64_firstbithigh(uint64_t(v < 0 ? ~v : v)); }
SPY_INLINE float U32_asfloat(uint32_t v) { return spy_bits<float>(v); }
SPY_INLINE float I32_asfloat(int32_t v) { return spy_bits<float>(v); }
SPY_INLINE uint32_t I32_asuint(int32_t v) { return uint32_t(v); }
SPY_INLINE int32_t U32_asint(uint32_t v) { return int32_t(v); }
SPY_INLINE double U32_asdouble(uint32_t low, uint32_t high) { return spy_bits<double>(uint64_t(high) << 32 | low); }
SPY_INLINE double I32_asdouble(int32_t low, int32_t high) { return U32_asdouble(uint32_t(low), uint32_t(high)); }
SPY_INLINE int __popc(uint v) { return __builtin_popcount(v); }
SPY_INLINE int __popcll(ulonglong v) { return __builtin_popcountll(v); }
SPY_INLINE int __ffs(int v) { return __builtin_ffs(v); }
SPY_INLINE int __ffsll(longlong v) { return __builtin_ffsll(v); }
SPY_INLINE int __clz(int v) { return v ? __builtin_clz(uint(v)) : 32; }
SPY_INLINE uint __brev(uint v) { return U32_reversebits(v); }
SPY_INLINE void __threadfence_block() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
SPY_INLINE void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
template <class T> SPY_INLINE T __ldg(const T* p) { return *p; }

// --- atomics: each gives what was there before

template <int Bytes> struct Word { typedef uint32_t type; };
template <> struct Word<1> { typedef uint8_t type; };
template <> struct Word<2> { typedef uint16_t type; };
template <> struct Word<8> { typedef uint64_t type; };

template <class T, class F>
SPY_INLINE T spy_change(T* to, F change)
{
    typedef typename Word<sizeof(T)>::type W;
    W* word = reinterpret_cast<W*>(to);
    W before = __atomic_load_n(word, __ATOMIC_RELAXED);
    T value;
    do {
        memcpy(&value, &before, sizeof(T));
    } while (!__atomic_compare_exchange_n(word, &before, slang_bit_cast<W>(T(change(value))), true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return value;
}
template <class T> struct Same { typedef T type; };
#define SPY_ATOMIC(NAME, EXPRESSION) \
    template <class T> SPY_INLINE T NAME(T* to, typename Same<T>::type v) { return spy_change(to, [v](T x) { return EXPRESSION; }); }
SPY_ATOMIC(atomicAdd, x + v)
SPY_ATOMIC(atomicSub, x - v)
SPY_ATOMIC(atomicMin, v < x ? v : x)
SPY_ATOMIC(atomicMax, v > x ? v : x)
SPY_ATOMIC(atomicAnd, x & v)
SPY_ATOMIC(atomicOr, x | v)
SPY_ATOMIC(atomicXor, x ^ v)
SPY_ATOMIC(atomicExch, (void(x), v))
#undef SPY_ATOMIC
#define SPY_FETCH(NAME, CALL) \
    SPY_INLINE int NAME(int* to, int v) { return CALL(to, v, __ATOMIC_RELAXED); } \
    SPY_INLINE uint NAME(uint* to, uint v) { return CALL(to, v, __ATOMIC_RELAXED); } \
    SPY_INLINE longlong NAME(longlong* to, longlong v) { return CALL(to, v, __ATOMIC_RELAXED); } \
    SPY_INLINE ulonglong NAME(ulonglong* to, ulonglong v) { return CALL(to, v, __ATOMIC_RELAXED); }
SPY_FETCH(atomicAdd, __atomic_fetch_add)
SPY_FETCH(atomicAnd, __atomic_fetch_and)
SPY_FETCH(atomicOr, __atomic_fetch_or)
SPY_FETCH(atomicXor, __atomic_fetch_xor)
SPY_FETCH(atomicExch, __atomic_exchange_n)
#undef SPY_FETCH
template <class T> SPY_INLINE T atomicCAS(T* to, typename Same<T>::type expected, typename Same<T>::type v)
{
    return spy_change(to, [=](T x) { return x == expected ? v : x; });
}
#define SPY_ATOMIC(NAME) \
    template <class T, int N> SPY_INLINE Vector<T, N> NAME(Vector<T, N>* to, Vector<T, N> v) \
    { \
        Vector<T, N> before; \
        for (int i = 0; i < N; i++) (&before.x)[i] = NAME(&to->x + i, (&v.x)[i]); \
        return before; \
    }
SPY_ATOMIC(atomicAdd)
SPY_ATOMIC(atomicExch)
#undef SPY_ATOMIC

// --- views: 56 bytes, strides in bytes, at most 5 dimensions

struct TensorView {
    uint8_t* data;
    uint32_t strides[5];
    uint32_t sizes[5];
    uint32_t dimensionCount;

    SPY_INLINE uint64_t at(uint32_t a) const { return uint64_t(strides[0]) * a; }
    SPY_INLINE uint64_t at(uint32_t a, uint32_t b) const { return at(a) + uint64_t(strides[1]) * b; }
    SPY_INLINE uint64_t at(uint32_t a, uint32_t b, uint32_t c) const { return at(a, b) + uint64_t(strides[2]) * c; }
    SPY_INLINE uint64_t at(uint32_t a, uint32_t b, uint32_t c, uint32_t d) const { return at(a, b, c) + uint64_t(strides[3]) * d; }
    SPY_INLINE uint64_t at(uint32_t a, uint32_t b, uint32_t c, uint32_t d, uint32_t e) const { return at(a, b, c, d) + uint64_t(strides[4]) * e; }
    template <int N> SPY_INLINE uint64_t at(Vector<uint, N> i) const
    {
        uint64_t offset = 0;
        for (int k = 0; k < N; k++)
            offset += uint64_t(strides[k]) * (&i.x)[k];
        return offset;
    }
    template <size_t N> SPY_INLINE uint64_t at(FixedArray<uint, N> i) const
    {
        uint64_t offset = 0;
        for (size_t k = 0; k < N; k++)
            offset += uint64_t(strides[k]) * i[k];
        return offset;
    }
    template <class T> SPY_INLINE T* data_ptr() const { return reinterpret_cast<T*>(data); }
    template <class T, class... I> SPY_INLINE T* data_ptr_at(I... i) const { return reinterpret_cast<T*>(data + at(i...)); }
    template <class T, class... I> SPY_INLINE T& load(I... i) const { return *reinterpret_cast<T*>(data + at(i...)); }
    template <class T, class I> SPY_INLINE void store(I i, T v) const { *reinterpret_cast<T*>(data + at(i)) = v; }
    template <class T> SPY_INLINE void store(uint32_t a, uint32_t b, T v) const { *reinterpret_cast<T*>(data + at(a, b)) = v; }
    template <class T> SPY_INLINE void store(uint32_t a, uint32_t b, uint32_t c, T v) const { *reinterpret_cast<T*>(data + at(a, b, c)) = v; }
    template <class T> SPY_INLINE void store(uint32_t a, uint32_t b, uint32_t c, uint32_t d, T v) const { *reinterpret_cast<T*>(data + at(a, b, c, d)) = v; }
    template <class T> SPY_INLINE void store(uint32_t a, uint32_t b, uint32_t c, uint32_t d, uint32_t e, T v) const { *reinterpret_cast<T*>(data + at(a, b, c, d, e)) = v; }
};

// --- what kernels cannot use here, but structs of the file may name

template <class T> struct StructuredBuffer { T* data; size_t count; };
template <class T> struct RWStructuredBuffer { T* data; size_t count; };
struct ByteAddressBuffer { uint32_t* data; size_t sizeInBytes; };
struct RWByteAddressBuffer { uint32_t* data; size_t sizeInBytes; };
typedef ulonglong CUtexObject;
typedef ulonglong CUsurfObject;
typedef ulonglong SamplerState;

// --- launches

/// Groups [begin, end) of a launch, as the CPU device hands them out.
struct SpyRange {
    uint32_t begin[3], end[3];
};
/// In front of the kernel's parameters.
struct SpyLaunch {
    uint32_t block[3], grid[3];
    uint32_t* failed; ///< set when threads of a block wait for each other at different places
    uint64_t unused[4];
};
static_assert(sizeof(SpyLaunch) == 64, "parameters begin at byte 64");

template <class T>
SPY_INLINE T spy_parameter(const char* bytes)
{
    T value;
    memcpy(&value, bytes, sizeof(T));
    return value;
}
