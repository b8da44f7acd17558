#pragma once
// Variables that are passed through an operation which gives the same number.
#include "slang/rewrite/bracketed.h"
#include "slang/rewrite/edits.h"

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spy {

struct Passed {
    std::set<std::string_view> floats; ///< through `-(-x)`: scalars, vectors and matrices
    std::set<std::string_view> values; ///< structs and arrays, through a function
};

/// What one function gets, by byte in the source.
struct Places {
    size_t begin; ///< where a function can be declared for it
    std::map<size_t, Passed> passed;
    std::map<size_t, std::string> braces = {};  ///< in front of what is passed there
    std::map<size_t, std::string> closing = {}; ///< behind it
};

/// What `search(body, places)` finds in the functions of a source.
template <class Search>
std::vector<Places> places_in(const BracketedText& text, Search search)
{
    std::vector<Places> result;
    for (const FunctionBody& body : text.bodies()) {
        Places places{text.token(text.declaration_of(body)).begin, {}};
        search(body, places);
        if (!places.passed.empty())
            result.push_back(std::move(places));
    }
    return result;
}

/// ` x = -(-x);` and ` y = _spy_same_...(y);` in these places. Lines stay.
std::vector<Edit> with_passed(std::string_view source, const std::vector<Places>& places);

} // namespace spy
