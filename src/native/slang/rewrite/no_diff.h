#pragma once
// Calls that say `no_diff`, as Slang differentiates them rightly.
#include "slang/rewrite/edits.h"

#include <string_view>
#include <vector>
#include <string_view>

namespace spy {

/// `no_diff f(x)` -> `no_diff _spy_no_diff_...(no_diff f(x))`: Slang 2026.12 ignores the word in front of functions
/// that have derivatives (shader-slang 10726), and theirs come through. The function around it hands its argument on
/// and has no derivative, so the word holds there; it is declared behind the text. Lines stay where they are. Calls
/// that stand alone as statements stay, because they may give nothing to hand on.
std::vector<Edit> rewrite_no_diff(std::string_view source);

} // namespace spy
