#include "slang/rewrite/wholes.h"

namespace spy {

/// Whether a word is a variable that is used, not the name of a field or of what is declared here.
bool WholeUses::is_use(size_t i) const
{
    static const BracketedText::Names before_values = {"return", "else", "do", "case", "in"};
    if (at(i - 1) == ".")
        return at(i - 2) == "this";
    return at(i - 1) != ":" && !(is_word(at(i - 1)) && !before_values.count(at(i - 1)));
}

/// The token behind a variable and the fields that stand in front of the first index of a path.
size_t WholeUses::behind_fields(size_t i, const std::vector<Step>& steps) const
{
    ++i;
    for (const Step& step : steps) {
        if (step.is_index || at(i) != "." || at(i + 1) != at(step.begin))
            break;
        i += 2;
    }
    return i;
}

bool WholeUses::any(size_t root, const std::vector<Step>& steps, bool of_this) const
{
    for (size_t i = m_body.open + 1; i < m_body.end; ++i) {
        if (of_this && at(i) == "this" && at(i + 1) != "." && !m_text.is_assignment(i + 1))
            return true;
        if (at(i) != at(root) || !is_use(i))
            continue;
        const size_t behind = behind_fields(i, steps);
        if (at(behind) != "." && at(behind) != "[" && at(behind) != "(" && !m_text.is_assignment(behind))
            return true;
    }
    return false;
}

bool WholeUses::is_copy(size_t root, const std::vector<Step>& steps) const
{
    for (size_t i = m_body.open + 1; i < m_body.end; ++i) {
        if (at(i) != at(root) || (at(i - 1) == "." && at(i - 2) != "this"))
            continue;
        size_t behind = behind_fields(i, steps);
        while (at(behind) == "[" && m_text.match(behind) != npos) // float c[8] = x;
            behind = m_text.match(behind) + 1;
        if (at(behind) == "=" && at(behind + 1) != "=" && reads_one_variable(behind + 1))
            return true;
    }
    return false;
}

/// Whether a value is a variable, a field or an element of one, or a choice among such: nothing is computed from it.
bool WholeUses::reads_one_variable(size_t i) const
{
    static const BracketedText::Names computing = {"+", "-", "*", "/", "%", "{"};
    if (!is_word(at(i)) && at(i) != "(")
        return false;
    for (; i < m_body.end && at(i) != ";" && at(i) != ","; ++i) {
        if (computing.count(at(i)) || (at(i) == "(" && (is_word(at(i - 1)) || at(i - 1) == ">")))
            return false;
        if (at(i) == "[" || at(i) == "(")
            i = m_text.match(i);
    }
    return true;
}

} // namespace spy
