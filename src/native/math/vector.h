#pragma once
#include "math/half.h"

#include <cmath>
#include <cstdint>
#include <type_traits>

namespace spy {

/// N packed components; the layout of host arrays, so it can be copied bytewise.
template <typename T, int N>
struct Vector {
    static constexpr int size = N;
    using Element = T;

    T data[N];

    constexpr T& operator[](int i) { return data[i]; }
    constexpr const T& operator[](int i) const { return data[i]; }
    friend constexpr bool operator==(const Vector& a, const Vector& b) = default;
};

using bool3 = Vector<bool, 3>;
using bool4 = Vector<bool, 4>;
using int4 = Vector<int32_t, 4>;
using uint3 = Vector<uint32_t, 3>;
using uint4 = Vector<uint32_t, 4>;
using float2 = Vector<float, 2>;
using float3 = Vector<float, 3>;
using float4 = Vector<float, 4>;
using double2 = Vector<double, 2>;
using double3 = Vector<double, 3>;
using double4 = Vector<double, 4>;
static_assert(sizeof(float3) == 12 && sizeof(bool3) == 3 && sizeof(Vector<Float16, 3>) == 6);
static_assert(std::is_trivially_copyable_v<float3>);

template <typename T, int N>
constexpr Vector<T, N> operator+(const Vector<T, N>& a, const Vector<T, N>& b)
{
    Vector<T, N> r{};
    for (int i = 0; i < N; ++i)
        r[i] = a[i] + b[i];
    return r;
}

template <typename T, int N>
constexpr Vector<T, N> operator-(const Vector<T, N>& a, const Vector<T, N>& b)
{
    Vector<T, N> r{};
    for (int i = 0; i < N; ++i)
        r[i] = a[i] - b[i];
    return r;
}

template <typename T, int N>
constexpr Vector<T, N> operator*(const Vector<T, N>& a, T s)
{
    Vector<T, N> r{};
    for (int i = 0; i < N; ++i)
        r[i] = a[i] * s;
    return r;
}

template <typename T, int N>
constexpr Vector<T, N> operator-(const Vector<T, N>& a)
{
    return a * T(-1);
}

template <typename T, int N>
constexpr T dot(const Vector<T, N>& a, const Vector<T, N>& b)
{
    T sum{};
    for (int i = 0; i < N; ++i)
        sum += a[i] * b[i];
    return sum;
}

template <typename T>
constexpr Vector<T, 3> cross(const Vector<T, 3>& a, const Vector<T, 3>& b)
{
    return {{a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]}};
}

template <typename T, int N>
T length(const Vector<T, N>& v)
{
    return std::sqrt(dot(v, v));
}

/// The zero vector gives NaN, as in Slang.
template <typename T, int N>
Vector<T, N> normalize(const Vector<T, N>& v)
{
    return v * (T(1) / length(v));
}

} // namespace spy
