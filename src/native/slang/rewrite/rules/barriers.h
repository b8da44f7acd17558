#pragma once
// Barriers: assignments of a variable to itself through an operation that gives the same number, so that Slang takes
// what follows for another value.
#include "slang/rewrite/rules/differentiable.h"

namespace spy {

/// The variables of one place.
struct Barriers {
    std::set<std::string_view> floats; ///< through `-(-x)`: scalars, vectors and matrices
    std::set<std::string_view> values; ///< structs and arrays, through a function
};

/// What one function gets, by byte in the source.
struct Places {
    size_t begin; ///< where a function can be declared for it
    std::map<size_t, Barriers> barriers = {};
    std::map<size_t, std::string> braces = {};                 ///< before the statements at which barriers stand
    std::map<size_t, std::string> closing = {};                ///< after them
    std::map<std::pair<size_t, size_t>, Barriers> within = {}; ///< calls with barriers after them, in their expression
};

/// The outermost type or function around a function, in front of which others can be declared for it.
syntax::NodeId outermost_of(const syntax::Tree& tree, syntax::NodeId function);
/// Of a function; to add to.
Places places_of(const syntax::Tree& tree, syntax::NodeId function);
/// Puts a barrier after the statement around a node, with braces around both where one statement is expected. Nothing
/// is done where the statement holds others, leaves the function, or is a label's.
void add_barrier_after(const syntax::Tree& tree, syntax::NodeId node, std::string_view name, bool is_float,
                       Places& places);

/// The barriers as text: ` x = -(-x);` and ` y = _spy_same_...(y);`, and `_spy_first_...(f(x), x = -(-x))` around
/// calls. Lines stay.
std::vector<Edit> with_barriers(std::string_view source, const std::vector<Places>& places);

/// `search(function, places)` of all functions that Slang may differentiate.
template <class Search>
std::vector<Edit> add_barriers(const ParsedSource& source, Search search)
{
    std::vector<Places> places;
    for (const syntax::NodeId function : differentiable_functions(source))
        search(function, places.emplace_back(places_of(source.tree(), function)));
    return with_barriers(source.text(), places);
}

} // namespace spy
