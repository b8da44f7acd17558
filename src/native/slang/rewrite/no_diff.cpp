#include "slang/rewrite/no_diff.h"

#include "core/content_hash.h"
#include "core/error.h"
#include "core/tokens.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace spy {
namespace {

class NoDiffScanner {
public:
    explicit NoDiffScanner(std::string_view source) : m_source(source), m_tokens(tokens_of(source, false)) { }

    size_t count() const { return m_tokens.size(); }
    const Token& token(size_t i) const { return m_tokens[i]; }
    std::string_view at(size_t i) const
    {
        return i < m_tokens.size() ? m_source.substr(m_tokens[i].begin, m_tokens[i].end - m_tokens[i].begin) : "";
    }

    /// Whether token i is used for its value: it does not begin a statement.
    bool gives_value(size_t i) const
    {
        const std::string_view before = i > 0 ? at(i - 1) : ";";
        if (before == ")")
            return !follows_condition(i - 1);
        if (before == ":")
            return in_conditional(i - 1);
        return before != ";" && before != "{" && before != "}" && before != "else" && before != "do" && before != "]";
    }

    /// The token behind the call that begins at token i; none for anything else, such as the type of a parameter, and
    /// for members of what a call gives, of which Slang says that they are no call.
    std::optional<size_t> call_end(size_t i) const
    {
        bool calls = false, member = false;
        for (bool first = true;; first = false) {
            if (at(i) == "(" && !first) {
                calls = true, member = false;
                i = closing(i);
            } else if (at(i) == "[" && !first) {
                member = false;
                i = closing(i);
            } else if (at(i) == "<" && !first) {
                const size_t end = generic_end(i);
                if (end == 0)
                    break;
                i = end;
            } else if (first || at(i) == "." || is_scope(i)) {
                i += first ? 0 : is_scope(i) ? 2 : 1;
                if (i >= count() || !starts_word(at(i)[0]))
                    break;
                ++i;
                member = true;
            } else {
                break;
            }
            if (i == 0 || i > count())
                return std::nullopt; // a bracket that does not close
        }
        return calls && !member ? std::optional(i) : std::nullopt;
    }

private:
    bool is_scope(size_t i) const { return at(i) == ":" && at(i + 1) == ":"; }

    /// Behind the bracket that closes the one at token i; 0: none does.
    size_t closing(size_t i) const
    {
        int depth = 0;
        for (; i < count(); ++i) {
            const char c = at(i)[0];
            depth += c == '(' || c == '[' || c == '{' ? 1 : c == ')' || c == ']' || c == '}' ? -1 : 0;
            if (depth == 0)
                return i + 1;
        }
        return 0;
    }

    /// Behind the generic arguments that begin at token i; 0 where that is a comparison.
    size_t generic_end(size_t i) const
    {
        int depth = 0;
        for (; i < count(); ++i) {
            const std::string_view text = at(i);
            depth += text == "<" ? 1 : text == ">" ? -1 : 0;
            if (depth == 0)
                return at(i + 1) == "(" || at(i + 1) == "." || is_scope(i + 1) ? i + 1 : 0;
            if (!in_word(text[0]) && text.find_first_of("<>,:.[]") == text.npos)
                return 0;
        }
        return 0;
    }

    /// Whether the bracket that ends at token i is the condition of a statement.
    bool follows_condition(size_t i) const
    {
        int depth = 0;
        for (;; --i) {
            depth += at(i) == ")" ? 1 : at(i) == "(" ? -1 : 0;
            if (depth == 0 || i == 0)
                break;
        }
        const std::string_view word = i > 0 ? at(i - 1) : "";
        return word == "if" || word == "for" || word == "while" || word == "switch";
    }

    /// Whether the colon at token i belongs to a `?`.
    bool in_conditional(size_t i) const
    {
        for (; i-- > 0;) {
            const std::string_view text = at(i);
            if (text == "?")
                return true;
            if (text == ";" || text == "{" || text == "}" || text == "case" || text == "default")
                return false;
        }
        return false;
    }

    std::string_view m_source;
    std::vector<Token> m_tokens;
};

} // namespace

std::vector<Edit> rewrite_no_diff(std::string_view source)
{
    constexpr std::string_view word = "no_diff";
    if (source.find(word) == source.npos)
        return {};
    const NoDiffScanner scanner(source);
    const std::string name = "_spy_no_diff_" + content_hash(source);
    std::vector<Edit> edits; // in the order of the text, except closings
    for (size_t i = 0; i < scanner.count(); ++i) {
        if (scanner.at(i) != word || !scanner.gives_value(i))
            continue;
        if (const std::optional<size_t> end = scanner.call_end(i + 1)) {
            const size_t open = scanner.token(i).begin, close = scanner.token(*end - 1).end;
            edits.push_back({open, open, "no_diff " + name + "("});
            edits.push_back({close, close, ")"});
        }
    }
    if (edits.empty())
        return {};
    std::stable_sort(edits.begin(), edits.end(), [](const Edit& a, const Edit& b) { return a.begin < b.begin; });
    // A file may be included more than once.
    edits.push_back(
        {source.size(), source.size(),
         cat("\n#ifndef ", name, "_\n#define ", name, "_\nT ", name, "<T>(T value) { return value; }\n#endif\n")});
    return edits;
}

} // namespace spy
