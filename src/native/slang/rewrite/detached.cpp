#include "slang/rewrite/detached.h"

#include "slang/rewrite/bracketed.h"
#include "slang/rewrite/edits.h"
#include "slang/rewrite/functions.h"

#include <map>

namespace spy {
namespace {

using Names = BracketedText::Names;

class DetachedScanner {
public:
    explicit DetachedScanner(std::string_view text) : m_text(text) { }

    /// What to put where: byte in the source -> text.
    std::map<size_t, std::string> found() const
    {
        std::map<size_t, std::string> places;
        for (const FunctionBody& body : m_text.bodies()) {
            if (!may_be_differentiable(m_text, body))
                continue;
            const Names names = scalars_of(body);
            for (size_t i = body.open + 1; i < body.end; ++i)
                if (names.count(at(i)) && (is_component(i) || is_copied(i)) && !is_hidden(i, body)) {
                    places[m_text.token(i).begin] += "detach(";
                    places[m_text.token(i).end] += ')';
                }
        }
        return places;
    }

private:
    std::string_view at(size_t i) const { return m_text.at(i); }

    /// `no_diff float c` among the parameters, by name.
    Names scalars_of(const FunctionBody& body) const
    {
        Names names;
        for (const Argument& parameter : arguments_of(m_text, body.begin)) {
            if (parameter.empty())
                continue;
            const size_t last = parameter.last;
            bool is_plain = last > parameter.first + 1 && is_float_word(at(last - 1)), is_no_diff = false;
            for (size_t i = parameter.first; i < last; ++i) {
                is_no_diff |= at(i) == "no_diff";
                is_plain &= at(i) != "out" && at(i) != "inout";
            }
            if (is_plain && is_no_diff)
                names.insert(at(last));
        }
        return names;
    }

    /// Whether a variable of the function may have the name at a token.
    bool is_hidden(size_t i, const FunctionBody& body) const
    {
        static const Names no_types = {"return", "else", "case"};
        for (size_t k = body.open + 1; k < i; ++k) {
            const bool is_declared = at(k) == at(i) && k + 1 < i &&
                ((is_word(at(k - 1)) && !no_types.count(at(k - 1))) || at(k - 1) == ">" || at(k - 1) == "]" ||
                 (at(k - 1) == "," && at(m_text.around(k)) == "{"));
            if (is_declared && (at(m_text.around(k)) != "{" || m_text.match(m_text.around(k)) > i))
                return true;
        }
        return false;
    }

    /// Whether a name alone is an argument of a vector's or matrix's constructor.
    bool is_component(size_t i) const
    {
        const size_t open = m_text.around(i);
        if (open == npos || at(open) != "(" || (at(i - 1) != "(" && at(i - 1) != ",") ||
            (at(i + 1) != ")" && at(i + 1) != ","))
            return false;
        const size_t name = called_name(m_text, open);
        return name != npos && (m_text.is_float_name(at(name)) || at(name) == "vector" || at(name) == "matrix");
    }

    /// `float d = c;`
    bool is_copied(size_t i) const
    {
        return at(i - 1) == "=" && at(i + 1) == ";" && is_word(at(i - 2)) && is_float_word(at(i - 3));
    }

    BracketedText m_text;
};

} // namespace

std::string rewrite_detached(std::string_view source)
{
    const bool may = source.find("ifferentiable") != source.npos && source.find("no_diff") != source.npos;
    return may ? with_insertions(source, DetachedScanner(source).found()) : std::string(source);
}

} // namespace spy
