#pragma once
// Values without derivatives in vectors that have one, as Slang differentiates them rightly.
#include <string>
#include <string_view>

namespace spy {

/// `float3(c, x, c)` -> `float3(detach(c), x, detach(c))` for `no_diff` parameters c of functions that may be
/// differentiable; likewise matrices, and `float d = c;`. Slang 2026.12 has an internal error in forward mode where
/// such a vector is an operand. Lines stay.
std::string rewrite_detached(std::string_view source);

} // namespace spy
