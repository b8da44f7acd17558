#pragma once
// Variables that calls wrote and loops read, as Slang differentiates them rightly.
#include "slang/rewrite/edits.h"
#include "slang/rewrite/imports.h"

#include <vector>

namespace spy {

/// `f(a, c);` -> `f(a, c); c = -(-c);`, where c is a local scalar, vector or matrix, f may write it, and a loop
/// follows: Slang 2026.12 counts the gradient of such a c once when the loop adds it in each iteration (`a += c`). It
/// is right where any operation lies between, and this one gives the same number. Lines stay.
/// Of a struct, an array, or a part of one, `c = _spy_same_...(c);`, with a function that returns its argument;
/// likewise behind `c.step(a);`, where step is [mutating].
std::vector<Edit> rewrite_outs(const ParsedSource& source);

/// `f(a, v.y);` -> `v = -(-v); f(a, v.y);` behind a loop, where v is a vector or matrix of which f may write that
/// element: Slang counts the gradient of a v that the loop adds in each iteration once too often, and loses that of its
/// other elements. Lines stay.
std::vector<Edit> rewrite_late_elements(const ParsedSource& source);

} // namespace spy
