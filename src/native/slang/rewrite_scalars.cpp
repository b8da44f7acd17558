#include "slang/rewrite_scalars.h"

#include "slang/changed_lines.h"
#include "slang/tokens.h"

#include <algorithm>
#include <set>
#include <vector>

namespace spy {
namespace {

constexpr size_t npos = std::string_view::npos;
using Names = std::set<std::string_view>;

bool is_scalar_type(std::string_view word)
{
    static constexpr std::string_view types[] = {"float", "half", "double", "float16_t", "float32_t", "float64_t"};
    return std::find(std::begin(types), std::end(types), word) != std::end(types);
}

bool is_loop(std::string_view word) { return word == "for" || word == "while" || word == "do"; }
bool is_word(std::string_view text) { return !text.empty() && starts_word(text[0]); }

class ScalarScanner {
public:
    explicit ScalarScanner(std::string_view text) : m_text(text), m_tokens(tokens_of(text, false)) { match_brackets(); }

    /// The tokens to change, in the order of the text.
    std::vector<Token> found()
    {
        std::vector<Token> result;
        for (size_t i = 0; m_balanced && i < m_tokens.size(); ++i) {
            const size_t begin = at(i) == "{" ? parameters_before(i) : npos;
            if (begin == npos)
                continue;
            search(begin, m_match[i], result);
            i = m_match[i]; // functions hold no functions
        }
        return result;
    }

private:
    std::string_view at(size_t i) const
    {
        return i < m_tokens.size() ? m_text.substr(m_tokens[i].begin, m_tokens[i].end - m_tokens[i].begin)
                                   : std::string_view();
    }
    bool joined(size_t i) const ///< whether nothing lies between tokens i and i + 1
    {
        return i + 1 < m_tokens.size() && m_tokens[i].end == m_tokens[i + 1].begin;
    }

    void match_brackets()
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
                return;
            }
            m_match[i] = open.back();
            m_match[open.back()] = i;
            open.pop_back();
        }
        m_balanced = open.empty();
    }

    /// The `(` of the function whose body begins at token i; npos where none does.
    size_t parameters_before(size_t i) const
    {
        while (i-- > 0) { // semantics and constraints may stand between
            if (at(i) == ")")
                return m_match[i];
            if (at(i) == ";" || at(i) == "{" || at(i) == "}" || at(i) == "struct" || at(i) == "interface")
                return npos;
        }
        return npos;
    }

    void search(size_t begin, size_t end, std::vector<Token>& result) const
    {
        bool loops = false;
        for (size_t i = begin; i < end && !loops; ++i)
            loops = is_loop(at(i));
        if (!loops)
            return;
        const Names names = changing(begin, end, declared(begin, end));
        for (size_t i = begin + 1; i < end; ++i)
            if (names.count(at(i)) && is_factor(i))
                result.push_back(m_tokens[i]);
    }

    Names declared(size_t begin, size_t end) const
    {
        Names names;
        for (size_t i = begin; i + 1 < end; ++i) {
            if (!is_scalar_type(at(i)) || !is_word(at(i + 1)))
                continue;
            for (size_t j = i + 1; j < end && is_word(at(j)); ++j) {
                if (at(j + 1) != "[" && at(j + 1) != "(")
                    names.insert(at(j));
                if (i < m_match[begin])
                    break; // a parameter: behind the comma is the next one's type
                for (++j; j < end && at(j) != "," && at(j) != ";" && at(j) != ")"; ++j)
                    j = m_match[j] != npos && m_match[j] > j ? m_match[j] : j;
                if (at(j) != ",")
                    break;
            }
        }
        return names;
    }

    /// Those that get a value after their first, or may in a call, and copies of them.
    Names changing(size_t begin, size_t end, const Names& all) const
    {
        Names names;
        for (size_t before = npos; before != names.size();) {
            before = names.size();
            for (size_t i = begin + 1; i < end; ++i)
                if (all.count(at(i)) && (is_changed(i) || is_copy(i, names)))
                    names.insert(at(i));
        }
        return names;
    }

    bool is_changed(size_t i) const
    {
        const std::string_view last = at(i - 1), next = at(i + 1), second = at(i + 2);
        if (last == "." || is_scalar_type(last))
            return false;
        if (next == "=")
            return second != "=" || !joined(i + 1);
        if (next == "+" || next == "-")
            return joined(i + 1) && (second == "=" || second == next);
        if (next == "*" || next == "/")
            return joined(i + 1) && second == "=";
        const bool stepped = (last == "+" || last == "-") && i >= 2 && at(i - 2) == last && joined(i - 2);
        return stepped || ((last == "(" || last == ",") && (next == ")" || next == ","));
    }

    bool is_copy(size_t i, const Names& changed) const
    {
        return at(i + 1) == "=" && changed.count(at(i + 2)) && (at(i + 3) == ";" || at(i + 3) == ",");
    }

    /// Whether token i, a variable, is read as an operand of a product or a quotient.
    bool is_factor(size_t i) const
    {
        size_t first = i, last = i;
        while (first > 0 && at(first - 1) == "(" && at(last + 1) == ")" && first >= 2 && !is_word(at(first - 2)))
            --first, ++last;
        const std::string_view before = at(first - 1), after = at(last + 1);
        if (at(i - 1) == "." || is_scalar_type(at(i - 1)) || at(i + 1) == "." || at(i + 1) == "[" || at(i + 1) == "(")
            return false;
        if ((at(i + 1) == "+" || at(i + 1) == "-") && at(i + 2) == at(i + 1) && joined(i + 1))
            return false; // d++
        if ((at(i - 1) == "+" || at(i - 1) == "-") && i >= 2 && at(i - 2) == at(i - 1) && joined(i - 2))
            return false;                                                         // ++d
        if (is_product(before) && !(first >= 2 && is_scalar_type(at(first - 2)))) // else `float *d`
            return true;
        if (before == "=" && first >= 2 && is_product(at(first - 2)) && joined(first - 2))
            return true; // v *= d
        return is_product(after) && !(at(last + 2) == "=" && joined(last + 1));
    }
    static bool is_product(std::string_view sign) { return sign == "*" || sign == "/"; }

    std::string_view m_text;
    std::vector<Token> m_tokens;
    std::vector<size_t> m_match; ///< the other bracket of each bracket
    bool m_balanced = true;
};

} // namespace

std::string rewrite_scalars(std::string_view source)
{
    std::vector<Token> places;
    if (source.find("ifferentiable") != npos && source.find_first_of("*/") != npos)
        places = ScalarScanner(source).found();
    if (places.empty())
        return std::string(source);
    std::string result;
    size_t done = 0;
    for (const Token& place : places) {
        result.append(source.substr(done, place.begin - done)).append("(-(-");
        result.append(source.substr(place.begin, place.end - place.begin)).append("))");
        done = place.end;
    }
    result.append(source.substr(done));
    remember_lines(source, result);
    return result;
}

} // namespace spy
