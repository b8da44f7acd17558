#pragma once
// Variables of which elements were written before a loop that changes them, as Slang differentiates them rightly.
#include "slang/rewrite/edits.h"
#include "slang/rewrite/functions.h"

#include <string_view>
#include <vector>

namespace spy {

/// `v.y = a; for (...) { v = sin(v); w = v - w; }` -> `v.y = a; v = -(-v); for ...`: Slang 2026.12 begins the loop with
/// the value of another variable of the same type, w, in place of v, in forward mode and in the reverse derivative:
/// even the value is wrong. It is right where an operation lies between the write and the loop, and this one gives the
/// same number. Done for vectors and matrices that a loop changes, and, with a function that returns its argument, for
/// structs and arrays that it changes as a whole. Structs and arrays that a loop copies (`d = c;`) get the same if the
/// `set` of a __subscript, or a call that the sources do not show (of a macro), wrote before. Lines stay. `imported`:
/// the functions of the sources that this one imports.
std::vector<Edit> rewrite_carried(std::string_view source, const FunctionTables& imported = {});

} // namespace spy
