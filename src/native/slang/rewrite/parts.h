#pragma once
// Arrays of which an element is written in part and another as a whole, as Slang differentiates them rightly.
#include "slang/rewrite/edits.h"
#include "slang/rewrite/functions.h"

#include <string_view>
#include <vector>

namespace spy {

/// `c[0].x = a; c[1] = c[0];` -> `c[0].x = a; c = _spy_same_...(c); c[1] = c[0]; c = _spy_same_...(c);`, for arrays of
/// vectors, matrices, structs and arrays: Slang 2026.12 gives wrong gradients, or code that does not compile, where one
/// element is written in part and another as a whole, both by indices that the compiler knows. It is right where the
/// array passes through a function behind each of these writes. Lines stay. `imported`: the functions of the sources
/// that this one imports.
std::vector<Edit> rewrite_parts(std::string_view source, const FunctionTables& imported = {});

} // namespace spy
