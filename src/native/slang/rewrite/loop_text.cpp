#include "slang/rewrite/loop_text.h"

namespace spy {

void LoopText::match_brackets()
{
    m_match.assign(m_tokens.size(), npos);
    std::vector<size_t> open;
    for (size_t i = 0; i < m_tokens.size(); ++i) {
        const std::string_view sign = at(i);
        if (sign == "(" || sign == "[" || sign == "{")
            open.push_back(i);
        const size_t kind = std::string_view(")]}").find(sign);
        if (kind == npos)
            continue;
        if (open.empty() || at(open.back())[0] != "([{"[kind]) {
            m_balanced = false; // as the branches of an #if may make it
            continue;
        }
        m_match[i] = open.back();
        m_match[open.back()] = i;
        open.pop_back();
    }
    m_balanced &= open.empty();
}

size_t LoopText::statement_end(size_t i) const
{
    while (at(i) == "[" && m_match[i] != npos)
        i = m_match[i] + 1;
    const std::string_view word = at(i);
    if (word == "{")
        return m_match[i] + 1;
    if (word == "if" || word == "for" || word == "while" || word == "switch") {
        if (at(i + 1) != "(")
            return npos;
        const size_t end = statement_end(m_match[i + 1] + 1);
        return word == "if" && end != npos && at(end) == "else" ? statement_end(end + 1) : end;
    }
    if (word == "do") {
        const size_t tail = statement_end(i + 1);
        return tail != npos && at(tail) == "while" && at(tail + 1) == "(" ? m_match[tail + 1] + 2 : npos;
    }
    while (i < m_tokens.size() && at(i) != ";" && at(i) != "}")
        i = m_match[i] != npos && m_match[i] > i ? m_match[i] + 1 : i + 1;
    return at(i) == ";" ? i + 1 : npos;
}

} // namespace spy
