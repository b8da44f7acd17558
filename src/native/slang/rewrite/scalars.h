#pragma once
// Products of vectors and scalars that loops made, as Slang differentiates them rightly.
#include <string>
#include <string_view>

namespace spy {

/// `v * d` -> `v * (-(-d))`, where d is a local scalar that changes in a function with loops: Slang 2026.12 loses the
/// gradient by way of d when a vector or matrix is multiplied with, or divided by, what a loop left in a variable
/// (shader-slang 12071). It is right where any operation lies between, and this one gives the same number. Lines stay.
std::string rewrite_scalars(std::string_view source);

} // namespace spy
