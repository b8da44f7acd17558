#pragma once
// `for (;;) { ...; i--; if (i <= 0) break; }` -> `i = (i - 1) | 0;`: the fault of counters.h in loops without a
// condition, where the step comes before the way out. Slang takes this for no counter, and keeps its value of each
// trip.
#include "slang/rewrite/edits.h"
#include "slang/rewrite/imports.h"

#include <vector>

namespace spy {

/// Steps `i++`, `--i`, `i += 2` of integers in loops with [MaxIters].
std::vector<Edit> hide_early_steps(const ParsedSource& source);

} // namespace spy
