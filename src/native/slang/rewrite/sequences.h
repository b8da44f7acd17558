#pragma once
// Assignments inside expressions, as statements of their own.
#include <string>
#include <string_view>

namespace spy {

/// In functions that may be differentiable: `x.y = a, z = b;` -> `x.y = a; z = b;`, `(x.y = a);` -> `x.y = a;`,
/// `(c[0]).x = a;` -> `c[0].x = a;`, `z = x.y = a;` -> `x.y = a; z = x.y;`, with braces where one statement is
/// expected. Slang 2026.12 differentiates writes of parts wrongly in places, and the other steps mend such statements.
/// Lines stay.
std::string rewrite_sequences(std::string_view source);

} // namespace spy
