#pragma once
// `while (c) body` -> `for (; c;) body`. In Slang 2026.12 gradients of `while` loops that a `break` ends are wrong, and
// others crash its reverse derivatives; `for` loops have neither.
#include "slang/rewrite/edits.h"
#include "slang/rewrite/imports.h"

#include <vector>

namespace spy {

std::vector<Edit> for_of_while(const ParsedSource& source);

} // namespace spy
