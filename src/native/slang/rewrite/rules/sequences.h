#pragma once
// Parts of variables that are written inside expressions, taken apart into statements, which have the faults that other
// rules mend:
//
//     (v).x = a;  (v.x = a);     ->   v .x = a;   v.x = a ;
//     v.x = a, w.y = b;          ->  v.x = a; w.y = b;
//     z = v.x = a;               ->  v.x = a; z = v.x;
//
// One kind of change at a time, as each moves what the next one reads.
#include "slang/rewrite/edits.h"
#include "slang/rewrite/imports.h"

#include <vector>

namespace spy {

std::vector<Edit> without_brackets(const ParsedSource& source);
std::vector<Edit> without_commas(const ParsedSource& source);
std::vector<Edit> without_chains(const ParsedSource& source);

} // namespace spy
