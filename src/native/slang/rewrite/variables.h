#pragma once
// The variables that a function declares, of any type.
#include "slang/rewrite/bracketed.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <vector>

namespace spy {

/// What is known of the variables of a name in one function: two may have it, in blocks of their own.
struct DeclaredName {
    std::string_view type;      ///< its last word: `S` of `ns::S<T, 2>`, `float` of `float[4]`; of one of them
    bool is_array = false;      ///< of one of them
    bool is_fixed = false;      ///< one cannot be assigned, or has no derivative
    bool is_other = false;      ///< types differ
    std::vector<size_t> tokens; ///< where it is declared

    bool is_at(size_t token) const { return std::find(tokens.begin(), tokens.end(), token) != tokens.end(); }
};

/// Parameters and variables by name.
std::map<std::string_view, DeclaredName> declared_names(const BracketedText& text, const FunctionBody& body);

/// Fields of all structs by name.
std::map<std::string_view, DeclaredName> declared_fields(const BracketedText& text);

/// Whether a method's type has a field of a name, as far as the source shows.
bool is_field(const BracketedText& text, const FunctionBody& body, std::string_view name);

} // namespace spy
