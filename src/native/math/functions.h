#pragma once
// Scalar functions that <cmath> lacks, with Slang's definitions.
#include <algorithm>
#include <cmath>
#include <numbers>

namespace spy::math {

inline double degrees(double x) { return x * (180.0 / std::numbers::pi); }
inline double radians(double x) { return x * (std::numbers::pi / 180.0); }
inline double frac(double x) { return x - std::floor(x); }
inline double rcp(double x) { return 1.0 / x; }
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
/// NaN gives 0, as GPUs do.
inline double saturate(double x) { return std::fmin(std::fmax(x, 0.0), 1.0); }
inline double sign(double x) { return double(x > 0.0) - double(x < 0.0); }
inline double step(double x, double y) { return x >= y ? 1.0 : 0.0; }
inline double lerp(double a, double b, double t) { return a + (b - a) * t; }
inline double clamp(double x, double low, double high) { return std::fmin(std::fmax(x, low), high); }
inline double smoothstep(double low, double high, double x)
{
    const double t = saturate((x - low) / (high - low));
    return t * t * (3.0 - 2.0 * t);
}

} // namespace spy::math
