#pragma once
// Slang's grammar, for sources that may hold what it does not know.
#include "slang/syntax/tree.h"

#include <string_view>

namespace spy::syntax {

/// The tree of a source, which has to live as long. Never fails, and takes linear time: what is not understood is one
/// `opaque` node, and parsing goes on at the next statement or declaration. Both branches of an `#if` are parsed; where
/// one of them has brackets that close in no branch, the first is, the others are trivia, and what holds them
/// `is_split`. `macros`: those that included files define, whose texts have to live as long.
Tree parse(std::string_view source, const std::vector<Macro>& macros = {});

} // namespace spy::syntax
