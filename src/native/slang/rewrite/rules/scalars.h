#pragma once
// Sums and products of scalars and vectors, as Slang differentiates them rightly.
#include "slang/rewrite/imports.h"

namespace spy {

/// `a * v` -> `(-(-a)) * v`, where a is a variable of a scalar type, or an element of one that the function has made
/// (`float2 q = float2(a, 1); ... q.x * v`), and v may be a vector: Slang 2026.12 loses the gradient by way of a in
/// a + v, v + a, a - v, v - a, a * v, a / v, v += a, v -= a, and, behind loops, in v * a and v / a (shader-slang
/// 12071), also where the operand is (c ? a : b) and it knows c, or 1 * a, a + 0 and the like with constants that it
/// knows. It is right where any operation lies between that it keeps, and this one gives the same number. Lines stay.
std::vector<Edit> rewrite_scalars(const ParsedSource& source);

} // namespace spy
