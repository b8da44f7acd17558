// Values of many invocations at once, for kernels on the CPU whose loops end at different times for different
// invocations. Stands in front of functions that slangpy/compiler/text/lanes makes of what Slang emitted: the same
// expressions, with lanes in place of numbers, and masks that say which invocations take part.
#pragma once

// Measured with GCC, and with vectors of 256 bits and more.
#if (defined(__AVX2__) && defined(__OPTIMIZE__) && !defined(__clang__)) || defined(SPY_LANES_ALWAYS)
#define SPY_HAS_LANES 1
#else
#define SPY_HAS_LANES 0
#endif
#if SPY_HAS_LANES

#if defined(__AVX512F__)
#define SPY_VECTOR_BYTES 64
#elif defined(__AVX__)
#define SPY_VECTOR_BYTES 32
#else
#define SPY_VECTOR_BYTES 16
#endif
#ifndef SPY_LANES
#define SPY_LANES 32
#endif
/// So few lanes go through the rest of a loop one after the other.
#ifndef SPY_FEW_LANES
#define SPY_FEW_LANES 2
#endif
#define SPY_LANE_INLINE inline __attribute__((always_inline))
// Written out: with loops to unroll, compilers take a tenth to a quarter longer.
#define SPY_EACH_PART(k, T, ...)                                                                                       \
    do {                                                                                                               \
        SPY_PART(k, 0, __VA_ARGS__)                                                                                    \
        if constexpr (_spy_lanes<T>::count > 1)                                                                        \
            SPY_PART(k, 1, __VA_ARGS__)                                                                                \
        if constexpr (_spy_lanes<T>::count > 2) {                                                                      \
            SPY_PART(k, 2, __VA_ARGS__)                                                                                \
            SPY_PART(k, 3, __VA_ARGS__)                                                                                \
        }                                                                                                              \
        if constexpr (_spy_lanes<T>::count > 4) {                                                                      \
            SPY_PART(k, 4, __VA_ARGS__)                                                                                \
            SPY_PART(k, 5, __VA_ARGS__)                                                                                \
            SPY_PART(k, 6, __VA_ARGS__)                                                                                \
            SPY_PART(k, 7, __VA_ARGS__)                                                                                \
        }                                                                                                              \
        _Pragma("GCC unroll 16") for (int k = 8; k < _spy_lanes<T>::count; k++) { __VA_ARGS__; }                       \
    } while (0)
#define SPY_PART(k, number, ...)                                                                                       \
    {                                                                                                                  \
        constexpr int k = number;                                                                                      \
        __VA_ARGS__;                                                                                                   \
    }

template <class T>
struct _spy_lane_of {
    typedef T type;
};
template <>
struct _spy_lane_of<bool> {
    typedef int type;
}; // all bits set, or none

template <class T>
struct _spy_lanes {
    typedef typename _spy_lane_of<T>::type Lane;
    static constexpr int bytes = SPY_LANES * sizeof(Lane) < SPY_VECTOR_BYTES ? SPY_LANES * sizeof(Lane)
                                                                             : SPY_VECTOR_BYTES;
    static constexpr int per = bytes / sizeof(Lane), count = SPY_LANES / per;
    typedef Lane Part __attribute__((vector_size(bytes)));
    Part v[count];

    _spy_lanes() = default;
    SPY_LANE_INLINE _spy_lanes(T all)
    {
        const Lane one = sizeof(T) == 1 ? Lane(-int(all)) : Lane(all);
        SPY_EACH_PART(k, T, v[k] = one - Part{});
    }
    template <class U>
    SPY_LANE_INLINE explicit _spy_lanes(const _spy_lanes<U>& other)
    {
        if constexpr (sizeof(T) == sizeof(U) && sizeof(T) != 1) {
            SPY_EACH_PART(k, T, v[k] = __builtin_convertvector(other.v[k], Part));
        } else {
            for (int i = 0; i < SPY_LANES; i++) {
                const U x = U(other.get(i));
                put(i, sizeof(T) == 1 ? Lane(-int(x != U(0))) : Lane(x));
            }
        }
    }
    SPY_LANE_INLINE Lane get(int i) const { return reinterpret_cast<const Lane*>(v)[i]; }
    SPY_LANE_INLINE void put(int i, Lane x) { reinterpret_cast<Lane*>(v)[i] = x; }
};
#if defined(__AVX512F__) && defined(__AVX512DQ__) && !defined(__clang__) && SPY_LANES % 16 == 0
#define SPY_BIT_MASKS 1
/// Masks as instructions of AVX-512 take them: 16 lanes in 16 bits.
template <>
struct _spy_lanes<bool> {
    typedef int Lane; // all bits set, or none
    typedef uint16_t Part;
    static constexpr int per = 16, count = SPY_LANES / per;
    Part v[count];

    _spy_lanes() = default;
    SPY_LANE_INLINE _spy_lanes(bool all) { SPY_EACH_PART(k, bool, v[k] = all ? 0xffff : 0); }
    template <class U>
    SPY_LANE_INLINE explicit _spy_lanes(const _spy_lanes<U>& other);
    /// All of them. No address of a part is taken here and below: masks stay in registers.
    SPY_LANE_INLINE uint64_t bits() const
    {
        uint64_t all = v[0];
        _Pragma("GCC unroll 16") for (int k = 1; k < count; k++) all |= uint64_t(v[k]) << k * per;
        return all;
    }
    SPY_LANE_INLINE Lane get(int i) const { return -Lane(bits() >> i & 1); }
    SPY_LANE_INLINE void put(int i, Lane x)
    {
        const int bit = 1 << i % per;
        SPY_EACH_PART(k, bool, v[k] = i / per == k ? Part((v[k] & ~bit) | (x & bit)) : v[k]);
    }
};
#else
#define SPY_BIT_MASKS 0
#endif
typedef _spy_lanes<bool> _spy_mask;

/// T, where it decides no type.
template <class T>
struct _spy_no_guess {
    typedef T type;
};
#define SPY_ONE typename _spy_no_guess<T>::type

#if SPY_BIT_MASKS
/// Masks and a part of numbers: `part` is the mask of part k, and compare<of integers, of floats> are predicates of
/// instructions.
template <class T>
struct _spy_lane_mask {
    typedef typename _spy_lanes<T>::Part Part;
    static constexpr int per = _spy_lanes<T>::per;
    typedef int I __attribute__((vector_size(64)));
    typedef long long Q __attribute__((vector_size(64)));
    static constexpr bool is_float = T(0.5) != T(0), is_signed = T(-1) < T(0);

    static SPY_LANE_INLINE unsigned of(const _spy_mask& m, int k)
    {
        return per == 16 ? m.v[k] : uint8_t(m.v[k / 2] >> k % 2 * 8);
    }
    static SPY_LANE_INLINE void to(_spy_mask& m, int k, unsigned part)
    {
        if (per == 16)
            m.v[k] = uint16_t(part);
        else
            m.v[k / 2] = uint16_t(k % 2 ? m.v[k / 2] | part << 8 : part);
    }
    template <int integer, int floating>
    static SPY_LANE_INLINE unsigned compare(const Part& a, const Part& b)
    {
        if constexpr (is_float && per == 16)
            return (uint16_t)__builtin_ia32_cmpps512_mask(a, b, floating, -1, 4);
        else if constexpr (is_float)
            return (uint8_t)__builtin_ia32_cmppd512_mask(a, b, floating, -1, 4);
        else if constexpr (per == 16 && is_signed)
            return (uint16_t)__builtin_ia32_cmpd512_mask((I)a, (I)b, integer, -1);
        else if constexpr (per == 16)
            return (uint16_t)__builtin_ia32_ucmpd512_mask((I)a, (I)b, integer, -1);
        else if constexpr (is_signed)
            return (uint8_t)__builtin_ia32_cmpq512_mask((Q)a, (Q)b, integer, -1);
        else
            return (uint8_t)__builtin_ia32_ucmpq512_mask((Q)a, (Q)b, integer, -1);
    }
    static SPY_LANE_INLINE Part pick(const _spy_mask& m, int k, const Part& a, const Part& b)
    {
        if constexpr (is_float && per == 16)
            return __builtin_ia32_blendmps_512_mask(b, a, of(m, k));
        else if constexpr (is_float)
            return __builtin_ia32_blendmpd_512_mask(b, a, of(m, k));
        else if constexpr (per == 16)
            return (Part)__builtin_ia32_blendmd_512_mask((I)b, (I)a, of(m, k));
        else
            return (Part)__builtin_ia32_blendmq_512_mask((Q)b, (Q)a, of(m, k));
    }
};
template <>
struct _spy_lane_mask<bool> {
    template <int integer, int>
    static SPY_LANE_INLINE unsigned compare(uint16_t a, uint16_t b)
    {
        static_assert(integer == 0 || integer == 4);
        return uint16_t(integer == 0 ? ~(a ^ b) : a ^ b);
    }
    static SPY_LANE_INLINE void to(_spy_mask& m, int k, unsigned part) { m.v[k] = uint16_t(part); }
    static SPY_LANE_INLINE uint16_t pick(const _spy_mask& m, int k, uint16_t a, uint16_t b)
    {
        return uint16_t((m.v[k] & a) | (~m.v[k] & b));
    }
};
template <class U>
SPY_LANE_INLINE _spy_lanes<bool>::_spy_lanes(const _spy_lanes<U>& other)
{
    typedef _spy_lanes<U> L;
    SPY_EACH_PART(
        k, U,
        _spy_lane_mask<U>::to(*this, k, _spy_lane_mask<U>::template compare<4, 4>(other.v[k], typename L::Part{})));
}
SPY_LANE_INLINE bool _spy_any(const _spy_mask& m)
{
    uint16_t all = m.v[0];
    _Pragma("GCC unroll 16") for (int k = 1; k + 1 < _spy_mask::count; k++) all |= m.v[k];
    const uint16_t last = m.v[_spy_mask::count - 1];
    if (__builtin_constant_p(all | last))
        return (all | last) != 0;
    bool any; // by an instruction of masks: compilers would take them all to general registers, and back
    __asm__("kortestw %1, %2" : "=@ccnz"(any) : "k"(all), "k"(last));
    return any;
}
SPY_LANE_INLINE int _spy_count(const _spy_mask& m)
{
    int count = 0;
    _Pragma("GCC unroll 16") for (int k = 0; k < _spy_mask::count; k++) count += __builtin_popcount(m.v[k]);
    return count;
}
SPY_LANE_INLINE _spy_mask _spy_first_lanes(int n)
{
    _spy_mask m;
    _Pragma("GCC unroll 16") for (int k = 0; k < _spy_mask::count; k++)
    {
        const int left = n - 16 * k;
        m.v[k] = uint16_t(left >= 16 ? 0xffff : left <= 0 ? 0 : (1 << left) - 1);
    }
    return m;
}
#else
/// A mask for elements of another size.
template <class T>
struct _spy_lane_mask {
    typedef _spy_lanes<T> L;
    typedef int Half __attribute__((vector_size(4 * L::per)));
    typedef decltype(typename L::Part() < typename L::Part()) Whole;
    static SPY_LANE_INLINE Whole of(const _spy_mask& m, int k)
    {
        if constexpr (sizeof(typename L::Lane) == 4)
            return m.v[k];
        else {
            Half h;
            __builtin_memcpy(&h, reinterpret_cast<const char*>(m.v) + k * sizeof h, sizeof h);
            return __builtin_convertvector(h, Whole);
        }
    }
    static SPY_LANE_INLINE void to(_spy_mask& m, int k, Whole w)
    {
        if constexpr (sizeof(typename L::Lane) == 4)
            m.v[k] = w;
        else {
            Half h = __builtin_convertvector(w, Half);
            __builtin_memcpy(reinterpret_cast<char*>(m.v) + k * sizeof h, &h, sizeof h);
        }
    }
    static SPY_LANE_INLINE typename L::Part pick(const _spy_mask& m, int k, const typename L::Part& a,
                                                 const typename L::Part& b)
    {
        return of(m, k) ? a : b;
    }
};

SPY_LANE_INLINE bool _spy_any(const _spy_mask& m)
{
    _spy_mask::Part all = m.v[0];
    _Pragma("GCC unroll 16") for (int k = 1; k < _spy_mask::count; k++) all |= m.v[k];
#if defined(__AVX512DQ__)
    if constexpr (_spy_mask::bytes == 64)
        return __builtin_ia32_cvtd2mask512(all) != 0;
#elif defined(__AVX__)
    if constexpr (_spy_mask::bytes == 32)
        return __builtin_ia32_movmskps256((float __attribute__((vector_size(32))))all) != 0;
#endif
    int any = 0;
    for (int i = 0; i < _spy_mask::per; i++)
        any |= all[i];
    return any != 0;
}
/// How many lanes take part.
SPY_LANE_INLINE int _spy_count(const _spy_mask& m)
{
    int count = 0;
#if defined(__AVX512DQ__)
    if constexpr (_spy_mask::bytes == 64) {
        _Pragma("GCC unroll 16") for (int k = 0; k < _spy_mask::count; k++)
            count += __builtin_popcount((unsigned short)__builtin_ia32_cvtd2mask512(m.v[k]));
        return count;
    }
#elif defined(__AVX__)
    if constexpr (_spy_mask::bytes == 32) {
        typedef float Floats __attribute__((vector_size(32)));
        _Pragma("GCC unroll 16") for (int k = 0; k < _spy_mask::count; k++)
            count += __builtin_popcount(__builtin_ia32_movmskps256((Floats)m.v[k]));
        return count;
    }
#endif
    for (int i = 0; i < SPY_LANES; i++)
        count -= m.get(i);
    return count;
}
SPY_LANE_INLINE _spy_mask _spy_first_lanes(int n)
{
    _spy_mask m;
    for (int i = 0; i < SPY_LANES; i++)
        m.put(i, -(i < n));
    return m;
}
#endif

#define SPY_LANES_OP(op)                                                                                               \
    template <class T>                                                                                                 \
    SPY_LANE_INLINE _spy_lanes<T> operator op(const _spy_lanes<T>& a, const _spy_lanes<T>& b)                          \
    {                                                                                                                  \
        _spy_lanes<T> r;                                                                                               \
        SPY_EACH_PART(k, T, r.v[k] = a.v[k] op b.v[k]);                                                                \
        return r;                                                                                                      \
    }                                                                                                                  \
    template <class T>                                                                                                 \
    SPY_LANE_INLINE _spy_lanes<T> operator op(const _spy_lanes<T>& a, SPY_ONE b)                                       \
    {                                                                                                                  \
        return a op _spy_lanes<T>(b);                                                                                  \
    }                                                                                                                  \
    template <class T>                                                                                                 \
    SPY_LANE_INLINE _spy_lanes<T> operator op(SPY_ONE a, const _spy_lanes<T>& b)                                       \
    {                                                                                                                  \
        return _spy_lanes<T>(a) op b;                                                                                  \
    }
SPY_LANES_OP(+)
SPY_LANES_OP(-)
SPY_LANES_OP(*)
SPY_LANES_OP(&)
SPY_LANES_OP(|)
SPY_LANES_OP(^)

template <class T>
SPY_LANE_INLINE _spy_lanes<T> operator~(const _spy_lanes<T>& a)
{
    _spy_lanes<T> r;
    SPY_EACH_PART(k, T, r.v[k] = ~a.v[k]);
    return r;
}
// As processors do for one number: by as many bits as there are left of the count's.
#define SPY_LANES_SHIFT(op)                                                                                            \
    template <class T, class U>                                                                                        \
    SPY_LANE_INLINE _spy_lanes<T> operator op(const _spy_lanes<T>& a, const U& b)                                      \
    {                                                                                                                  \
        const _spy_lanes<T> by = _spy_lanes<T>(b) & _spy_lanes<T>(T(sizeof(T) * 8 - 1));                               \
        _spy_lanes<T> r;                                                                                               \
        SPY_EACH_PART(k, T, r.v[k] = a.v[k] op by.v[k]);                                                               \
        return r;                                                                                                      \
    }                                                                                                                  \
    template <class T, class U>                                                                                        \
    SPY_LANE_INLINE _spy_lanes<typename _spy_number<T>::type> operator op(const T& a, const _spy_lanes<U>& b)          \
    {                                                                                                                  \
        return _spy_lanes<T>(a) op b;                                                                                  \
    }
template <class T>
struct _spy_number { };
template <>
struct _spy_number<int32_t> {
    typedef int32_t type;
};
template <>
struct _spy_number<uint32_t> {
    typedef uint32_t type;
};
template <>
struct _spy_number<int64_t> {
    typedef int64_t type;
};
template <>
struct _spy_number<uint64_t> {
    typedef uint64_t type;
};
SPY_LANES_SHIFT(<<)
SPY_LANES_SHIFT(>>)

#if SPY_BIT_MASKS
#define SPY_COMPARED(op, integer, floating, a, b) _spy_lane_mask<T>::template compare<integer, floating>(a, b)
#else
#define SPY_COMPARED(op, integer, floating, a, b) a op b
#endif
#define SPY_LANES_COMPARE(op, integer, floating)                                                                       \
    template <class T>                                                                                                 \
    SPY_LANE_INLINE _spy_mask operator op(const _spy_lanes<T>& a, const _spy_lanes<T>& b)                              \
    {                                                                                                                  \
        _spy_mask r;                                                                                                   \
        SPY_EACH_PART(k, T, _spy_lane_mask<T>::to(r, k, SPY_COMPARED(op, integer, floating, a.v[k], b.v[k])));         \
        return r;                                                                                                      \
    }                                                                                                                  \
    template <class T>                                                                                                 \
    SPY_LANE_INLINE _spy_mask operator op(const _spy_lanes<T>& a, SPY_ONE b)                                           \
    {                                                                                                                  \
        return a op _spy_lanes<T>(b);                                                                                  \
    }                                                                                                                  \
    template <class T>                                                                                                 \
    SPY_LANE_INLINE _spy_mask operator op(SPY_ONE a, const _spy_lanes<T>& b)                                           \
    {                                                                                                                  \
        return _spy_lanes<T>(a) op b;                                                                                  \
    }
SPY_LANES_COMPARE(<, 1, 1)
SPY_LANES_COMPARE(<=, 2, 2)
SPY_LANES_COMPARE(>, 6, 14)
SPY_LANES_COMPARE(>=, 5, 13)
SPY_LANES_COMPARE(==, 0, 0)
SPY_LANES_COMPARE(!=, 4, 4)

template <class T>
SPY_LANE_INLINE _spy_lanes<T> operator-(const _spy_lanes<T>& a)
{
    _spy_lanes<T> r;
    SPY_EACH_PART(k, T, r.v[k] = -a.v[k]);
    return r;
}
SPY_LANE_INLINE _spy_mask operator!(const _spy_mask& a)
{
    _spy_mask r;
    SPY_EACH_PART(k, bool, r.v[k] = ~a.v[k]);
    return r;
}
SPY_LANE_INLINE _spy_mask operator&&(const _spy_mask& a, const _spy_mask& b) { return a & b; }
SPY_LANE_INLINE _spy_mask operator||(const _spy_mask& a, const _spy_mask& b) { return a | b; }

template <class T>
SPY_LANE_INLINE _spy_lanes<T> _spy_pick(const _spy_mask& m, const _spy_lanes<T>& a, const _spy_lanes<T>& b)
{
    _spy_lanes<T> r;
    SPY_EACH_PART(k, T, r.v[k] = _spy_lane_mask<T>::pick(m, k, a.v[k], b.v[k]));
    return r;
}
template <class T>
SPY_LANE_INLINE void _spy_set(const _spy_mask& m, _spy_lanes<T>& to, const _spy_lanes<T>& from)
{
    to = _spy_pick(m, from, to);
}
template <class T>
SPY_LANE_INLINE void _spy_set(const _spy_mask& m, _spy_lanes<T>& to, SPY_ONE from)
{
    to = _spy_pick(m, _spy_lanes<T>(from), to);
}
template <class T, int N>
SPY_LANE_INLINE void _spy_set(const _spy_mask& m, Vector<_spy_lanes<T>, N>& to, const Vector<_spy_lanes<T>, N>& from)
{
    for (int i = 0; i < N; i++)
        _spy_set(m, to[i], from[i]);
}
template <class T, int N>
SPY_LANE_INLINE void _spy_set(const _spy_mask& m, Vector<_spy_lanes<T>, N>& to, const Vector<T, N>& from)
{
    for (int i = 0; i < N; i++)
        _spy_set(m, to[i], from[i]);
}
/// Where the mask is not set.
template <class T>
SPY_LANE_INLINE void _spy_set_unless(const _spy_mask& m, _spy_lanes<T>& to, const _spy_lanes<T>& from)
{
    to = _spy_pick(m, to, from);
}
template <class T>
SPY_LANE_INLINE void _spy_set_unless(const _spy_mask& m, _spy_lanes<T>& to, SPY_ONE from)
{
    to = _spy_pick(m, to, _spy_lanes<T>(from));
}
template <class T, int N, class U>
SPY_LANE_INLINE void _spy_set_unless(const _spy_mask& m, Vector<_spy_lanes<T>, N>& to, const Vector<U, N>& from)
{
    for (int i = 0; i < N; i++)
        _spy_set_unless(m, to[i], from[i]);
}

// --- divisions: those of integers ask for lanes that take part (divisions_cpp.h)
#ifdef SPY_DIVISION_INLINE

struct _spy_over {
    const _spy_mask& mask;
};
template <class A>
struct _spy_lane_dividend {
    const A& value;
    const _spy_mask& mask;
};
template <class T>
SPY_LANE_INLINE _spy_lane_dividend<_spy_lanes<T>> operator/(const _spy_lanes<T>& a, _spy_over by)
{
    return {a, by.mask};
}
template <class T, int N>
SPY_LANE_INLINE _spy_lane_dividend<Vector<T, N>> operator/(const Vector<T, N>& a, _spy_over by)
{
    return {a, by.mask};
}
template <class T>
SPY_LANE_INLINE _spy_lanes<T> operator/(_spy_lane_dividend<_spy_lanes<T>> a, const _spy_lanes<T>& b)
{
    _spy_lanes<T> r{};
    if constexpr (T(1) / T(2) != T(0)) {
        SPY_EACH_PART(k, T, r.v[k] = a.value.v[k] / b.v[k]);
    } else {
        for (int i = 0; i < SPY_LANES; i++)
            if (a.mask.get(i))
                r.put(i, T(a.value.get(i) / _spy_by / b.get(i)));
    }
    return r;
}
template <class T>
SPY_LANE_INLINE _spy_lane_dividend<_spy_lanes<T>> operator%(const _spy_lanes<T>& a, _spy_over by)
{
    return {a, by.mask};
}
template <class T>
SPY_LANE_INLINE _spy_lanes<T> operator%(_spy_lane_dividend<_spy_lanes<T>> a, const _spy_lanes<T>& b)
{
    _spy_lanes<T> r{};
    for (int i = 0; i < SPY_LANES; i++)
        if (a.mask.get(i))
            r.put(i, T(a.value.get(i) % _spy_by % b.get(i)));
    return r;
}
template <class T>
SPY_LANE_INLINE _spy_lanes<T> operator%(_spy_lane_dividend<_spy_lanes<T>> a, SPY_ONE b)
{
    return a % _spy_lanes<T>(b);
}
template <class T>
SPY_LANE_INLINE _spy_lanes<T> operator/(_spy_lane_dividend<_spy_lanes<T>> a, SPY_ONE b)
{
    return a / _spy_lanes<T>(b);
}
template <class T>
SPY_LANE_INLINE _spy_lane_dividend<T> operator/(const T& a, _spy_over by)
{
    return {a, by.mask};
}
template <class T>
SPY_LANE_INLINE _spy_lane_dividend<T> operator%(const T& a, _spy_over by)
{
    return {a, by.mask};
}
template <class U, class T>
SPY_LANE_INLINE _spy_lanes<T> operator/(_spy_lane_dividend<U> a, const _spy_lanes<T>& b)
{
    return _spy_lanes<T>(T(a.value)) / _spy_over{a.mask} / b;
}
template <class U, class T>
SPY_LANE_INLINE _spy_lanes<T> operator%(_spy_lane_dividend<U> a, const _spy_lanes<T>& b)
{
    return _spy_lanes<T>(T(a.value)) % _spy_over{a.mask} % b;
}
template <class T, int N>
SPY_LANE_INLINE Vector<_spy_lanes<T>, N> operator/(_spy_lane_dividend<Vector<_spy_lanes<T>, N>> a,
                                                   const Vector<_spy_lanes<T>, N>& b)
{
    Vector<_spy_lanes<T>, N> r;
    for (int i = 0; i < N; i++)
        r[i] = a.value[i] / _spy_over{a.mask} / b[i];
    return r;
}
#endif
/// By a number that stands there.
template <class T>
SPY_LANE_INLINE _spy_lanes<T> operator/(const _spy_lanes<T>& a, SPY_ONE b)
{
    _spy_lanes<T> r;
    SPY_EACH_PART(k, T, r.v[k] = a.v[k] / b);
    return r;
}

template <class T>
SPY_LANE_INLINE _spy_lanes<T> operator%(const _spy_lanes<T>& a, SPY_ONE b)
{
    _spy_lanes<T> r;
    SPY_EACH_PART(k, T, r.v[k] = a.v[k] % b);
    return r;
}

// --- vectors of lanes, and beside them vectors that are the same for all

#define SPY_LANES_VECTOR(op)                                                                                           \
    template <class T, int N>                                                                                          \
    SPY_LANE_INLINE Vector<_spy_lanes<T>, N> operator op(const Vector<_spy_lanes<T>, N>& a,                            \
                                                         const Vector<_spy_lanes<T>, N>& b)                            \
    {                                                                                                                  \
        Vector<_spy_lanes<T>, N> r;                                                                                    \
        for (int i = 0; i < N; i++)                                                                                    \
            r[i] = a[i] op b[i];                                                                                       \
        return r;                                                                                                      \
    }                                                                                                                  \
    template <class T, int N>                                                                                          \
    SPY_LANE_INLINE Vector<_spy_lanes<T>, N> operator op(const Vector<_spy_lanes<T>, N>& a, const Vector<T, N>& b)     \
    {                                                                                                                  \
        Vector<_spy_lanes<T>, N> r;                                                                                    \
        for (int i = 0; i < N; i++)                                                                                    \
            r[i] = a[i] op b[i];                                                                                       \
        return r;                                                                                                      \
    }                                                                                                                  \
    template <class T, int N>                                                                                          \
    SPY_LANE_INLINE Vector<_spy_lanes<T>, N> operator op(const Vector<T, N>& a, const Vector<_spy_lanes<T>, N>& b)     \
    {                                                                                                                  \
        Vector<_spy_lanes<T>, N> r;                                                                                    \
        for (int i = 0; i < N; i++)                                                                                    \
            r[i] = a[i] op b[i];                                                                                       \
        return r;                                                                                                      \
    }
SPY_LANES_VECTOR(+)
SPY_LANES_VECTOR(-)
SPY_LANES_VECTOR(*)
template <class T, int N>
SPY_LANE_INLINE Vector<_spy_lanes<T>, N> operator-(const Vector<_spy_lanes<T>, N>& a)
{
    Vector<_spy_lanes<T>, N> r;
    for (int i = 0; i < N; i++)
        r[i] = -a[i];
    return r;
}

// --- functions

/// As fminf and fmaxf of glibc: the other one where one is no number.
template <class T>
SPY_LANE_INLINE _spy_lanes<T> _spy_lanes_min(const _spy_lanes<T>& a, const _spy_lanes<T>& b)
{
    return _spy_pick(a < b, a, _spy_pick(b != b, a, b));
}
template <class T>
SPY_LANE_INLINE _spy_lanes<T> _spy_lanes_max(const _spy_lanes<T>& a, const _spy_lanes<T>& b)
{
    return _spy_pick(a > b, a, _spy_pick(b != b, a, b));
}
#define SPY_LANES_2(F, G, T)                                                                                           \
    SPY_LANE_INLINE _spy_lanes<T> F(const _spy_lanes<T>& a, const _spy_lanes<T>& b) { return G(a, b); }
SPY_LANES_2(F32_min, _spy_lanes_min, float)
SPY_LANES_2(F32_max, _spy_lanes_max, float)
SPY_LANES_2(I32_min, _spy_lanes_min, int32_t)
SPY_LANES_2(I32_max, _spy_lanes_max, int32_t)
SPY_LANES_2(U32_min, _spy_lanes_min, uint32_t)
SPY_LANES_2(U32_max, _spy_lanes_max, uint32_t)
#define SPY_LANES_1(F, call)                                                                                           \
    SPY_LANE_INLINE _spy_lanes<float> F(const _spy_lanes<float>& a)                                                    \
    {                                                                                                                  \
        _spy_lanes<float> r;                                                                                           \
        const float* from = reinterpret_cast<const float*>(a.v);                                                       \
        float* to = reinterpret_cast<float*>(r.v);                                                                     \
        for (int i = 0; i < SPY_LANES; i++)                                                                            \
            to[i] = call(from[i]);                                                                                     \
        return r;                                                                                                      \
    }
SPY_LANES_1(F32_sqrt, __builtin_sqrtf)
SPY_LANES_1(F32_floor, __builtin_floorf)
SPY_LANES_1(F32_ceil, __builtin_ceilf)
SPY_LANES_1(F32_trunc, __builtin_truncf)
SPY_LANE_INLINE _spy_lanes<float> F32_frac(const _spy_lanes<float>& a) { return a - F32_floor(a); }
SPY_LANE_INLINE _spy_lanes<float> F32_abs(const _spy_lanes<float>& a)
{
    _spy_lanes<float> r;
    typedef _spy_lanes<int>::Part Bits;
    SPY_EACH_PART(k, float, r.v[k] = (_spy_lanes<float>::Part)((Bits)a.v[k] & 0x7fffffff));
    return r;
}

// --- values of other types, and parts of values

/// One whole value for each lane, of types that lanes do not compute.
template <class T>
struct _spy_bag {
    T v[SPY_LANES];
};
/// One value of a type for each lane. Structs of kernels have more of these.
template <class T>
struct _spy_many {
    typedef _spy_bag<T> type;
};
#define SPY_LANES_OF(T)                                                                                                \
    template <>                                                                                                        \
    struct _spy_many<T> {                                                                                              \
        typedef _spy_lanes<T> type;                                                                                    \
    };                                                                                                                 \
    template <int N>                                                                                                   \
    struct _spy_many<Vector<T, N>> {                                                                                   \
        typedef Vector<_spy_lanes<T>, N> type;                                                                         \
    };
SPY_LANES_OF(float)
SPY_LANES_OF(double)
SPY_LANES_OF(int32_t)
SPY_LANES_OF(uint32_t)
SPY_LANES_OF(int64_t)
SPY_LANES_OF(uint64_t)
SPY_LANES_OF(bool)
template <class T, auto N>
struct _spy_many<FixedArray<T, N>> {
    typedef FixedArray<typename _spy_many<T>::type, N> type;
};

template <class T>
SPY_LANE_INLINE T _spy_get(const _spy_lanes<T>& a, int i)
{
    return T(a.get(i));
}
template <class T>
SPY_LANE_INLINE const T& _spy_get(const _spy_bag<T>& a, int i)
{
    return a.v[i];
}
template <class T>
SPY_LANE_INLINE void _spy_put(_spy_lanes<T>& a, int i, SPY_ONE x)
{
    a.put(i, sizeof(T) == 1 ? typename _spy_lanes<T>::Lane(-int(x)) : typename _spy_lanes<T>::Lane(x));
}
template <class T>
SPY_LANE_INLINE void _spy_put(_spy_bag<T>& a, int i, const SPY_ONE& x)
{
    a.v[i] = x;
}
template <class T>
SPY_LANE_INLINE void _spy_fill(_spy_lanes<T>& a, SPY_ONE x)
{
    a = _spy_lanes<T>(x);
}
template <class T>
SPY_LANE_INLINE void _spy_fill(_spy_bag<T>& a, const SPY_ONE& x)
{
    for (int i = 0; i < SPY_LANES; i++)
        a.v[i] = x;
}
template <class T>
SPY_LANE_INLINE void _spy_set(const _spy_mask& m, _spy_bag<T>& to, const _spy_bag<T>& from)
{
    for (int i = 0; i < SPY_LANES; i++)
        if (m.get(i))
            to.v[i] = from.v[i];
}

// Vectors and arrays: part by part.
template <class T, int N>
SPY_LANE_INLINE Vector<T, N> _spy_get(const Vector<_spy_lanes<T>, N>& a, int i)
{
    Vector<T, N> r;
    for (int n = 0; n < N; n++)
        r[n] = _spy_get(a[n], i);
    return r;
}
template <class T, int N>
SPY_LANE_INLINE void _spy_put(Vector<_spy_lanes<T>, N>& a, int i, const Vector<T, N>& x)
{
    for (int n = 0; n < N; n++)
        _spy_put(a[n], i, x[n]);
}
template <class T, int N>
SPY_LANE_INLINE void _spy_fill(Vector<_spy_lanes<T>, N>& a, const Vector<T, N>& x)
{
    for (int n = 0; n < N; n++)
        _spy_fill(a[n], x[n]);
}
template <class T>
T _spy_plain(const T&); // for its type
template <class L, auto N>
SPY_LANE_INLINE auto _spy_get(const FixedArray<L, N>& a, int i)
{
    FixedArray<decltype(_spy_plain(_spy_get(a[0], i))), N> r;
    for (int n = 0; n < int(N); n++)
        r[n] = _spy_get(a[n], i);
    return r;
}
template <class L, class T, auto N>
SPY_LANE_INLINE void _spy_put(FixedArray<L, N>& a, int i, const FixedArray<T, N>& x)
{
    for (int n = 0; n < int(N); n++)
        _spy_put(a[n], i, x[n]);
}
template <class L, class T, auto N>
SPY_LANE_INLINE void _spy_fill(FixedArray<L, N>& a, const FixedArray<T, N>& x)
{
    for (int n = 0; n < int(N); n++)
        _spy_fill(a[n], x[n]);
}
template <class L, auto N>
SPY_LANE_INLINE void _spy_set(const _spy_mask& m, FixedArray<L, N>& to, const FixedArray<L, N>& from)
{
    for (int n = 0; n < int(N); n++)
        _spy_set(m, to[n], from[n]);
}
template <class T>
SPY_LANE_INLINE typename _spy_many<T>::type _spy_all(const SPY_ONE& x)
{
    typename _spy_many<T>::type r;
    _spy_fill(r, x);
    return r;
}
template <class T, int N>
SPY_LANE_INLINE Vector<_spy_lanes<T>, N> _spy_pick(const _spy_mask& m, const Vector<_spy_lanes<T>, N>& a,
                                                   const Vector<_spy_lanes<T>, N>& b)
{
    Vector<_spy_lanes<T>, N> r;
    for (int i = 0; i < N; i++)
        r[i] = _spy_pick(m, a[i], b[i]);
    return r;
}

/// Of large values, vector by vector: functions of the C library take longer to begin.
template <class T, class U>
SPY_LANE_INLINE void _spy_copy(T& to, const U& from)
{
    if constexpr (sizeof(T) > 1024 && sizeof(T) == sizeof(U)) {
        typedef _spy_lanes<int>::Part Part;
        constexpr size_t whole = sizeof(T) / sizeof(Part) * sizeof(Part);
        for (size_t at = 0; at < whole; at += sizeof(Part)) {
            Part part;
            __builtin_memcpy(&part, reinterpret_cast<const char*>(&from) + at, sizeof part);
            __asm__("" : "+x"(part)); // stays a loop
            __builtin_memcpy(reinterpret_cast<char*>(&to) + at, &part, sizeof part);
        }
        __builtin_memcpy(reinterpret_cast<char*>(&to) + whole, reinterpret_cast<const char*>(&from) + whole,
                         sizeof(T) - whole);
    } else
        to = from;
}

struct _spy_at_place {
    char* bytes;
};
SPY_LANE_INLINE void* operator new(size_t, _spy_at_place at) { return at.bytes; }
/// Two values, of which a part is the same: that at `a` of the first, and at `b` of the second. The first one is needed
/// no longer when the second gets other parts.
template <class A, class B, size_t a, size_t b>
struct _spy_overlaid {
    static constexpr bool is_same = (a > b ? a - b : b - a) % SPY_VECTOR_BYTES == 0;
    static constexpr size_t size = (sizeof(A) + SPY_VECTOR_BYTES - 1) / SPY_VECTOR_BYTES * SPY_VECTOR_BYTES;
    static constexpr size_t one = is_same && b > a ? b - a : 0, two = !is_same ? size : a > b ? a - b : 0;
    alignas(SPY_VECTOR_BYTES) char bytes[one + sizeof(A) > two + sizeof(B) ? one + sizeof(A) : two + sizeof(B)];

    SPY_LANE_INLINE _spy_at_place first() { return {bytes + one}; }
    SPY_LANE_INLINE B& second() { return *reinterpret_cast<B*>(bytes + two); }
};

// --- memory: pointers are bags

template <class T, class U>
SPY_LANE_INLINE _spy_bag<T*> _spy_moved(T* from, const _spy_lanes<U>& by)
{
    _spy_bag<T*> r;
    for (int i = 0; i < SPY_LANES; i++)
        r.v[i] = from + by.get(i);
    return r;
}
template <class T, class U>
SPY_LANE_INLINE _spy_bag<T*> _spy_moved(const _spy_bag<T*>& from, const _spy_lanes<U>& by)
{
    _spy_bag<T*> r;
    for (int i = 0; i < SPY_LANES; i++)
        r.v[i] = from.v[i] + by.get(i);
    return r;
}
template <class T>
SPY_LANE_INLINE _spy_bag<T*> _spy_moved(const _spy_bag<T*>& from, int64_t by)
{
    _spy_bag<T*> r;
    for (int i = 0; i < SPY_LANES; i++)
        r.v[i] = from.v[i] + by;
    return r;
}
/// What lanes read that do not take part.
alignas(64) static const char _spy_zeros[256] = {};
/// What pointers point to. Without branches: processors guess masks wrongly more often than a read takes.
template <class T>
SPY_LANE_INLINE typename _spy_many<T>::type _spy_read(const _spy_mask& m, const _spy_bag<T*>& from)
{
    static_assert(sizeof(T) <= sizeof _spy_zeros && sizeof from == sizeof(_spy_lanes<int64_t>));
    _spy_lanes<int64_t> at;
    __builtin_memcpy(at.v, from.v, sizeof at);
    at = _spy_pick(m, at, _spy_lanes<int64_t>(reinterpret_cast<int64_t>(_spy_zeros)));
    typename _spy_many<T>::type r;
    for (int i = 0; i < SPY_LANES; i++)
        _spy_put(r, i, *reinterpret_cast<const T*>(at.get(i)));
    return r;
}

/// The largest of the numbers of lanes that take part, or `least`.
template <class T>
SPY_LANE_INLINE T _spy_most(const _spy_mask& m, const _spy_lanes<T>& x, SPY_ONE least)
{
    const _spy_lanes<T> all = _spy_pick(m & (x > least), x, _spy_lanes<T>(least));
    T most = least;
    for (int i = 0; i < SPY_LANES; i++)
        most = all.get(i) > most ? all.get(i) : most;
    return most;
}
/// A row of an array, where it may be that no lane asks for it.
template <class L, auto N>
SPY_LANE_INLINE L& _spy_row(FixedArray<L, N>& a, uint32_t at)
{
    return a[at < uint32_t(N) ? at : 0];
}
template <class L, auto N>
SPY_LANE_INLINE const L& _spy_row(const FixedArray<L, N>& a, uint32_t at)
{
    return a[at < uint32_t(N) ? at : 0];
}
/// The first value of a row, and one for lanes that have none; beyond the array, as any other.
template <class L, auto N>
SPY_LANE_INLINE void _spy_first(const _spy_mask& m, FixedArray<L, N>& a, int32_t at, const L& x, const L& rest)
{
    if (uint32_t(at) < uint32_t(N))
        a[at] = _spy_pick(m, x, rest);
    else
        _spy_set(m, a[at], x);
}
template <class L, auto N>
SPY_LANE_INLINE void _spy_fill_from(FixedArray<L, N>& a, int32_t at, const L& x)
{
    for (; at < int32_t(N); at++)
        a[at] = x;
}
/// A row that is read again, with the note of what is beyond the array.
template <class L, auto N>
SPY_LANE_INLINE const L& _spy_again(const L& row, const FixedArray<L, N>& a, uint32_t at)
{
    (void)a[at];
    return row;
}
/// The number that all lanes that take part have; -1 where they differ, or where none does.
template <class U>
SPY_LANE_INLINE int64_t _spy_common(const _spy_mask& m, const _spy_lanes<U>& x)
{
    int first = 0;
#if SPY_BIT_MASKS
    const auto bits = m.bits();
    first = bits ? __builtin_ctzll(bits) : SPY_LANES;
#else
    while (first < SPY_LANES && !m.get(first))
        first++;
#endif
    if (first == SPY_LANES)
        return -1;
    const U one = x.get(first);
    return _spy_any(m & (x != _spy_lanes<U>(one))) ? -1 : int64_t(one);
}
/// Elements of arrays of lanes, and of an array that is the same for all.
template <class T, auto N, class U>
SPY_LANE_INLINE _spy_lanes<T> _spy_at(const _spy_mask& m, const FixedArray<_spy_lanes<T>, N>& a,
                                      const _spy_lanes<U>& at)
{
    const int64_t common = _spy_common(m, at);
    if (common >= 0)
        return a[common];
    const _spy_lanes<U> from = _spy_pick(m, at, _spy_lanes<U>(U(0)));
    _spy_lanes<T> r;
    for (int i = 0; i < SPY_LANES; i++)
        r.put(i, a[from.get(i)].get(i));
    return r;
}
template <class T, auto N, class U>
SPY_LANE_INLINE _spy_lanes<T> _spy_at(const _spy_mask& m, const FixedArray<T, N>& a, const _spy_lanes<U>& at)
{
    const _spy_lanes<U> from = _spy_pick(m, at, _spy_lanes<U>(U(0)));
    _spy_lanes<T> r;
    for (int i = 0; i < SPY_LANES; i++)
        r.put(i, a[from.get(i)]);
    return r;
}
template <class T, auto N, class U>
SPY_LANE_INLINE void _spy_put_at(const _spy_mask& m, FixedArray<_spy_lanes<T>, N>& a, const _spy_lanes<U>& at,
                                 const _spy_lanes<T>& x)
{
    const int64_t common = _spy_common(m, at);
    if (common >= 0) {
        _spy_set(m, a[common], x);
        return;
    }
    for (int i = 0; i < SPY_LANES; i++)
        if (m.get(i))
            a[at.get(i)].put(i, x.get(i));
}

// --- one lane after the other

// The forms with `_alone` stay loops over single numbers: compilers make no vector instructions around an asm
// statement.
#if SPY_BIT_MASKS
#define SPY_EACH_TAKING_PART(i, m, ...)                                                                                \
    for (auto left = m.bits(); left; left &= left - 1) {                                                               \
        const int i = __builtin_ctzll(left);                                                                           \
        __VA_ARGS__;                                                                                                   \
    }
#else
#define SPY_EACH_TAKING_PART(i, m, ...)                                                                                \
    for (int i = 0; i < SPY_LANES; i++)                                                                                \
        if (m.get(i)) {                                                                                                \
            __VA_ARGS__;                                                                                               \
        }
#endif
template <class F>
SPY_LANE_INLINE void _spy_for_each_alone(const _spy_mask& m, F f)
{
    const _spy_mask taking = m;
    SPY_EACH_TAKING_PART(i, taking, __asm__ volatile(""); f(i));
}
template <class F>
SPY_LANE_INLINE auto _spy_each_alone(const _spy_mask& m, F f)
{
    const _spy_mask taking = m;
    typename _spy_many<decltype(f(0))>::type r;
    SPY_EACH_TAKING_PART(i, taking, __asm__ volatile(""); _spy_put(r, i, f(i)));
    return r;
}
template <class F>
SPY_LANE_INLINE void _spy_for_each(const _spy_mask& m, F f)
{
    for (int i = 0; i < SPY_LANES; i++)
        if (m.get(i))
            f(i);
}
template <class F>
SPY_LANE_INLINE auto _spy_each(const _spy_mask& m, F f)
{
    typename _spy_many<decltype(f(0))>::type r;
    for (int i = 0; i < SPY_LANES; i++)
        if (m.get(i))
            _spy_put(r, i, f(i));
    return r;
}
#endif
