#pragma once
// `case 1: x *= a; default: x *= b;` -> `case 1: x *= a; { x *= b; break; } default: x *= b;`: reverse derivatives of a
// case that runs on into the next one crash Slang 2026.12. What it runs into is written behind it once more.
#include "slang/rewrite/edits.h"
#include "slang/rewrite/imports.h"

#include <vector>

namespace spy {

/// Of a switch inside another one that is changed, only when called again.
std::vector<Edit> repeat_next_cases(const ParsedSource& source);

} // namespace spy
