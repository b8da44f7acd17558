#pragma once
// Values without derivatives in vectors that have one, as Slang differentiates them rightly.
#include "slang/rewrite/edits.h"
#include "slang/rewrite/imports.h"

#include <vector>

namespace spy {

/// `float3(c, x, c)` -> `float3(detach(c), x, detach(c))` for `no_diff` parameters c of functions that may be
/// differentiable; likewise matrices, lists (`float x[2] = { c, a };`), the arms of `?:`, brackets and assignments
/// (`d = c;`, `v.x = c;`), for parameters of floats, vectors, matrices, arrays of them, and structs that are known to
/// have a derivative. Slang 2026.12 has an internal error in forward mode where a parameter itself is a component of
/// what is calculated with, in reverse mode where it is assigned to an element, and crashes where an array begins a
/// variable. Parameters that the function changes may have a derivative: `-(-c)` keeps that. Lines stay.
std::vector<Edit> rewrite_detached(const ParsedSource& source);

} // namespace spy
