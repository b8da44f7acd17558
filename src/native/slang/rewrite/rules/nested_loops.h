#pragma once
// Loops inside each other:
//
//     for (int i = 0; i < 2; i++) for (int j = 0; j < 5; j++) x *= a;
//
// Slang 2026.12 keeps the states of k such loops in an array [n1][n2]...[nk], the outermost loop first, but indexes it
// with the innermost loop's counter first. Where that leaves the array, [MaxIters] makes room, the only way to do so.
#include "slang/rewrite/edits.h"
#include "slang/rewrite/imports.h"

#include <vector>

namespace spy {

/// [MaxIters] of the loops in each nest of which the trips are known.
std::vector<Edit> make_room_in_nests(const ParsedSource& source);

} // namespace spy
