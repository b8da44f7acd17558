#pragma once
// Loops that step a counter in their condition, from a run-time value:
//
//     int i = n;
//     [MaxIters(8)] while (i-- > 0) ...
//
// Their reverse derivatives do not compile in Slang 2026.12, for the reason in counters.h. The step begins the body
// instead, `while (i > 0) { i--; ... }`, and stands once more behind the loop, for the condition that ended it, unless
// nobody can tell; `break` undoes that one. Loops that other statements leave stay as they are, as do those of which
// the rest of the condition may see the counter.
#include "slang/rewrite/edits.h"
#include "slang/rewrite/imports.h"

#include <vector>

namespace spy {

std::vector<Edit> move_condition_steps(const ParsedSource& source);

} // namespace spy
