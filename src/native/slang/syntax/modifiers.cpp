// The grammar of modifiers, macros that stand as such included.
#include "slang/syntax/grammar.h"

#include <algorithm>

namespace spy::syntax {

/// The token after the modifiers that begin at i: words such as `static`, and attributes in brackets.
size_t Parser::after_modifiers(size_t i) const
{
    for (;;) {
        size_t last = i;
        if (at(i) == "[" && close_of(i) < m_size)
            last = close_of(i);
        else if (at(i) == "__generic" && at(i + 1) == "<" && angle_end(i + 1))
            last = angle_end(i + 1) - 1;
        else if (at(i).starts_with("__") && at(i) != "__init" && at(i + 1) == "(" &&
                 (is_word(close_of(i + 1) + 1) || at(close_of(i + 1) + 1) == "["))
            last = close_of(i + 1); // `__implicit_conversion(1)`
        else if (!(is_word(i) && m_uses[i].is_modifier && (is_word(i + 1) || at(i + 1) == "[")) &&
                 !macro_modifier(last))
            return i;
        i = last + 1;
    }
}

/// Whether a macro stands as modifiers at `last`, which becomes its last token: one whose body says so, or a name of
/// capitals that nothing here declares, in front of a type and a name.
bool Parser::macro_modifier(size_t& last) const
{
    const size_t i = last;
    if (!is_word(i))
        return false;
    if (const Macro* macro = m_uses[i].macro) {
        static constexpr std::string_view words[] = {"static", "const", "inline", "no_diff", "public", "inout", "out"};
        const std::string_view body = macro->body;
        const size_t end = macro->is_function && at(i + 1) == "(" ? close_of(i + 1) : i;
        const bool is_modifier = body.empty() || body.front() == '[' ||
            std::find(std::begin(words), std::end(words), body.substr(0, body.find_first_of(" \t"))) != std::end(words);
        if (!is_modifier || end >= m_size)
            return false;
        last = end;
        return true;
    }
    const std::string_view word = at(i);
    const auto is_small = [](char c) { return c >= 'a' && c <= 'z'; };
    return word.size() > 2 && std::none_of(word.begin(), word.end(), is_small) && !m_uses[i].is_reserved &&
        is_name(i + 1) && is_name(i + 2) && m_uses[i + 1].precedence == 0;
}

bool Parser::modifiers()
{
    const size_t nodes = mark(), first = m_at;
    while (modifier()) { }
    return add(Kind::modifiers, nodes, first);
}

bool Parser::modifier()
{
    const size_t nodes = mark(), first = m_at, end = after_modifiers(m_at);
    if (end == first)
        return false;
    if (is("[")) {
        const size_t close = close_of(m_at), open = at(m_at + 1) == "[" ? m_at + 1 : m_at; // `[[vk::binding(0)]]`
        m_at = open + 1;
        while (m_at < close_of(open)) { // `[A, B(1)]`
            const size_t attribute = mark(), begin = m_at;
            size_t name = m_at++;
            while ((is("::") || is(".")) && is_word(m_at + 1))
                name = m_at + 1, m_at += 2;
            if (is("(") && !attempt([&] { return arguments(m_at); })) {
                m_at = std::min(close_of(m_at), close) + 1;
                m_nodes.resize(attribute);
            }
            while (m_at < close_of(open) && !is(","))
                ++m_at;
            add(Kind::attribute, attribute, begin, name);
            take(",");
        }
        m_at = close + 1;
        return true;
    }
    if (is("__generic")) {
        ++m_at;
        return generics();
    }
    size_t last = m_at;
    if (at(first).starts_with("__") && at(first + 1) == "(")
        last = close_of(first + 1);
    else
        macro_modifier(last);
    m_at = last + 1;
    return add(Kind::modifier, nodes, first);
}

} // namespace spy::syntax
