// Whole numbers that a source fixes, as constants, macros and arguments of generics.
#include "slang/constants.h"

#include "core/tokens.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <vector>

namespace spy {
namespace {

bool is_integer_type(std::string_view word)
{
    static constexpr std::string_view types[] = {"int", "uint", "int32_t", "uint32_t", "int64_t", "uint64_t", "size_t"};
    return std::find(std::begin(types), std::end(types), word) != std::end(types);
}

/// A name that is written like a constant; where a source does not declare it, it is one that is imported.
bool is_upper(std::string_view name)
{
    return std::none_of(name.begin(), name.end(), [](char c) { return std::islower(static_cast<unsigned char>(c)); });
}

/// + - * / % << >> and parentheses over numbers and names.
class Evaluator {
public:
    Evaluator(std::string_view text, const std::map<std::string, std::string, std::less<>>& names, int depth)
        : m_text(text),
          m_names(names),
          m_depth(depth)
    {
    }

    std::optional<long> run()
    {
        const std::optional<long> value = sum();
        blanks();
        return m_pos == m_text.size() && m_ok ? value : std::nullopt;
    }

private:
    void blanks()
    {
        while (m_pos < m_text.size() && std::isspace(static_cast<unsigned char>(m_text[m_pos])))
            ++m_pos;
    }
    bool take(std::string_view sign)
    {
        blanks();
        if (m_text.substr(m_pos, sign.size()) != sign)
            return false;
        m_pos += sign.size();
        return true;
    }
    long sum()
    {
        long value = product();
        for (;;) {
            if (take("+"))
                value += product();
            else if (take("-"))
                value -= product();
            else
                return value;
        }
    }
    long product()
    {
        long value = factor();
        for (;;) {
            if (take("*")) {
                value *= factor();
            } else if (take("/")) {
                const long by = factor();
                value = by ? value / by : (m_ok = false, 0);
            } else {
                return value;
            }
            m_ok &= value < (1l << 31) && value > -(1l << 31);
        }
    }
    long factor()
    {
        if (take("-"))
            return -factor();
        if (take("(")) {
            const long value = sum();
            m_ok &= take(")");
            return value;
        }
        blanks();
        size_t end = m_pos;
        while (end < m_text.size() && in_word(m_text[end]))
            ++end;
        const std::string_view word = m_text.substr(m_pos, end - m_pos);
        m_pos = end;
        return word.empty()                                     ? (m_ok = false, 0)
            : std::isdigit(static_cast<unsigned char>(word[0])) ? number(word)
                                                                : name(word);
    }
    long number(std::string_view word)
    {
        const bool hex = word.starts_with("0x") || word.starts_with("0X");
        size_t used = 0;
        long value = 0;
        for (char c : hex ? word.substr(2) : word) {
            const char digit = char(std::tolower(static_cast<unsigned char>(c)));
            if (!(std::isdigit(static_cast<unsigned char>(digit)) || (hex && digit >= 'a' && digit <= 'f')) ||
                value > (1l << 31))
                break;
            value = value * (hex ? 16 : 10) + (digit <= '9' ? digit - '0' : digit - 'a' + 10);
            ++used;
        }
        const std::string_view rest = word.substr(used + (hex ? 2 : 0));
        m_ok &= used > 0 && rest.find_first_not_of("uUlL") == std::string_view::npos;
        return value;
    }
    long name(std::string_view word)
    {
        const auto known = m_names.find(word);
        std::optional<long> value;
        if (known != m_names.end() && !known->second.empty() && m_depth < 8)
            value = Evaluator(known->second, m_names, m_depth + 1).run();
        m_ok &= value.has_value();
        return value.value_or(0);
    }

    std::string_view m_text;
    const std::map<std::string, std::string, std::less<>>& m_names;
    int m_depth;
    size_t m_pos = 0;
    bool m_ok = true;
};

/// `#define NAME value`, which tokens_of sees as #, define, NAME and so on.
void read_defines(std::string_view source, std::map<std::string, std::string, std::less<>>& values,
                  std::set<std::string>& unsure)
{
    for (size_t at = 0; (at = source.find("#define", at)) != source.npos;) {
        at += 7;
        const size_t line_end = std::min(source.find('\n', at), source.size());
        const size_t begin = source.find_first_not_of(" \t", at);
        if (begin == source.npos || begin >= line_end)
            continue;
        size_t end = begin;
        while (end < line_end && in_word(source[end]))
            ++end;
        const std::string name(source.substr(begin, end - begin));
        std::string_view value = source.substr(end, line_end - end);
        value = value.substr(0, std::min(value.find("//"), value.find("/*")));
        if (name.empty() || (end < line_end && source[end] == '(') || values.count(name) ||
            value.find('\\') != value.npos)
            unsure.insert(name);
        values[name] = value;
    }
}

} // namespace

std::optional<long> Constants::evaluate(std::string_view expression) const
{
    return Evaluator(expression, m_values, 0).run();
}

bool Constants::is_constant(std::string_view expression) const
{
    for (const TextToken& token : tokens_of(expression)) {
        const std::string_view word = expression.substr(token.begin, token.end - token.begin);
        if (starts_word(word[0]) && !m_values.count(word))
            return false;
        if (!in_word(word[0]) && std::string_view("+-*/()").find(word) == std::string_view::npos)
            return false;
    }
    return !expression.empty();
}

Constants constants_of(std::string_view source)
{
    Constants found;
    std::set<std::string> unsure; // declared twice, or as a variable too
    read_defines(source, found.m_values, unsure);
    const std::vector<TextToken> tokens = tokens_of(source, false);
    const auto at = [&](size_t i) {
        return i < tokens.size() ? source.substr(tokens[i].begin, tokens[i].end - tokens[i].begin) : std::string_view();
    };
    std::set<std::string> used;
    for (size_t i = 0; i < tokens.size(); ++i) {
        const std::string name(at(i));
        if (!starts_word(name[0]))
            continue;
        used.insert(name);
        const std::string_view before = i ? at(i - 1) : std::string_view();
        const bool generic = before == "let" && at(i + 1) == ":" &&
            (at(i + 3) == ">" || at(i + 3) == "," || at(i + 3) == "=");
        const bool fixed = i >= 2 && is_integer_type(before) &&
            (at(i - 2) == "const" || (i >= 3 && at(i - 3) == "const"));
        if (generic && at(i + 3) != "=") {
            if (!found.m_values.emplace(name, "").second && !found.m_values[name].empty())
                unsure.insert(name);
        } else if (fixed && at(i + 1) == "=") {
            size_t end = i + 2;
            while (end < tokens.size() && at(end) != ";" && at(end) != ",")
                ++end;
            const std::string_view value = end > i + 2
                ? source.substr(tokens[i + 2].begin, tokens[end - 1].end - tokens[i + 2].begin)
                : std::string_view();
            if (!found.m_values.emplace(name, value).second)
                unsure.insert(name);
        } else if (starts_word(before.empty() ? ' ' : before[0]) && before != "return" && before != "else" &&
                   before != "case") {
            unsure.insert(name);
        }
    }
    for (const std::string& name : used)
        if (is_upper(name) && name.size() > 1)
            found.m_values.emplace(name, ""); // imported
    for (const std::string& name : unsure)
        found.m_values.erase(name);
    return found;
}

} // namespace spy
