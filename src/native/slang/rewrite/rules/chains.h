#pragma once
// Long chains of Slang's own functions.
#include "slang/rewrite/imports.h"

namespace spy {

/// Statements that change one variable through functions of Slang's own (`v = exp(-v) + x;` again and again): .bwds
/// computes each value anew wherever it is read, and the one before for that, so that the code doubles with each.
/// Long runs of them become functions of a few statements each whose results are kept, and functions of these.
std::vector<Edit> split_chains(const ParsedSource& source);

} // namespace spy
