#pragma once
// `do body while (c);` -> `for (bool again = true; again; again = (c)) body`, for two faults of Slang 2026.12:
//
//     do { if (a > 0) continue; x *= a; } while (false);           // `continue` is ignored in SPIR-V, or crashes .bwds
//     [MaxIters(8)] do { x *= a; i--; } while (i > 0);             // .bwds does not compile where i begins as anything
//
// The second is that of counters.h.
#include "slang/rewrite/edits.h"
#include "slang/rewrite/imports.h"
#include "slang/syntax/uses.h"

#include <vector>

namespace spy {

/// Of loops with a `continue`. One that runs once, as it says, becomes one that needs no [MaxIters] in a derivative.
std::vector<Edit> for_of_do_with_continue(const ParsedSource& source);
/// Of loops with [MaxIters] whose condition reads what the loop writes and what does not begin with a number.
std::vector<Edit> for_of_do_with_counter(const ParsedSource& source);

/// Whether a `do` has a `continue` and the condition `false`.
bool continues_once(const syntax::Uses& uses, const syntax::Scopes& scopes, syntax::NodeId loop);

} // namespace spy
