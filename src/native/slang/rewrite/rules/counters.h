#pragma once
// Loops whose counters begin with run-time values:
//
//     [MaxIters(4)] for (int j = i + 1; j < 4; j++) ...
//
// Slang 2026.12 finds what such a loop runs on with by counting its trips, adds the first value to that number, and
// forgets to store the value for the reverse derivative: no code can be generated. What a body changes is stored. So
// the step goes into the body, behind its last statement and in front of each `continue`, and the loop does the same.
// It needs [MaxIters] in any case, as the compiler cannot count its trips.
#include "slang/rewrite/edits.h"
#include "slang/rewrite/imports.h"

#include <vector>

namespace spy {

/// The steps of such loops in functions that may be differentiable, moved into their bodies.
std::vector<Edit> move_counter_steps(const ParsedSource& source);

} // namespace spy
