#pragma once
// Variables that are passed through an operation which gives the same number.
#include <map>
#include <set>
#include <string>
#include <string_view>
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

/// The source with ` x = -(-x);` and ` y = _spy_same_...(y);` in these places. Lines stay.
std::string with_passed(std::string_view source, const std::vector<Places>& places);

} // namespace spy
