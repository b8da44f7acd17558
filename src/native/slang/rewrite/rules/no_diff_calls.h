#pragma once
// `no_diff f(x)` -> `no_diff _spy_no_diff_...(no_diff f(x))`. Slang 2026.12 ignores the word in front of functions that
// have derivatives (shader-slang 10726), and theirs come through. The function around it hands its argument on and has
// no derivative, so the word holds there; it is declared behind the text. Calls that stand alone as statements stay,
// because they may give nothing to hand on.
#include "slang/rewrite/edits.h"
#include "slang/rewrite/imports.h"

#include <vector>

namespace spy {

std::vector<Edit> hold_no_diff_calls(const ParsedSource& source);

} // namespace spy
