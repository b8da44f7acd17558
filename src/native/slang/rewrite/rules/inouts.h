#pragma once
// Scalars without a derivative that calls may write, as Slang differentiates them rightly.
#include "slang/rewrite/edits.h"
#include "slang/rewrite/imports.h"

#include <vector>

namespace spy {

/// `float x = 0; add(x, a);` -> `float x = 0; x = _spy_same_...(x); add(x, a);`, where add may write x: in forward mode
/// Slang 2026.12 hands on a derivative of x that nothing set, where what x is has none: numbers, `no_diff` parameters,
/// `detach(a)`. The value of a function has one, 0. Done for local scalars and parameters of floats that a call may
/// write, and for vectors, matrices and arrays of which it may write an element, behind assignments of such values to
/// all of it. Lines stay.
std::vector<Edit> rewrite_inouts(const ParsedSource& source);

} // namespace spy
