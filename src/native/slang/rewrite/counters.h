#pragma once
// Counters of loops, as Slang differentiates them.
#include <string>
#include <string_view>

namespace spy {

/// `[MaxIters(8)] for (int i = n; i > 0; i--) body` -> `[MaxIters(8)] for (int i = n; i > 0; ) { body i--; }`, and each
/// `continue;` of that loop -> `{ i--; continue; }`, where the counter does not begin with a number: Slang 2026.12
/// takes such loops for ones that it can count backwards, and its reverse derivatives of them use what they do not
/// declare. Lines stay.
std::string rewrite_counters(std::string_view source);

} // namespace spy
