#pragma once
// Counters of loops, as Slang differentiates them.
#include "slang/rewrite/edits.h"

#include <string_view>
#include <vector>

namespace spy {

/// `[MaxIters(8)] for (int i = n; i > 0; i--) body` -> `[MaxIters(8)] for (int i = n; i > 0; ) { body i--; }`, and each
/// `continue;` of that loop -> `{ i--; continue; }`, where the counter does not begin with a number: Slang 2026.12
/// takes such loops for ones that it can count backwards, and its reverse derivatives of them use what they do not
/// declare. Lines stay.
std::vector<Edit> rewrite_counters(std::string_view source);

/// `while (i-- > 0) body` -> `while (i > 0) { i--; body }`, where nothing reads i behind the loop, for the same reason.
/// Not for loops that rewrite_counters() changes. Lines stay.
std::vector<Edit> rewrite_condition_steps(std::string_view source);

} // namespace spy
