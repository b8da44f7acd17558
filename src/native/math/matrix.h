#pragma once
#include "math/vector.h"

#include <utility>

namespace spy {

/// R rows of C packed components, row by row; vectors are columns.
template <typename T, int R, int C>
struct Matrix {
    static constexpr int rows = R;
    static constexpr int cols = C;
    using Element = T;

    T data[R][C];

    constexpr T* operator[](int r) { return data[r]; }
    constexpr const T* operator[](int r) const { return data[r]; }

    /// Ones on the diagonal, also for rectangular matrices.
    static constexpr Matrix identity()
    {
        Matrix m{};
        for (int i = 0; i < (R < C ? R : C); ++i)
            m.data[i][i] = T(1);
        return m;
    }
};

using float3x3 = Matrix<float, 3, 3>;
using float3x4 = Matrix<float, 3, 4>;
using float4x4 = Matrix<float, 4, 4>;
using double3x3 = Matrix<double, 3, 3>;
using double4x4 = Matrix<double, 4, 4>;
static_assert(sizeof(float3x3) == 36 && std::is_trivially_copyable_v<float4x4>);

template <typename T, int R, int K, int C>
constexpr Matrix<T, R, C> mul(const Matrix<T, R, K>& a, const Matrix<T, K, C>& b)
{
    Matrix<T, R, C> m{};
    for (int r = 0; r < R; ++r)
        for (int c = 0; c < C; ++c)
            for (int k = 0; k < K; ++k)
                m[r][c] += a[r][k] * b[k][c];
    return m;
}

template <typename T, int R, int C>
constexpr Vector<T, R> mul(const Matrix<T, R, C>& a, const Vector<T, C>& v)
{
    Vector<T, R> result{};
    for (int r = 0; r < R; ++r)
        for (int c = 0; c < C; ++c)
            result[r] += a[r][c] * v[c];
    return result;
}

/// Gaussian elimination with partial pivoting on the n x n matrix `a` (row-major, overwritten). Where `inverse` is
/// given it receives the inverse; a singular matrix leaves it unusable. Returns the determinant.
inline double eliminate(double* a, int n, double* inverse)
{
    double determinant = 1.0;
    for (int i = 0; inverse && i < n * n; ++i)
        inverse[i] = i % (n + 1) == 0 ? 1.0 : 0.0;
    for (int k = 0; k < n; ++k) {
        int pivot = k;
        for (int r = k + 1; r < n; ++r)
            if (std::fabs(a[r * n + k]) > std::fabs(a[pivot * n + k]))
                pivot = r;
        if (a[pivot * n + k] == 0.0)
            return 0.0;
        for (int c = 0; pivot != k && c < n; ++c) {
            std::swap(a[k * n + c], a[pivot * n + c]);
            if (inverse)
                std::swap(inverse[k * n + c], inverse[pivot * n + c]);
        }
        determinant *= pivot == k ? a[k * n + k] : -a[k * n + k];
        const double scale = a[k * n + k];
        for (int c = 0; inverse && c < n; ++c) {
            a[k * n + c] /= scale;
            inverse[k * n + c] /= scale;
        }
        // Without an inverse to build, only the rows below need to be cleared.
        for (int r = inverse ? 0 : k + 1; r < n; ++r) {
            const double factor = a[r * n + k] / a[k * n + k];
            for (int c = 0; r != k && c < n; ++c) {
                a[r * n + c] -= factor * a[k * n + c];
                if (inverse)
                    inverse[r * n + c] -= factor * inverse[k * n + c];
            }
        }
    }
    return determinant;
}

} // namespace spy
