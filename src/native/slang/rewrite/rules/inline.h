#pragma once
// Differentiable functions put in the place of their calls, for second derivatives.
#include "slang/rewrite/edits.h"
#include "slang/rewrite/imports.h"

#include <vector>

namespace spy {

/// Slang 2026.12 ends the process, or reports internal errors, where the reverse derivative of a forward derivative
/// meets a call that passes a struct, an array or an `inout` value. It is right where it inlines such functions before
/// it differentiates, so this gives every differentiable function with a body the attribute that asks for that, except
/// those that call themselves and those of generated code (`_spy_...`). Lines stay where they are.
std::vector<Edit> inline_differentiable(const ParsedSource& source);

} // namespace spy
