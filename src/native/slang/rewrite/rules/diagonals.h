#pragma once
// Elements written with two indices that are one value, as Slang differentiates them.
#include "slang/rewrite/edits.h"
#include "slang/rewrite/imports.h"

#include <vector>

namespace spy {

/// `m[k][k] = e;` -> `m[k][-(-int(k))] = e;`: where two run-time indices on the way to an element are one value, the
/// reverse derivative of Slang 2026.12 uses a name that it does not declare (C++, CUDA) or ends in an internal error
/// (SPIR-V). The compiler does not see that both are the same number if an operation lies between, and a third one gets
/// four negations. That is done wherever the compiler may find one value, so for `m[i][j]` behind `j = i`, too; not for
/// indices that differ by a number, nor for counters of two loops. Writes are assignments, `++`, and calls that may
/// write an argument or their object; reads are right. Lines stay.
std::vector<Edit> rewrite_diagonals(const ParsedSource& source);

} // namespace spy
