#pragma once
#include "math/matrix.h"

#include <algorithm>

namespace spy {

/// x i + y j + z k + w; rotations are unit quaternions.
template <typename T>
struct Quat {
    T x, y, z, w;

    static constexpr Quat identity() { return {0, 0, 0, 1}; }
    constexpr Vector<T, 3> axis_part() const { return {{x, y, z}}; }
};

using Quaternion = Quat<float>;
static_assert(sizeof(Quaternion) == 16 && std::is_trivially_copyable_v<Quaternion>);

template <typename T>
constexpr Quat<T> scaled(const Quat<T>& q, T s)
{
    return {q.x * s, q.y * s, q.z * s, q.w * s};
}

template <typename T>
constexpr T dot(const Quat<T>& a, const Quat<T>& b)
{
    return a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
}

template <typename T>
constexpr Quat<T> conjugate(const Quat<T>& q)
{
    return {-q.x, -q.y, -q.z, q.w};
}

/// Hamilton product: first `b`, then `a`.
template <typename T>
constexpr Quat<T> mul(const Quat<T>& a, const Quat<T>& b)
{
    return {a.w * b.x + a.x * b.w + a.y * b.z - a.z * b.y, a.w * b.y + a.y * b.w + a.z * b.x - a.x * b.z,
            a.w * b.z + a.z * b.w + a.x * b.y - a.y * b.x, a.w * b.w - a.x * b.x - a.y * b.y - a.z * b.z};
}

/// v + 2 (w (u x v) + u x (u x v)) with u the vector part.
template <typename T>
constexpr Vector<T, 3> rotate(const Quat<T>& q, const Vector<T, 3>& v)
{
    const Vector<T, 3> u = q.axis_part();
    const Vector<T, 3> uv = cross(u, v);
    return v + (uv * q.w + cross(u, uv)) * T(2);
}

template <typename T>
Matrix<T, 3, 3> matrix_from_quat(const Quat<T>& q)
{
    const T xx = q.x * q.x, yy = q.y * q.y, zz = q.z * q.z;
    const T xy = q.x * q.y, xz = q.x * q.z, yz = q.y * q.z;
    const T wx = q.w * q.x, wy = q.w * q.y, wz = q.w * q.z;
    return {{{1 - 2 * (yy + zz), 2 * (xy - wz), 2 * (xz + wy)},
             {2 * (xy + wz), 1 - 2 * (xx + zz), 2 * (yz - wx)},
             {2 * (xz - wy), 2 * (yz + wx), 1 - 2 * (xx + yy)}}};
}

/// The largest of the four components is taken from the diagonal, so that no division is by a small number.
template <typename T>
Quat<T> quat_from_matrix(const Matrix<T, 3, 3>& m)
{
    const T squares[4] = {1 + m[0][0] - m[1][1] - m[2][2], 1 - m[0][0] + m[1][1] - m[2][2],
                          1 - m[0][0] - m[1][1] + m[2][2], 1 + m[0][0] + m[1][1] + m[2][2]};
    const int largest = int(std::max_element(squares, squares + 4) - squares);
    const T twice = std::sqrt(squares[largest]);
    const T s = T(0.5) / twice;
    const T wx = m[2][1] - m[1][2], wy = m[0][2] - m[2][0], wz = m[1][0] - m[0][1];
    const T xy = m[0][1] + m[1][0], xz = m[0][2] + m[2][0], yz = m[1][2] + m[2][1];
    switch (largest) {
    case 0: return {twice / 2, xy * s, xz * s, wx * s};
    case 1: return {xy * s, twice / 2, yz * s, wy * s};
    case 2: return {xz * s, yz * s, twice / 2, wz * s};
    default: return {wx * s, wy * s, wz * s, twice / 2};
    }
}

/// Constant-speed interpolation along the shorter arc.
template <typename T>
Quat<T> slerp(const Quat<T>& a, Quat<T> b, T t)
{
    T cosine = dot(a, b);
    if (cosine < 0) {
        b = scaled(b, T(-1));
        cosine = -cosine;
    }
    T wa = 1 - t, wb = t;
    if (cosine < T(1) - T(1e-9)) {
        const T angle = std::acos(cosine);
        wa = std::sin((1 - t) * angle) / std::sin(angle);
        wb = std::sin(t * angle) / std::sin(angle);
    }
    return {a.x * wa + b.x * wb, a.y * wa + b.y * wb, a.z * wa + b.z * wb, a.w * wa + b.w * wb};
}

/// (pitch, yaw, roll): the angles about x, y, z with R = Rz(roll) Ry(yaw) Rx(pitch).
template <typename T>
Vector<T, 3> euler_angles(const Quat<T>& q)
{
    const T xx = q.x * q.x, yy = q.y * q.y, zz = q.z * q.z, ww = q.w * q.w;
    const T sine = std::clamp(T(-2) * (q.x * q.z - q.w * q.y), T(-1), T(1));
    const T py = 2 * (q.y * q.z + q.w * q.x), px = ww - xx - yy + zz;
    // At yaw = +-90 degrees only a combination of pitch and roll is defined: all of it goes to pitch.
    if (std::fabs(sine) > T(1) - T(1e-7))
        return {{2 * std::atan2(q.x, q.w), std::asin(sine), 0}};
    return {{std::atan2(py, px), std::asin(sine), std::atan2(2 * (q.x * q.y + q.w * q.z), ww + xx - yy - zz)}};
}

template <typename T>
Quat<T> quat_from_euler_angles(const Vector<T, 3>& angles)
{
    T c[3], s[3];
    for (int i = 0; i < 3; ++i) {
        c[i] = std::cos(angles[i] / 2);
        s[i] = std::sin(angles[i] / 2);
    }
    return {s[0] * c[1] * c[2] - c[0] * s[1] * s[2], c[0] * s[1] * c[2] + s[0] * c[1] * s[2],
            c[0] * c[1] * s[2] - s[0] * s[1] * c[2], c[0] * c[1] * c[2] + s[0] * s[1] * s[2]};
}

/// `axis` must have length 1.
template <typename T>
Quat<T> quat_from_angle_axis(T angle, const Vector<T, 3>& axis)
{
    const T s = std::sin(angle / 2);
    return {axis[0] * s, axis[1] * s, axis[2] * s, std::cos(angle / 2)};
}

/// The shortest rotation that takes the unit vector `from` to the unit vector `to`.
template <typename T>
Quat<T> quat_between(const Vector<T, 3>& from, const Vector<T, 3>& to)
{
    const T cosine = dot(from, to);
    if (cosine < T(-1) + T(1e-12)) {
        // Opposite vectors: half a turn about any axis that is perpendicular.
        Vector<T, 3> axis = cross(Vector<T, 3>{{0, 0, 1}}, from);
        if (dot(axis, axis) < T(1e-6))
            axis = cross(Vector<T, 3>{{1, 0, 0}}, from);
        axis = normalize(axis);
        return {axis[0], axis[1], axis[2], 0};
    }
    const T s = std::sqrt((1 + cosine) * 2);
    const Vector<T, 3> axis = cross(from, to) * (1 / s);
    return {axis[0], axis[1], axis[2], s / 2};
}

} // namespace spy
