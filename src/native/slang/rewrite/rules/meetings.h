#pragma once
// Elements that are read at two places which may be one.
#include "slang/rewrite/imports.h"

namespace spy {

/// `x[i + 4] * x[(2 * i + 1) % 8]` in a loop, `s.z[n] + s.z[0]`, `e[i].p * e[k].p` -> `pick(x, int(i + 4)) * ...`, with
/// functions `_spy_pick_...` for elements of any array, vector or matrix, declared in front. Where both are one
/// element, Slang 2026.12 loses the share of one in the reverse derivative. Reads whose indices can never be equal
/// (`x[i]` and `x[i + 1]`) stay, as do those that change in the loop beside ones that do not. Lines stay.
std::vector<Edit> rewrite_meetings(const ParsedSource& source);

} // namespace spy
