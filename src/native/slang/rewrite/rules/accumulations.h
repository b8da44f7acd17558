#pragma once
// Loops that only add up.
#include "slang/rewrite/edits.h"
#include "slang/rewrite/imports.h"

#include <vector>

namespace spy {

/// `for (int i = 0; i < n; i++) sum += w[i] * x[i];` ->
/// `[MaxIters(1)] for (int i = 0; i < n; i++) { sum += _spy_sum_...(i, w, x); }`, with a function in front that Slang
/// computes again where a backward derivative needs its values, so that nothing is kept of a trip and any number of
/// them is right. Only of loops without an attribute, which Slang 2026.12 refuses. Loops inside of them are then that
/// function's own, for the next call. Lines stay.
std::vector<Edit> rewrite_accumulations(const ParsedSource& source);

} // namespace spy
