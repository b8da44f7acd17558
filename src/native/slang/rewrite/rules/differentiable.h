#pragma once
// The functions that rules on derivatives look at.
#include "slang/rewrite/imports.h"
#include "slang/syntax/types.h"

#include <vector>

namespace spy {

/// Functions and accessors with bodies that Slang may differentiate, of which all was understood, in order.
std::vector<syntax::NodeId> differentiable_functions(const ParsedSource& source);

/// Whether a type is one of floats, also of `T : __BuiltinFloatingPointType`: a number, a vector or a matrix.
bool is_of_floats(const syntax::Type& type);

/// Whether a variable is a scalar, vector or matrix of floats; so is `var x = e`, where e is made of such ones.
bool is_float_number(const syntax::Scopes& scopes, uint32_t variable);

/// `search(function, texts)`, by byte in the source, of all functions that Slang may differentiate.
template <class Search>
std::vector<Edit> insert_in_functions(const ParsedSource& source, Search search)
{
    std::map<size_t, std::string> texts;
    for (const syntax::NodeId function : differentiable_functions(source))
        search(function, texts);
    return insertions(std::move(texts));
}

/// Whether a callee is one of Slang's own functions of floats that have derivatives: `sin`, no other function that is
/// named so.
bool is_own_link(const syntax::Scopes& scopes, syntax::NodeId callee);
/// Whether a callee is declared by the source or what it imports, or is no plain name.
bool is_declared(const syntax::Scopes& scopes, syntax::NodeId callee);

} // namespace spy
