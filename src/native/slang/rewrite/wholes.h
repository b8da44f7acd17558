#pragma once
// Variables that are used as one value beside their elements.
#include "slang/rewrite/bracketed.h"

#include <vector>

namespace spy {

/// `.z` or `[i]` behind a variable.
struct Step {
    bool is_index;
    size_t begin, end; ///< tokens: the name, or what stands in the brackets
};

/// `In c = s;` beside `s.q[i]`: what the compiler reads of both is one value to it.
class WholeUses {
public:
    WholeUses(const BracketedText& text, const FunctionBody& body) : m_text(text), m_body(body) { }

    /// Whether the function uses the variable of a path as one value, or a field that the path's first index is in.
    /// `of_this`: whether it is a field of this.
    bool any(size_t root, const std::vector<Step>& steps, bool of_this) const;
    /// Whether it is given the value of another variable: `In c = s;`, `c.q = s.q;`.
    bool is_copy(size_t root, const std::vector<Step>& steps) const;

private:
    std::string_view at(size_t i) const { return m_text.at(i); }
    size_t behind_fields(size_t i, const std::vector<Step>& steps) const;
    bool is_use(size_t i) const;
    bool reads_one_variable(size_t i) const;

    const BracketedText& m_text;
    const FunctionBody& m_body;
};

} // namespace spy
