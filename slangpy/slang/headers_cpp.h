// What Slang's C++ prelude and ours use of the C library, in place of the system's headers: those take a compiler longer to
// read than most kernels. Goes in front of kernels whose own text uses nothing else (slangpy/compiler/text/short.py).
#pragma once

#include <stddef.h>
#include <stdint.h>

#define SPY_MATH_1(F) float F##f(float) noexcept; double F(double) noexcept;
#define SPY_MATH_2(F) float F##f(float, float) noexcept; double F(double, double) noexcept;
extern "C" {
SPY_MATH_1(acos)
SPY_MATH_1(acosh)
SPY_MATH_1(asin)
SPY_MATH_1(asinh)
SPY_MATH_1(atan)
SPY_MATH_1(atanh)
SPY_MATH_1(ceil)
SPY_MATH_1(cos)
SPY_MATH_1(cosh)
SPY_MATH_1(exp)
SPY_MATH_1(exp2)
SPY_MATH_1(fabs)
SPY_MATH_1(floor)
SPY_MATH_1(log)
SPY_MATH_1(log10)
SPY_MATH_1(log2)
SPY_MATH_1(rint)
SPY_MATH_1(round)
SPY_MATH_1(sin)
SPY_MATH_1(sinh)
SPY_MATH_1(sqrt)
SPY_MATH_1(tan)
SPY_MATH_1(tanh)
SPY_MATH_1(trunc)
SPY_MATH_2(atan2)
SPY_MATH_2(fmax)
SPY_MATH_2(fmin)
SPY_MATH_2(fmod)
SPY_MATH_2(pow)
SPY_MATH_2(remainder)
float fmaf(float, float, float) noexcept;
double fma(double, double, double) noexcept;
float frexpf(float, int*) noexcept;
double frexp(double, int*) noexcept;
float modff(float, float*) noexcept;
double modf(double, double*) noexcept;
}
#undef SPY_MATH_1
#undef SPY_MATH_2

#define isnan(x) __builtin_isnan(x)
#define isinf(x) __builtin_isinf(x)
#define isfinite(x) __builtin_isfinite(x)
#define INFINITY __builtin_inff()
