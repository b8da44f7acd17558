#pragma once
// Sums and products of scalars and vectors, as Slang differentiates them rightly.
#include <string>
#include <string_view>

namespace spy {

/// `a * v` -> `(-(-a)) * v`, where a is a local variable or parameter of a scalar type in a statement that may hold
/// vectors: Slang 2026.12 loses the gradient by way of a in a + v, v + a, a - v, v - a, a * v, a / v, v += a, v -= a,
/// and, behind loops, in v * a and v / a (shader-slang 12071). It is right where any operation lies between, and this
/// one gives the same number. Lines stay.
std::string rewrite_scalars(std::string_view source);

} // namespace spy
