#pragma once
// Whole numbers that a source fixes: `static const int N = 8;`, `#define N 8`, `let N : int` of a generic.
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace spy {

class Constants {
public:
    /// The value of an expression of numbers and known names; nothing where it has something else.
    std::optional<long> evaluate(std::string_view expression) const;
    /// Whether an expression has only numbers, operators and names that are fixed at compile time.
    bool is_constant(std::string_view expression) const;

private:
    friend Constants constants_of(std::string_view source);
    std::map<std::string, std::string, std::less<>> m_values; ///< text of the value; empty: a parameter of a generic
};

Constants constants_of(std::string_view source);

} // namespace spy
