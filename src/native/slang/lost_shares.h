#pragma once
// Elements whose reverse derivative Slang 2026.12 loses in silence. Where one array, matrix or vector is read by a
// run-time index and by another one, or changed at an element after the read, the share of one read replaces that of
// the other where both read the same element. The rule `aliasing-elements` turns such reads
// into calls; this finds what they leave.
//
// Measured to be right, and not found: a loop before the other read, a branch or conditional of its own for one of
// them, a variable filled by elements, and `v.x` of a vector where nothing changes it.
#include "slang/syntax/uses.h"

#include <string>
#include <vector>

namespace spy::syntax {

struct LostShare {
    std::string function, variable;
    std::string first, second; ///< the uses of it, as written
};

/// The faulty pairs in one function, the first of each variable.
std::vector<LostShare> lost_shares(const Scopes& scopes, NodeId function);

} // namespace spy::syntax
