#pragma once
// Elements that are read by an index which only the running program knows, as Slang differentiates them rightly.
#include "slang/rewrite/edits.h"

#include <string_view>
#include <vector>

namespace spy {

/// `v[i] + v[0]` -> `_spy_pick_...(v, int(i)) + v[0]`: where one array, vector or matrix is read by a run-time index
/// and otherwise, Slang 2026.12 loses the share of one in the reverse derivative when both are the same element. A
/// function of its own, which stands in front of the first that needs it, has no such fault. Done in differentiable
/// functions, for variables and parameters of floats with plain types, outside of loops, where it was measured to be
/// right. What may be written (an argument of a function that is not known to read only) stays. Lines stay.
std::vector<Edit> rewrite_reads(std::string_view source);

} // namespace spy
