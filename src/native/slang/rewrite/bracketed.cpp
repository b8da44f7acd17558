#include "slang/rewrite/bracketed.h"

#include "slang/syntax/uses.h"

#include <algorithm>

namespace spy {

bool is_float_word(std::string_view word)
{
    static constexpr std::string_view types[] = {"float", "half", "double", "float16_t", "float32_t", "float64_t"};
    return std::find(std::begin(types), std::end(types), word) != std::end(types);
}

bool is_float_type(std::string_view word)
{
    return is_float_word(word) || is_float_word(word.substr(0, word.find_last_not_of("1234x") + 1));
}

bool writes_no_argument(std::string_view function)
{
    static const BracketedText::Names words = {"if", "for", "while", "switch", "return"};
    return words.count(function) > 0 || syntax::only_reads_arguments(function);
}

BracketedText::BracketedText(std::string_view text) : m_text(text), m_tokens(tokens_of(text, false))
{
    match_brackets();
    find_aliases();
}

void BracketedText::find_aliases()
{
    for (size_t i = 0; i + 2 < m_tokens.size(); ++i) {
        const TypeAlias alias = alias_at(*this, i);
        if (alias.name != npos && !alias.is_array && at(alias.end) == ";" && is_float_type(at(alias.type)) &&
            !is_float_word(at(alias.type)) && !at(alias.name).starts_with("_spy_")) // those are of generated kernels
            m_aliases.insert(at(alias.name));
    }
}

bool BracketedText::is_float_name(std::string_view word) const { return is_float_type(word) || m_aliases.count(word); }

std::string_view BracketedText::at(size_t i) const
{
    return i < m_tokens.size() ? m_text.substr(m_tokens[i].begin, m_tokens[i].end - m_tokens[i].begin)
                               : std::string_view();
}

std::string_view BracketedText::text(size_t first, size_t last) const
{
    return m_text.substr(m_tokens[first].begin, m_tokens[last].end - m_tokens[first].begin);
}

bool BracketedText::joined(size_t i) const
{
    return i + 1 < m_tokens.size() && m_tokens[i].end == m_tokens[i + 1].begin;
}

void BracketedText::match_brackets()
{
    m_match.assign(m_tokens.size(), npos);
    m_around.assign(m_tokens.size(), npos);
    std::vector<size_t> open;
    for (size_t i = 0; i < m_tokens.size(); ++i) {
        const std::string_view sign = at(i);
        const size_t kind = std::string_view(")]}").find(sign);
        if (kind != npos) {
            if (open.empty() || at(open.back())[0] != "([{"[kind]) {
                m_balanced = false;
                return;
            }
            m_match[i] = open.back();
            m_match[open.back()] = i;
            open.pop_back();
        }
        m_around[i] = open.empty() ? npos : open.back();
        if (sign == "(" || sign == "[" || sign == "{")
            open.push_back(i);
    }
    m_balanced = open.empty();
}

std::vector<FunctionBody> BracketedText::bodies() const
{
    std::vector<FunctionBody> result;
    for (size_t i = 0; m_balanced && i < m_tokens.size(); ++i) {
        const size_t begin = at(i) == "{" ? parameters_before(i) : npos;
        if (begin == npos)
            continue;
        result.push_back({begin, i, m_match[i]});
        i = m_match[i];
    }
    return result;
}

LoopWords BracketedText::loops(const FunctionBody& body) const
{
    LoopWords words;
    for (size_t i = body.open; i < body.end; ++i)
        if (is_loop_word(at(i)))
            words = {words.any() ? words.first : i, i};
    return words;
}

/// The "(" of the function whose body opens at a token; npos where none does.
size_t BracketedText::parameters_before(size_t open) const
{
    for (size_t i = open; i-- > 0;) { // semantics and constraints may stand between
        if (at(i) == ")")
            return m_match[i];
        if (at(i) == ";" || at(i) == "{" || at(i) == "}" || at(i) == "struct" || at(i) == "interface")
            return npos;
    }
    return npos;
}

/// The name behind the comma that ends the declaration of name i; npos where none does.
size_t BracketedText::next_name(size_t i, size_t end) const
{
    for (++i; i < end && at(i) != "," && at(i) != ";" && at(i) != ")"; ++i)
        i = m_match[i] != npos && m_match[i] > i ? m_match[i] : i;
    return at(i) == "," ? i + 1 : npos;
}

size_t BracketedText::float_type_end(size_t i) const
{
    static const Names may_stand_before = {"(", ",", "{", "}", ";", ":", "in", "out", "inout"};
    if (i == 0 || !may_stand_before.count(at(i - 1)))
        return i;
    if (is_float_name(at(i)))
        return i + 1;
    if ((at(i) != "vector" && at(i) != "matrix") || at(i + 1) != "<" || !is_float_word(at(i + 2)))
        return i;
    size_t end = i + 3;
    while (at(end) == "," || is_word(at(end)) || (!at(end).empty() && at(end)[0] >= '0' && at(end)[0] <= '9'))
        ++end;
    return at(end) == ">" ? end + 1 : i;
}

BracketedText::Names BracketedText::local_floats(const FunctionBody& body) const
{
    static const Names before_values = {"return", "else", "do", "case", "no_diff", "var"};
    Names names = declared(body, [this](size_t i) { return float_type_end(i); });
    for (size_t i = body.open; i < body.end; ++i)
        if (at(i) == "var" && at(i + 2) == "=" && is_made_of(i + 3, names))
            names.insert(at(i + 1));
    for (size_t i = body.begin; i < body.end; ++i) {
        const bool other = is_word(at(i - 1)) ? !is_float_name(at(i - 1)) && !before_values.count(at(i - 1))
                                              : at(i - 1) == "]" && at(i + 1) == "=";
        if (other || (is_float_name(at(i - 1)) && at(i + 1) == "["))
            names.erase(at(i));
    }
    return names;
}

/// Whether the expression at i has numbers, such variables, their elements and constructors of such types only.
bool BracketedText::is_made_of(size_t i, const Names& floats) const
{
    static const Names signs = {"+", "-", "*", "/", "(", ")", ",", "."};
    for (; at(i) != ";"; ++i) {
        const std::string_view word = at(i);
        const bool is_number = !word.empty() && word[0] >= '0' && word[0] <= '9';
        if (word.empty() ||
            !(is_number || signs.count(word) || floats.count(word) || is_float_name(word) || at(i - 1) == "."))
            return false;
    }
    return true;
}

bool BracketedText::is_list(size_t open) const
{
    const std::string_view before = at(open - 1);
    return before == "=" || before == "," || before == "(" || before == "return" ||
        (before == "{" && is_list(open - 1));
}

size_t BracketedText::header_of(const FunctionBody& body) const
{
    size_t i = body.begin;
    while (i > 0 && at(i - 1) != ";" && at(i - 1) != "{" && at(i - 1) != "}")
        i = at(i - 1) == "]" || at(i - 1) == ")" ? match(i - 1) : i - 1;
    return i;
}

size_t BracketedText::declaration_of(const FunctionBody& body) const
{
    size_t begin = header_of(body);
    while (!scope_word(begin).empty()) {
        const size_t open = around(begin);
        begin = header_of({open, open, open});
    }
    return begin;
}

std::string_view BracketedText::scope_word(size_t begin) const
{
    const size_t open = around(begin);
    for (size_t i = open; open != npos && i-- > 0 && at(i) != ";" && at(i) != "}" && at(i) != "{";)
        if (at(i) == "struct" || at(i) == "class" || at(i) == "extension" || at(i) == "interface")
            return at(i);
    return {};
}

bool BracketedText::is_assignment(size_t i) const
{
    const std::string_view sign = at(i), second = at(i + 1);
    if (sign == "=")
        return second != "=" || !joined(i);
    const bool is_operator = sign == "+" || sign == "-" || sign == "*" || sign == "/" || sign == "%";
    return is_operator && joined(i) && (second == "=" || ((sign == "+" || sign == "-") && second == sign));
}

bool BracketedText::is_stepped(size_t i) const
{
    return (at(i - 1) == "+" || at(i - 1) == "-") && at(i - 2) == at(i - 1) && joined(i - 2);
}

TypeAlias alias_at(const BracketedText& text, size_t i)
{
    const bool is_new = text.at(i) == "typealias" && text.at(i + 2) == "=";
    if (!is_new && text.at(i) != "typedef")
        return {npos, npos, i, false};
    const size_t type = is_new ? i + 3 : i + 1;
    size_t end = type + 1;
    bool is_array = text.at(end) == "[";
    while (text.at(end) == "[" && text.match(end) != npos)
        end = text.match(end) + 1;
    if (is_new)
        return {i + 1, type, end, is_array};
    is_array |= text.at(end + 1) == "[";
    return {end, type, end + 1, is_array};
}

NamePath path_at(const BracketedText& text, size_t i)
{
    NamePath path{i, i + 1};
    while (text.at(path.end) == "." || (text.at(path.end) == "[" && text.match(path.end) != npos)) {
        path.last = path.end;
        path.end = text.at(path.end) == "." ? path.end + 2 : text.match(path.end) + 1;
    }
    return path;
}

} // namespace spy
