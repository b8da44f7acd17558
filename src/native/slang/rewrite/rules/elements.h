#pragma once
// Elements of vectors and matrices written beside branches, as Slang differentiates them rightly.
#include "slang/rewrite/edits.h"
#include "slang/rewrite/imports.h"

#include <vector>

namespace spy {

/// `v.y = e;` -> `{ v = -(-v); v.y = e; }` for a local vector or matrix v of a differentiable function with branches:
/// Slang 2026.12 takes the gradient of another vector for that of v where a branch writes an element of v and reads one
/// of a vector made of v, or gives one to a call that writes. It is right where an operation lies before, and this one
/// gives the same number. So branches that use elements of v, if any is written, begin with it too. In functions
/// without branches that is done in and behind the first loop: outs.h says why. There, `v = -(-v);` also follows the
/// last of several such statements: in loops Slang loses the share of a in `h = a * v;` behind them. Lines stay.
std::vector<Edit> rewrite_elements(const ParsedSource& source);

} // namespace spy
