#pragma once
// The functions that rules on derivatives look at.
#include "slang/rewrite/imports.h"

#include <vector>

namespace spy {

/// Functions and accessors with bodies that Slang may differentiate, of which all was understood, in order.
std::vector<syntax::NodeId> differentiable_functions(const ParsedSource& source);

} // namespace spy
