#include "slang/rewrite/scalars.h"

#include "core/error.h"
#include "slang/rewrite/bracketed.h"
#include "slang/rewrite/edits.h"

namespace spy {
namespace {

using Names = BracketedText::Names;

class ScalarScanner {
public:
    explicit ScalarScanner(std::string_view text) : m_text(text) { }

    /// The tokens to change, in the order of the text.
    std::vector<Token> found() const
    {
        std::vector<Token> result;
        for (const FunctionBody& body : m_text.bodies())
            search(body, result);
        return result;
    }

private:
    std::string_view at(size_t i) const { return m_text.at(i); }
    bool joined(size_t i) const { return m_text.joined(i); }

    void search(const FunctionBody& body, std::vector<Token>& result) const
    {
        if (!m_text.loops(body).any())
            return;
        const auto type_end = [this](size_t i) { return is_float_word(at(i)) ? i + 1 : i; };
        const Names names = changing(body.begin, body.end, m_text.declared(body, type_end));
        for (size_t i = body.begin + 1; i < body.end; ++i)
            if (names.count(at(i)) && is_factor(i))
                result.push_back(m_text.token(i));
    }

    /// Those that get a value after their first, or may in a call, and copies of them.
    Names changing(size_t begin, size_t end, const Names& all) const
    {
        Names names;
        for (size_t before = BracketedText::npos; before != names.size();) {
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
        if (last == "." || is_float_word(last))
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
        if (at(i - 1) == "." || is_float_word(at(i - 1)) || at(i + 1) == "." || at(i + 1) == "[" || at(i + 1) == "(")
            return false;
        if ((at(i + 1) == "+" || at(i + 1) == "-") && at(i + 2) == at(i + 1) && joined(i + 1))
            return false; // d++
        if ((at(i - 1) == "+" || at(i - 1) == "-") && i >= 2 && at(i - 2) == at(i - 1) && joined(i - 2))
            return false;                                                        // ++d
        if (is_product(before) && !(first >= 2 && is_float_word(at(first - 2)))) // else `float *d`
            return true;
        if (before == "=" && first >= 2 && is_product(at(first - 2)) && joined(first - 2))
            return true; // v *= d
        return is_product(after) && !(at(last + 2) == "=" && joined(last + 1));
    }
    static bool is_product(std::string_view sign) { return sign == "*" || sign == "/"; }

    BracketedText m_text;
};

} // namespace

std::string rewrite_scalars(std::string_view source)
{
    if (source.find("ifferentiable") == source.npos || source.find_first_of("*/") == source.npos)
        return std::string(source);
    std::vector<Edit> edits;
    for (const Token& place : ScalarScanner(source).found())
        edits.push_back(
            {place.begin, place.end, cat("(-(-", source.substr(place.begin, place.end - place.begin), "))")});
    return with_edits(source, edits);
}

} // namespace spy
