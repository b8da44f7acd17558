#pragma once
// Variables that are written in part.
#include "slang/rewrite/imports.h"

namespace spy {

/// Slang 2026.12 takes variables of one type for one another where branches or loops meet after one was written in
/// part:
///     if (a > b) x.p = a; else y.q = b;                   // y is copied over x
///     v.y = a; for (...) { v = sin(v); w = v - w; }       // the loop begins with w for v
/// and loses elements of arrays of which some are written in part and others as a whole:
///     c[0].x = a; c[1] = c[0];
/// Even values are wrong then. Behind the last of the statements that write parts, one after the other, the variable is
/// passed through an operation that gives the same number. Lines stay.
std::vector<Edit> rewrite_parts(const ParsedSource& source);

} // namespace spy
