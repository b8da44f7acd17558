#pragma once
// fwd_diff and bwd_diff of a method through an object.
#include "slang/rewrite/edits.h"
#include "slang/rewrite/imports.h"

namespace spy {

/// `fwd_diff(s.m)(x)` as `fwd_diff(g)(s, x)` of a function `g` that calls the method, where the object's type is a
/// struct of the source that has no derivative, so that it is a constant, and one method of that name.
std::vector<Edit> rewrite_method_derivatives(const ParsedSource& source);

} // namespace spy
