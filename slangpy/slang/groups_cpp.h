// Barriers, waves and atomics of kernels on the CPU, called by the text that slangpy_host.slang emits. Goes in front of the code
// of kernels that use them, after Slang's own prelude. SPY_WAVE_LANES is 1 or 32.
#pragma once

#include <type_traits>

inline void _spy_fence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void _spy_group_sync() { _spy_host->group_sync(); }

struct _spy_group {
    uint3 id;
    void *arguments, *globals;
};

#if SPY_WAVE_LANES == 1
#define _SPY_FOR_LANES(value, mask, values) \
    const uint32_t mask = 1; \
    const auto* const values = &(value);
inline uint32_t _spy_wave_lane() { return 0; }
#else
#define _SPY_FOR_LANES(value, mask, values) \
    std::remove_const_t<std::remove_reference_t<decltype(value)>> values[32]; \
    const uint32_t mask = _spy_host->wave_exchange(site, &(value), sizeof(value), values);
inline uint32_t _spy_wave_lane() { return _spy_host->wave_lane(); }
#endif

// --- element by element over scalars, vectors and matrices

template <class T> struct _spy_shape {
    static constexpr int count = 1;
    typedef T element;
    static T& at(T& v, int) { return v; }
};
template <class T, int N> struct _spy_shape<Vector<T, N>> {
    static constexpr int count = N;
    typedef T element;
    static T& at(Vector<T, N>& v, int i) { return *_slang_vector_get_element_ptr(&v, i); }
};
template <class T, int R, int C> struct _spy_shape<Matrix<T, R, C>> {
    static constexpr int count = R * C;
    typedef T element;
    static T& at(Matrix<T, R, C>& v, int i) { return *_slang_vector_get_element_ptr(&v.rows[i / C], i % C); }
};
template <class T> typename _spy_shape<T>::element& _spy_element(T& v, int i) { return _spy_shape<T>::at(v, i); }

struct _spy_sum {
    static constexpr int neutral = 0;
    template <class T> static T of(T a, T b) { return T(a + b); }
};
struct _spy_product {
    static constexpr int neutral = 1;
    template <class T> static T of(T a, T b) { return T(a * b); }
};
struct _spy_min { template <class T> static T of(T a, T b) { return b < a ? b : a; } };
struct _spy_max { template <class T> static T of(T a, T b) { return a < b ? b : a; } };
struct _spy_and { template <class T> static T of(T a, T b) { return T(a & b); } };
struct _spy_or { template <class T> static T of(T a, T b) { return T(a | b); } };
struct _spy_xor { template <class T> static T of(T a, T b) { return T(a ^ b); } };

/// Over the lanes of `among` that take part; `none` when there are none.
template <class Op, class T>
T _spy_wave_fold(uint32_t site, T value, uint32_t among, T none)
{
    (void)site;
    _SPY_FOR_LANES(value, mask, values)
    T result = none;
    bool first = true;
    for (uint32_t lane = 0; lane < SPY_WAVE_LANES; lane++) {
        if (!(mask & among & 1u << lane))
            continue;
        T other = values[lane];
        for (int i = 0; i < _spy_shape<T>::count; i++)
            _spy_element(result, i) = first ? _spy_element(other, i) : Op::of(_spy_element(result, i), _spy_element(other, i));
        first = false;
    }
    return result;
}
inline uint32_t _spy_lanes_before() { return (1u << _spy_wave_lane()) - 1u; }
template <class Op, class T> T _spy_wave_reduce(uint32_t site, uint32_t among, T value)
{
    return _spy_wave_fold<Op>(site, value, among, value);
}
template <class Op, class T> T _spy_wave_prefix(uint32_t site, uint32_t among, T value)
{
    T none;
    for (int i = 0; i < _spy_shape<T>::count; i++)
        _spy_element(none, i) = typename _spy_shape<T>::element(Op::neutral);
    return _spy_wave_fold<Op>(site, value, among & _spy_lanes_before(), none);
}

inline uint32_t _spy_wave_bits(uint32_t site, bool value)
{
    (void)site;
    _SPY_FOR_LANES(value, mask, values)
    uint32_t bits = 0;
    for (uint32_t lane = 0; lane < SPY_WAVE_LANES; lane++)
        bits |= uint32_t((mask >> lane & 1u) && values[lane]) << lane;
    return bits;
}
inline uint32_t _spy_count(uint32_t bits) { return uint32_t(__builtin_popcount(bits)); }
inline uint32_t _spy_wave_active(uint32_t site) { return _spy_wave_bits(site, true); }
inline Vector<uint32_t, 4> _spy_bits4(uint32_t bits) { return Vector<uint32_t, 4>(bits, 0u, 0u, 0u); }

/// The lane's value; one's own when it takes no part.
template <class T>
T _spy_wave_read(uint32_t site, T value, uint32_t from)
{
    (void)site;
    _SPY_FOR_LANES(value, mask, values)
    from %= SPY_WAVE_LANES;
    return mask >> from & 1u ? values[from] : value;
}
template <class T>
T _spy_wave_first(uint32_t site, T value)
{
    (void)site;
    _SPY_FOR_LANES(value, mask, values)
    return values[__builtin_ctz(mask)];
}
template <class T>
uint32_t _spy_wave_match(uint32_t site, T value)
{
    (void)site;
    _SPY_FOR_LANES(value, mask, values)
    uint32_t bits = 0;
    for (uint32_t lane = 0; lane < SPY_WAVE_LANES; lane++) {
        if (!(mask >> lane & 1u))
            continue;
        T other = values[lane];
        bool same = true;
        for (int i = 0; i < _spy_shape<T>::count; i++)
            same = same && _spy_element(other, i) == _spy_element(value, i);
        bits |= uint32_t(same) << lane;
    }
    return bits;
}
template <class T> bool _spy_wave_all_equal(uint32_t site, T value) { return _spy_wave_match(site, value) == _spy_wave_active(site); }

// --- atomics of floats, beside those of prelude_cpp.h

inline float _spy_fetch_add(float* to, float v) { return spy_atomics::add<uint32_t>(to, v); }
inline double _spy_fetch_add(double* to, double v) { return spy_atomics::add<uint64_t>(to, v); }
