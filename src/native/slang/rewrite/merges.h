#pragma once
// Variables that are written in part where branches or loops meet, as Slang compiles them rightly.
#include "slang/rewrite/edits.h"
#include "slang/rewrite/functions.h"

#include <string_view>
#include <vector>

namespace spy {

/// `if (a > b) x.p = a; else y.q = b;` -> `if (a > b) { x.p = a; x = _spy_same_...(x); } else ...`. Slang 2026.12 keeps
/// what a write of a part makes in a variable of its own choice. Where branches meet or a loop begins, it copies the
/// variables of one type one after the other, and so may overwrite that before it has been read: another value of the
/// type takes its place, in .fwds and .bwds. It is right where an operation lies between. Done for vectors and
/// matrices, and for structs and arrays where another variable of the type changes: behind writes in branches, and in
/// front of branches and loops. In a loop without branches, arrays are left as they are. Lines stay. `imported`: the
/// functions of the sources that this one imports.
std::vector<Edit> rewrite_merges(std::string_view source, const FunctionTables& imported = {});

} // namespace spy
