#pragma once
// Long chains of Slang's own functions, in other shapes than runs of statements on one variable.
#include "slang/rewrite/imports.h"

namespace spy {

/// Values made of each other through functions of Slang's own (`a = sin(b) + x; b = exp(-a) + y; let c = ...`): .bwds
/// computes each value anew wherever it is read, and the one before for that, so that the code doubles with each. In
/// functions with long chains of them every fourth value passes through a function whose results are kept.
std::vector<Edit> keep_chain_values(const ParsedSource& source);

} // namespace spy
