#include "slang/rewrite/statements.h"

#include "core/error.h"

namespace spy {
namespace {

using Names = BracketedText::Names;

} // namespace

size_t last_token(const BracketedText& text, size_t i, size_t limit)
{
    while (text.at(i) == "[" && text.match(i) != npos)
        i = text.match(i) + 1; // attributes
    const std::string_view word = text.at(i);
    if (word == "{")
        return text.match(i);
    if (word == "do") {
        const size_t body = last_token(text, i + 1, limit);
        return text.at(body + 1) == "while" && text.at(body + 2) == "(" ? text.match(body + 2) + 1 : body;
    }
    if ((word == "if" || word == "for" || word == "while" || word == "switch") && text.at(i + 1) == "(") {
        const size_t body = last_token(text, text.match(i + 1) + 1, limit);
        return word == "if" && text.at(body + 1) == "else" ? last_token(text, body + 2, limit) : body;
    }
    while (i < limit && text.at(i) != ";")
        i = text.match(i) != npos && text.match(i) > i ? text.match(i) + 1 : i + 1;
    return i;
}

bool begins_freely(const BracketedText& text, size_t begin)
{
    static const Names may_stand_before = {";", "{", "}", ":"};
    return may_stand_before.count(text.at(begin - 1)) > 0;
}

size_t Statements::begin_of(size_t i) const
{
    while (m_text.around(i) != npos && (at(m_text.around(i)) != "{" || m_text.is_list(m_text.around(i))))
        i = m_text.around(i);
    if (i <= m_body.open)
        return npos;
    static const Names ends = {";", "{", "}", "else", "do"};
    while (!ends.count(at(i - 1)) && !ends_header(i - 1) && !ends_label(i - 1))
        i = m_text.match(i - 1) != npos ? m_text.match(i - 1) : i - 1;
    return i;
}

size_t Statements::end_of(size_t i) const
{
    size_t first = begin_of(i);
    static const Names other_statements = {"for", "while", "do", "if", "switch", "return", "case", "else"};
    while (first != npos && at(first) == "[")
        first = m_text.match(first) + 1; // attributes
    if (first == npos || other_statements.count(at(first)))
        return npos;
    size_t end = i;
    while (m_text.around(end) != npos && m_text.around(end) >= first)
        end = m_text.around(end); // out of the brackets of the statement
    while (end < m_body.end && at(end) != ";" && at(end) != "}")
        end = m_text.match(end) != npos && m_text.match(end) > end ? m_text.match(end) + 1 : end + 1;
    return at(end) == ";" ? end : npos;
}

void Statements::pass_behind(size_t i, std::string_view name, bool is_float, Places& places) const
{
    const size_t begin = begin_of(i), end = end_of(i);
    if (end == npos)
        return;
    const size_t behind = m_text.token(end).end;
    Passed& passed = places.passed[behind];
    (is_float ? passed.floats : passed.values).insert(name);
    if (begins_freely(m_text, begin) || places.closing.count(behind))
        return;
    places.braces[m_text.token(begin - 1).end] += " {";
    places.closing[behind] = " }";
}

/// Whether a ")" ends `if (...)` and the like.
bool Statements::ends_header(size_t i) const
{
    static const Names words = {"if", "for", "while", "switch"};
    return at(i) == ")" && m_text.match(i) > 0 && words.count(at(m_text.match(i) - 1));
}

/// Whether a ":" ends `case 1:`, `default:` or a label.
bool Statements::ends_label(size_t i) const
{
    if (at(i) != ":" || at(i - 1) == ":" || at(i + 1) == ":")
        return false;
    size_t first = i - 1;
    static const Names ends = {";", "{", "}", ":", "case", "?"};
    while (!ends.count(at(first - 1)) || (at(first - 1) == ":" && at(first - 2) == ":"))
        --first;
    return at(first - 1) != "?";
}

bool is_update(const BracketedText& text, size_t begin, size_t end)
{
    static const BracketedText::Names before = {";", "{", "}", ")", "else"}, operators = {"+", "-", "*", "/"};
    const bool is_step = text.at(end + 1) == text.at(end) && text.at(end + 2) == ";";
    if (!operators.count(text.at(end)) || !text.joined(end) || !(is_step || text.at(end + 1) == "=") ||
        !before.count(text.at(begin - 1)) || text.at(text.around(begin)) != "{")
        return false;
    for (size_t i = begin; i < end; ++i) {
        const bool is_call = text.at(i) == "(" && is_word(text.at(i - 1)) && text.at(i - 1) != "int" &&
            text.at(i - 1) != "uint";
        if (is_call || text.is_assignment(i))
            return false;
    }
    return true;
}

std::string written_out(const BracketedText& text, size_t end, std::string_view read)
{
    const bool is_step = text.at(end + 1) == text.at(end);
    return cat("= ", read, " ", text.at(end), is_step ? " (1" : " (");
}

size_t end_of_update(const BracketedText& text, size_t end)
{
    size_t last = end + 2;
    while (text.at(last) != ";")
        last = text.match(last) != npos && text.match(last) > last ? text.match(last) + 1 : last + 1;
    return last;
}

} // namespace spy
