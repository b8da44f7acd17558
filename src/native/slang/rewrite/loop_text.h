#pragma once
// A source as words and signs, of which some brackets may not match, for changes of loops.
#include "core/tokens.h"

#include <string_view>
#include <vector>

namespace spy {

class LoopText {
protected:
    explicit LoopText(std::string_view text) : m_text(text), m_tokens(tokens_of(text, false)) { match_brackets(); }

    std::string_view at(size_t i) const
    {
        return i < m_tokens.size() ? m_text.substr(m_tokens[i].begin, m_tokens[i].end - m_tokens[i].begin)
                                   : std::string_view();
    }
    std::string_view between(size_t first, size_t last) const ///< the text of tokens [first, last)
    {
        return first < last ? m_text.substr(m_tokens[first].begin, m_tokens[last - 1].end - m_tokens[first].begin)
                            : std::string_view();
    }
    /// The token behind the statement that begins at token i; npos where that is not clear.
    size_t statement_end(size_t i) const;

    std::string_view m_text;
    std::vector<Token> m_tokens;
    std::vector<size_t> m_match; ///< the other bracket of each bracket
    bool m_balanced = true;

private:
    void match_brackets();
};

} // namespace spy
