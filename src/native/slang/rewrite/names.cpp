#include "core/tokens.h"
#include "slang/rewrite/rewrite.h"

#include <algorithm>
#include <cctype>
#include <vector>

namespace spy {

namespace {

/// Whether operands and what joins them take turns: `Gen<2 + 1, ns::A>`, but not `Gen<1 +>` or `int x`, on which Slang
/// crashes, or which it takes for the part that it can read.
class Turns {
public:
    explicit Turns(std::string_view text) : m_text(text) { }

    bool are_kept()
    {
        for (size_t at = 0; at < m_text.size();) {
            const size_t length = step(at);
            if (!length)
                return false;
            at += length;
        }
        return m_operand && m_open.empty();
    }

private:
    /// Length of what stands there; 0 when it must not.
    size_t step(size_t at)
    {
        const char c = m_text[at];
        if (std::isspace(static_cast<unsigned char>(c)))
            return 1;
        if (in_word(c))
            return word(at);
        if (m_text.substr(at, 2) == "::")
            return join(false) ? 2 : 0;
        if (std::string_view("+-~!").find(c) != std::string_view::npos)
            m_operand = false;
        else if (std::string_view(",./%*&|^").find(c) != std::string_view::npos)
            return join(false);
        else if (c == '(' && m_measures) // Slang 2026.12 crashes on others
            open(')', false);
        else if (c == '<' && m_operand)
            open('>', false);
        else if (c == '[' && m_operand) // T[] has no size
            open(']', m_text.find_first_not_of(" \t\r\n", at + 1) == m_text.find(']', at));
        else if (!m_operand || m_open.empty() || m_open.back() != c)
            return 0;
        else
            m_open.pop_back();
        m_measures = false;
        return 1;
    }

    size_t word(size_t at)
    {
        static constexpr std::string_view reserved[] = {"in",    "out",    "inout", "no_diff",
                                                        "const", "struct", "class", "enum"};
        size_t end = at;
        while (end < m_text.size() && in_word(m_text[end]))
            ++end;
        const std::string_view word = m_text.substr(at, end - at);
        if (m_operand || std::find(std::begin(reserved), std::end(reserved), word) != std::end(reserved))
            return 0;
        m_operand = true;
        m_measures = word == "sizeof" || word == "alignof";
        return end - at;
    }

    bool join(bool operand)
    {
        const bool follows = m_operand;
        m_operand = operand;
        m_measures = false;
        return follows;
    }

    void open(char close, bool operand)
    {
        m_open += close;
        m_operand = operand;
    }

    std::string_view m_text;
    std::string m_open; ///< the brackets that must close
    bool m_operand = false, m_measures = false;
};

} // namespace

bool is_expression(std::string_view text) { return Turns(text).are_kept(); }

std::string sanitize_name(std::string_view name)
{
    std::string out;
    std::vector<std::pair<char, size_t>> open = {{'\0', 0}}; // bracket and where the type inside it begins
    for (char c : name) {
        if (c == '*' && open.back().first != '[') {
            size_t begin = open.back().second;
            while (begin < out.size() && out[begin] == ' ')
                ++begin;
            while (out.size() > begin && out.back() == ' ')
                out.pop_back();
            if (begin == out.size())
                return {};
            out = out.substr(0, begin) + "Ptr<" + out.substr(begin) + ">";
            continue;
        }
        if (c == ',' && open.size() == 1)
            return {}; // Slang crashes on "float,int"
        if (c == ']' || c == '>') {
            if (open.size() < 2 || open.back().first != (c == ']' ? '[' : '<'))
                return {};
            open.pop_back();
        } else if (!in_word(c) && !std::isspace(static_cast<unsigned char>(c)) &&
                   std::string_view("<[,:.+-*/%").find(c) == std::string_view::npos) {
            return {};
        }
        out += c;
        if (c == '[' || c == '<')
            open.push_back({c, out.size()});
        else if (c == ',')
            open.back().second = out.size();
    }
    const size_t first = out.find_first_not_of(" \t\r\n");
    if (open.size() != 1 || first == std::string::npos || !starts_word(out[first]))
        return {};
    if (!out.substr(first).starts_with("operator") && !Turns(out).are_kept())
        return {};
    return out.substr(first, out.find_last_not_of(" \t\r\n") - first + 1);
}

} // namespace spy
