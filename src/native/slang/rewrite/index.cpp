#include "slang/rewrite/index.h"

#include "slang/rewrite/statements.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>

namespace spy {
namespace {

bool is_number(std::string_view word) { return !word.empty() && std::isdigit(static_cast<unsigned char>(word[0])); }

/// Whether [ForceUnroll] stands in front of a loop, among other attributes.
bool is_unrolled(const BracketedText& text, size_t loop)
{
    for (size_t i = loop; i > 0 && text.at(i - 1) == "]" && text.match(i - 1) != npos; i = text.match(i - 1))
        if (text.at(text.match(i - 1) + 1) == "ForceUnroll")
            return true;
    return false;
}

} // namespace

Loops::Loops(const BracketedText& text, const FunctionBody& body)
{
    for (size_t i = body.open; i < body.end; ++i) {
        const bool is_head = is_loop_word(text.at(i)) && (text.at(i) == "do" || text.at(i + 1) == "(");
        if (!is_head || (text.at(i) == "while" && text.at(i - 1) == "}" && text.at(text.match(i + 1) + 1) == ";"))
            continue; // the end of a do
        const bool unrolled = is_unrolled(text, i);
        m_loops.push_back({i, last_token(text, i, body.end), unrolled});
        if (unrolled && text.at(i) == "for")
            m_counters.insert(text.at(i + 3));
    }
}

size_t Loops::innermost(size_t i, bool unrolled) const
{
    size_t found = npos;
    for (const Loop& loop : m_loops)
        if (loop.begin < i && i <= loop.end && loop.is_unrolled == unrolled)
            found = loop.begin;
    return found;
}

size_t Loops::end_of(size_t begin) const
{
    for (const Loop& loop : m_loops)
        if (loop.begin == begin)
            return loop.end;
    return begin;
}

IndexReader::IndexReader(const BracketedText& text, const FunctionBody& body) : m_text(text), m_loops(text, body)
{
    find_assigned(body);
    find_constants(body);
}

void IndexReader::find_assigned(const FunctionBody& body)
{
    for (size_t i = body.open + 1; i < body.end; ++i) {
        if (!is_word(at(i)))
            continue;
        size_t behind = i + 1;
        while (at(behind) == "[" && m_text.match(behind) != npos)
            behind = m_text.match(behind) + 1;
        const bool is_argument = (at(i - 1) == "(" || at(i - 1) == ",") && (at(i + 1) == ")" || at(i + 1) == ",");
        const size_t open = m_text.around(i);
        const bool is_passed = is_argument && open != npos && at(open) == "(" && is_word(at(open - 1)) &&
            !writes_no_argument(at(open - 1)) && !is_float_type(at(open - 1)) && !at(open - 1).starts_with("_spy_");
        if (m_text.is_assignment(behind) || m_text.is_stepped(i) || is_passed)
            m_assigned[at(i)].push_back(i);
    }
}

/// Numbers that are declared once: `int k = 2 * j;`, where j counts an unrolled loop.
void IndexReader::find_constants(const FunctionBody& body)
{
    for (size_t i = body.open + 1; i < body.end; ++i) {
        const bool is_declared = at(i) == "int" || at(i) == "uint" || at(i) == "let" || at(i) == "var";
        const auto assigned = is_declared && at(i + 2) == "=" ? m_assigned.find(at(i + 1)) : m_assigned.end();
        if (assigned != m_assigned.end() && assigned->second.size() == 1 && is_constant_until(i + 3))
            m_constants.insert(at(i + 1));
    }
}

bool IndexReader::is_constant_until(size_t i) const
{
    for (; at(i) != ";" && !at(i).empty(); ++i)
        if (at(i) == "." || at(i) == "[" || (is_word(at(i)) && !is_known(i)))
            return false;
    return true;
}

/// Whether the compiler knows the number that a word stands for.
bool IndexReader::is_known(size_t i) const
{
    const std::string_view word = at(i);
    const bool is_capital = std::none_of(word.begin(), word.end(), [](unsigned char c) { return std::islower(c); });
    return is_capital || word == "int" || word == "uint" || m_constants.count(word) || m_loops.counters().count(word);
}

bool IndexReader::is_assigned(std::string_view word, size_t begin, size_t end) const
{
    const auto found = m_assigned.find(word);
    return found != m_assigned.end() &&
        std::any_of(found->second.begin(), found->second.end(), [&](size_t i) { return begin <= i && i < end; });
}

bool IndexReader::any_assigned(size_t begin, size_t end, size_t from, size_t to) const
{
    for (size_t i = begin; i < end; ++i)
        if (is_word(at(i)) && !m_constants.count(at(i)) && is_assigned(at(i), from, to))
            return true;
    return false;
}

bool IndexReader::has_counter(size_t begin, size_t end) const
{
    for (size_t i = begin; i < end; ++i)
        if (m_loops.counters().count(at(i)) || m_constants.count(at(i)))
            return true;
    return false;
}

bool IndexReader::varies(size_t begin, size_t end, size_t loop) const
{
    for (size_t i = begin; i < end; ++i) {
        const bool is_call = at(i) == "(" && is_word(at(i - 1)) && at(i - 1) != "int" && at(i - 1) != "uint";
        const bool is_changed = is_word(at(i)) && !is_known(i) && is_assigned(at(i), loop, m_loops.end_of(loop) + 1);
        if (is_call || is_changed)
            return true;
    }
    return false;
}

bool IndexReader::is_runtime(size_t begin, size_t end) const
{
    for (size_t i = begin; i < end; ++i)
        if (is_word(at(i)) && !is_known(i))
            return true;
    return false;
}

bool IndexReader::is_still(size_t begin, size_t end) const
{
    return is_runtime(begin, end) &&
        std::none_of(m_loops.all().begin(), m_loops.all().end(), [&](const Loops::Loop& loop) {
               return !loop.is_unrolled && loop.begin < begin && begin <= loop.end && varies(begin, end, loop.begin);
           });
}

std::string IndexReader::joined(size_t begin, size_t end) const
{
    std::string text;
    for (size_t i = begin; i < end; ++i)
        text += at(i);
    return text;
}

IndexReader::Sum IndexReader::sum(size_t begin, size_t end) const
{
    static const BracketedText::Names others = {"<", ">", "&", "|", "^", "?", "="};
    for (size_t i = begin; i < end; ++i)
        if (others.count(at(i)))
            return {joined(begin, end), 0};
    if (end - begin < 3 || !is_number(at(end - 1)) || (at(end - 2) != "+" && at(end - 2) != "-"))
        return {joined(begin, end), 0};
    const long number = std::atol(std::string(at(end - 1)).c_str());
    return {joined(begin, end - 2), at(end - 2) == "+" ? number : -number};
}

Meeting IndexReader::meeting(size_t begin, size_t end, size_t other, size_t other_end, size_t loop, bool writes) const
{
    const size_t from = std::min(begin, other), to = std::max(begin, other);
    const bool is_changed = any_assigned(begin, end, from, to);
    const Sum one = sum(begin, end), two = sum(other, other_end);
    if (one.text == two.text && !is_changed) {
        if (one.number == two.number)
            return Meeting::same;
        if (!has_counter(begin, end))
            return Meeting::never;
    }
    if (!is_runtime(begin, end) && !is_runtime(other, other_end))
        return joined(begin, end) == joined(other, other_end) ? Meeting::same : Meeting::never;
    if (loop == npos || writes)
        return Meeting::possible;
    return varies(begin, end, loop) == varies(other, other_end, loop) ? Meeting::possible : Meeting::never;
}

bool IndexReader::may_repeat(size_t begin, size_t end, size_t loop) const
{
    const size_t unrolled = m_loops.innermost(begin, true);
    if (unrolled == npos || (loop != npos && unrolled < loop) || !is_runtime(begin, end))
        return false;
    size_t counters = 0;
    bool is_sum = true;
    for (size_t i = begin; i < end; ++i) {
        const bool is_factor = (i > begin && at(i - 1) == "*") || at(i + 1) == "*";
        counters += m_loops.counters().count(at(i)) + m_constants.count(at(i));
        is_sum = is_sum && (is_word(at(i)) || is_number(at(i)) || at(i) == "+" || at(i) == "-") && !is_factor;
    }
    const bool is_changed = any_assigned(begin, end, m_text.match(unrolled + 1), m_loops.end_of(unrolled));
    return is_changed || (counters > 0 && !(is_sum && counters == 1));
}

} // namespace spy
