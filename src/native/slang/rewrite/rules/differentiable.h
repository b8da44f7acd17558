#pragma once
// The functions that rules on derivatives look at.
#include "slang/rewrite/imports.h"
#include "slang/syntax/types.h"

#include <vector>

namespace spy {

/// Functions and accessors with bodies that Slang may differentiate, of which all was understood, in order.
std::vector<syntax::NodeId> differentiable_functions(const ParsedSource& source);

/// Whether a type is one of floats, also of `T : __BuiltinFloatingPointType`: a number, a vector or a matrix.
bool is_of_floats(const syntax::Type& type);

/// Whether a variable is a scalar, vector or matrix of floats; so is `var x = e`, where e is made of such ones.
bool is_float_number(const syntax::Scopes& scopes, uint32_t variable);

} // namespace spy
