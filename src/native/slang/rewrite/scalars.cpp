#include "slang/rewrite/scalars.h"

#include "core/error.h"
#include "slang/rewrite/bracketed.h"
#include "slang/rewrite/edits.h"

#include <algorithm>

namespace spy {
namespace {

using Names = BracketedText::Names;

/// Words of statements that hold scalars alone, apart from names of variables and types.
constexpr std::string_view scalar_words[] = {
    "return",   "if",    "else",  "for",   "while", "do",    "switch",   "case", "default", "break",
    "continue", "const", "let",   "var",   "true",  "false", "sin",      "cos",  "tan",     "asin",
    "acos",     "atan",  "atan2", "sinh",  "cosh",  "tanh",  "exp",      "exp2", "log",     "log2",
    "log10",    "sqrt",  "rsqrt", "rcp",   "pow",   "abs",   "min",      "max",  "clamp",   "lerp",
    "fma",      "mad",   "sign",  "floor", "ceil",  "round", "saturate", "frac", "detach",  "no_diff"};
constexpr std::string_view integer_words[] = {"bool",     "int",     "uint",     "int8_t",  "uint8_t", "int16_t",
                                              "uint16_t", "int32_t", "uint32_t", "int64_t", "uint64_t"};

template <size_t N>
bool is_among(const std::string_view (&words)[N], std::string_view word)
{
    return std::find(std::begin(words), std::end(words), word) != std::end(words);
}

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
        const Names generic = generic_floats(body), floats = declared(body, [&](std::string_view word) {
                                                        return is_float_word(word) || generic.count(word);
                                                    });
        Names scalars = declared(body, is_scalar_word);
        for (const std::string_view name : declared(body, is_vector_word))
            scalars.erase(name);
        for (size_t begin = body.open + 1, end = begin; begin < body.end; begin = end = end + 1) {
            while (end < body.end && at(end) != ";" && at(end) != "{" && at(end) != "}")
                ++end;
            if (!may_hold_vectors(begin, end, scalars))
                continue;
            for (size_t i = begin; i < end; ++i)
                if (floats.count(at(i)) && is_operand(i))
                    result.push_back(m_text.token(i));
        }
    }

    static bool is_scalar_word(std::string_view word) { return is_float_word(word) || is_among(integer_words, word); }
    static bool is_vector_word(std::string_view word) { return is_float_type(word) && !is_float_word(word); }

    /// Names of variables whose type is such a word.
    template <typename Test>
    Names declared(const FunctionBody& body, Test is_type) const
    {
        return m_text.declared(body, [&](size_t i) { return is_type(at(i)) ? i + 1 : i; });
    }

    /// T of f<T : __BuiltinFloatingPointType>(...).
    Names generic_floats(const FunctionBody& body) const
    {
        Names names;
        if (body.begin == 0 || at(body.begin - 1) != ">")
            return names;
        for (size_t i = body.begin - 1; i >= 2 && at(i) != "<"; --i)
            if (at(i) == "__BuiltinFloatingPointType" && at(i - 1) == ":")
                names.insert(at(i - 2));
        return names;
    }

    /// False where all that stands there is known to be of scalars.
    bool may_hold_vectors(size_t begin, size_t end, const Names& scalars) const
    {
        for (size_t i = begin; i < end; ++i)
            if (is_word(at(i)) && !scalars.count(at(i)) && !is_scalar_word(at(i)) && !is_among(scalar_words, at(i)))
                return true;
        return false;
    }

    /// Whether token i, a variable, is read as an operand of a sum, a product or the like.
    bool is_operand(size_t i) const
    {
        if (at(i - 1) == "." || is_float_word(at(i - 1)) || at(i + 1) == "." || at(i + 1) == "[" || at(i + 1) == "(")
            return false;
        if (is_step(i + 1) || (i >= 2 && is_step(i - 2)))
            return false; // d++, ++d
        size_t first = i, last = i;
        while (first >= 2 && at(first - 1) == "(" && at(last + 1) == ")" && !is_called(first - 2))
            first -= is_float_word(at(first - 2)) ? 2 : 1, ++last;
        const std::string_view before = at(first - 1), after = at(last + 1);
        if (is_sign(before) && !(first >= 2 && is_float_word(at(first - 2)))) // else `float *d`
            return true;
        if (before == "=" && first >= 2 && is_sign(at(first - 2)) && joined(first - 2))
            return true; // v *= d
        return is_sign(after) && !(at(last + 2) == "=" && joined(last + 1));
    }

    /// Whether a bracket behind token i holds arguments; that of a cast is one of an expression.
    bool is_called(size_t i) const { return is_word(at(i)) && at(i) != "return" && !is_float_word(at(i)); }
    bool is_step(size_t i) const { return (at(i) == "+" || at(i) == "-") && at(i + 1) == at(i) && joined(i); }
    static bool is_sign(std::string_view sign) { return sign == "*" || sign == "/" || sign == "+" || sign == "-"; }

    BracketedText m_text;
};

} // namespace

std::string rewrite_scalars(std::string_view source)
{
    if (source.find("ifferentiable") == source.npos || source.find_first_of("+-*/") == source.npos)
        return std::string(source);
    std::vector<Edit> edits;
    for (const Token& place : ScalarScanner(source).found())
        edits.push_back(
            {place.begin, place.end, cat("(-(-", source.substr(place.begin, place.end - place.begin), "))")});
    return with_edits(source, edits);
}

} // namespace spy
