#pragma once
// Builders of transforms. Matrices act on column vectors; projections are right-handed with depth 0 to 1.
#include "math/quaternion.h"

namespace spy {

enum class Handedness : uint8_t { right_handed, left_handed };

namespace math {

template <int N>
Matrix<double, N + 1, N + 1> translation(const Vector<double, N>& v)
{
    auto m = Matrix<double, N + 1, N + 1>::identity();
    for (int i = 0; i < N; ++i)
        m[i][N] = v[i];
    return m;
}

template <int N>
Matrix<double, N + 1, N + 1> scaling(const Vector<double, N>& v)
{
    auto m = Matrix<double, N + 1, N + 1>::identity();
    for (int i = 0; i < N; ++i)
        m[i][i] = v[i];
    return m;
}

inline double3x3 rotation_2d(double angle)
{
    const double c = std::cos(angle), s = std::sin(angle);
    return {{{c, -s, 0}, {s, c, 0}, {0, 0, 1}}};
}

/// Rodrigues' formula; `axis` must have length 1.
inline double4x4 rotation(double angle, const double3& axis)
{
    const double c = std::cos(angle), s = std::sin(angle), t = 1 - c;
    const double x = axis[0], y = axis[1], z = axis[2];
    return {{{t * x * x + c, t * x * y - s * z, t * x * z + s * y, 0},
             {t * x * y + s * z, t * y * y + c, t * y * z - s * x, 0},
             {t * x * z - s * y, t * y * z + s * x, t * z * z + c, 0},
             {0, 0, 0, 1}}};
}

/// World to view; the camera looks along -z (right-handed) or +z (left-handed), y is up.
inline double4x4 look_at(const double3& eye, const double3& center, const double3& up, Handedness handedness)
{
    const double3 forward = normalize(center - eye);
    const double3 z = handedness == Handedness::right_handed ? -forward : forward;
    const double3 x = normalize(cross(up, z));
    const double3 y = cross(z, x);
    return {{{x[0], x[1], x[2], -dot(x, eye)},
             {y[0], y[1], y[2], -dot(y, eye)},
             {z[0], z[1], z[2], -dot(z, eye)},
             {0, 0, 0, 1}}};
}

inline double4x4 perspective(double fovy, double aspect, double z_near, double z_far)
{
    const double f = 1 / std::tan(fovy / 2), depth = z_near - z_far;
    return {{{f / aspect, 0, 0, 0}, {0, f, 0, 0}, {0, 0, z_far / depth, z_near * z_far / depth}, {0, 0, -1, 0}}};
}

inline double4x4 ortho(double left, double right, double bottom, double top, double z_near, double z_far)
{
    const double w = right - left, h = top - bottom, depth = z_near - z_far;
    return {{{2 / w, 0, 0, -(right + left) / w},
             {0, 2 / h, 0, -(top + bottom) / h},
             {0, 0, 1 / depth, z_near / depth},
             {0, 0, 0, 1}}};
}

/// The rotation whose view direction (-z right-handed, +z left-handed) is `direction`.
inline Quat<double> quat_look_at(const double3& direction, const double3& up, Handedness handedness)
{
    const double3 forward = normalize(direction);
    const double3 z = handedness == Handedness::right_handed ? -forward : forward;
    const double3 x = normalize(cross(up, z));
    const double3 y = cross(z, x);
    return quat_from_matrix(double3x3{{{x[0], y[0], z[0]}, {x[1], y[1], z[1]}, {x[2], y[2], z[2]}}});
}

struct Decomposition {
    double3 scale;
    Quat<double> orientation;
    double3 translation;
    double3 skew; ///< shear of yz, xz, xy (the order of GLM)
    double4 perspective;
};

/// M = P T R K S (K shears), after S. Thomas, "Decomposing a matrix into simple transformations" (Graphics Gems II).
/// False when M cannot be taken apart: last element 0, or the upper 3x3 singular.
inline bool decompose(double4x4 m, Decomposition& out)
{
    if (m[3][3] == 0.0)
        return false;
    for (int i = 0; i < 16; ++i)
        (&m[0][0])[i] /= i == 15 ? 1.0 : m[3][3];
    m[3][3] = 1.0;

    double4x4 affine = m;
    for (int c = 0; c < 4; ++c)
        affine[3][c] = c == 3 ? 1.0 : 0.0;
    double work[16], inverse[16];
    std::copy_n(&affine[0][0], 16, work);
    if (eliminate(work, 4, inverse) == 0.0)
        return false;
    // The last row of M is the perspective row times the affine part.
    for (int c = 0; c < 4; ++c) {
        out.perspective[c] = 0.0;
        for (int k = 0; k < 4; ++k)
            out.perspective[c] += m[3][k] * inverse[k * 4 + c];
    }
    out.translation = {{m[0][3], m[1][3], m[2][3]}};

    // Gram-Schmidt over the columns: what is taken off is the shear.
    double3 x{{m[0][0], m[1][0], m[2][0]}}, y{{m[0][1], m[1][1], m[2][1]}}, z{{m[0][2], m[1][2], m[2][2]}};
    out.scale[0] = length(x);
    x = normalize(x);
    const double xy = dot(x, y);
    y = y - x * xy;
    out.scale[1] = length(y);
    y = normalize(y);
    const double xz = dot(x, z);
    z = z - x * xz;
    const double yz = dot(y, z);
    z = z - y * yz;
    out.scale[2] = length(z);
    z = normalize(z);
    out.skew = {{yz / out.scale[2], xz / out.scale[2], xy / out.scale[1]}};
    // A mirrored frame: a rotation needs determinant +1, so the mirror goes into the scale.
    if (dot(x, cross(y, z)) < 0) {
        out.scale = -out.scale;
        x = -x;
        y = -y;
        z = -z;
    }
    out.orientation = quat_from_matrix(double3x3{{{x[0], y[0], z[0]}, {x[1], y[1], z[1]}, {x[2], y[2], z[2]}}});
    return true;
}

} // namespace math
} // namespace spy
