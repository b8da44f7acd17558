#pragma once
// The branches of `#if`, of which a tree has room for one wherever they open or close other brackets.
#include "slang/syntax/lexer.h"

#include <string>
#include <string_view>
#include <vector>

namespace spy::syntax {

/// Bytes between an `#if`, `#elif` or `#else` and the next of them. `is_cut`: it stands, and others of its `#if`
/// are hidden.
struct Branch {
    uint32_t begin, end;
    bool is_cut = false;
};

/// Adds a sign to brackets that are open or close others.
void add_bracket(std::string& brackets, char sign);

/// The branches of a source. Those that cannot stand beside the first become one piece of trivia each, as does `#if 0`.
std::vector<Branch> take_branches(std::string_view source, Tokens& tokens);

} // namespace spy::syntax
