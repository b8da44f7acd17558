#pragma once
// Variables passed through an operation that gives the same number, beside statements of a tree.
#include "slang/rewrite/rules/differentiable.h"

namespace spy {

struct Passed {
    std::set<std::string_view> floats; ///< through `-(-x)`: scalars, vectors and matrices
    std::set<std::string_view> values; ///< structs and arrays, through a function
};

/// What one function gets, by byte in the source.
struct Places {
    size_t begin; ///< where a function can be declared for it
    std::map<size_t, Passed> passed = {};
    std::map<size_t, std::string> braces = {};               ///< in front of what is passed there
    std::map<size_t, std::string> closing = {};              ///< behind it
    std::map<std::pair<size_t, size_t>, Passed> within = {}; ///< calls: passed when they are done, in their expression
};

/// The outermost type or function around a function, in front of which others can be declared for it.
syntax::NodeId outermost_of(const syntax::Tree& tree, syntax::NodeId function);
/// Of a function; to add to.
Places places_of(const syntax::Tree& tree, syntax::NodeId function);
/// Behind the statement around a node, with braces around both where one statement is expected. Nothing is done where
/// the statement holds others, leaves the function, or is a label's.
void pass_behind(const syntax::Tree& tree, syntax::NodeId node, std::string_view name, bool is_float, Places& places);

/// ` x = -(-x);` and ` y = _spy_same_...(y);` in these places, `_spy_first_...(f(x), x = -(-x))` around calls.
/// Lines stay.
std::vector<Edit> with_passed(std::string_view source, const std::vector<Places>& places);

/// `search(function, places)` of all functions that Slang may differentiate.
template <class Search>
std::vector<Edit> pass_in_functions(const ParsedSource& source, Search search)
{
    std::vector<Places> places;
    for (const syntax::NodeId function : differentiable_functions(source))
        search(function, places.emplace_back(places_of(source.tree(), function)));
    return with_passed(source.text(), places);
}

} // namespace spy
