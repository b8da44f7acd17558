#include "slang/rewrite/scalars.h"

#include "core/error.h"
#include "slang/rewrite/bracketed.h"
#include "slang/rewrite/edits.h"
#include "slang/rewrite/variables.h"

#include <algorithm>

namespace spy {
namespace {

using Names = BracketedText::Names;
using Variables = std::map<std::string_view, DeclaredName>;

/// Words of statements that hold scalars alone, apart from names of variables and types.
constexpr std::string_view scalar_words[] = {
    "return",   "if",    "else",  "for",   "while", "do",    "switch",   "case", "default", "break",
    "continue", "const", "let",   "var",   "true",  "false", "sin",      "cos",  "tan",     "asin",
    "acos",     "atan",  "atan2", "sinh",  "cosh",  "tanh",  "exp",      "exp2", "log",     "log2",
    "log10",    "sqrt",  "rsqrt", "rcp",   "pow",   "abs",   "min",      "max",  "clamp",   "lerp",
    "fma",      "mad",   "sign",  "floor", "ceil",  "round", "saturate", "frac", "detach",  "no_diff"};
constexpr std::string_view integer_words[] = {"bool",     "int",     "uint",     "int8_t",  "uint8_t", "int16_t",
                                              "uint16_t", "int32_t", "uint32_t", "int64_t", "uint64_t"};

constexpr std::string_view swizzle_letters = "xyzwrgba";

template <size_t N>
bool is_among(const std::string_view (&words)[N], std::string_view word)
{
    return std::find(std::begin(words), std::end(words), word) != std::end(words);
}

/// What is known of the variables of a function.
struct Known {
    Names scalars, floats; ///< of numbers, and of those that have derivatives
    Variables variables;   ///< all whose type is written; generic ones and `vector<T, n>` as `float`
};

class ScalarScanner {
public:
    ScalarScanner(std::string_view text, const FunctionTables& imported)
        : m_text(text),
          m_own(m_text),
          m_imported(imported)
    {
    }

    /// The tokens to change, in the order of the text.
    std::vector<TextToken> found() const
    {
        std::vector<TextToken> result;
        for (const FunctionBody& body : m_text.bodies())
            search(body, result);
        return result;
    }

private:
    std::string_view at(size_t i) const { return m_text.at(i); }
    bool joined(size_t i) const { return m_text.joined(i); }

    void search(const FunctionBody& body, std::vector<TextToken>& result) const
    {
        const Known known = known_of(body);
        for (size_t begin = body.open + 1, end = begin; begin < body.end; begin = end = end + 1) {
            while (end < body.end && at(end) != ";" && at(end) != "{" && at(end) != "}")
                ++end;
            if (!may_hold_vectors(begin, end, known.scalars))
                continue;
            for (size_t i = begin, next; i < end; i = next) {
                next = operand_end(i, known);
                if (next > i && is_operand(i, next))
                    result.push_back({m_text.token(i).begin, m_text.token(next - 1).end});
                next = std::max(next, i + 1);
            }
        }
    }

    Known known_of(const FunctionBody& body) const
    {
        const Names generic = generic_floats(body);
        Known known{declared(body, is_scalar_word),
                    declared(body, [&](std::string_view word) { return is_float_word(word) || generic.count(word); }),
                    declared_names(m_text, body)};
        for (const std::string_view name : declared(body, is_vector_word))
            known.scalars.erase(name);
        for (auto& [name, variable] : known.variables)
            if (generic.count(variable.type) || variable.type == "vector" || variable.type == "matrix")
                variable.type = "float";
        add_untyped(body, known);
        return known;
    }

    /// `var b = a;` and `let b = a * 2;` of scalars declare one more, `var q = float2(a, 1);` a vector.
    void add_untyped(const FunctionBody& body, Known& known) const
    {
        static const Names others = {"<", ">", "=", "!", "&", "|", "{", "true", "false", "detach", "no_diff"};
        for (size_t i = body.open; i + 2 < body.end; ++i) {
            if ((at(i) != "var" && at(i) != "let") || at(i + 2) != "=")
                continue;
            size_t end = i + 3;
            while (end < body.end && at(end) != ";" && !others.count(at(end)))
                ++end;
            if (at(end) != ";")
                continue;
            if (is_scalar(i + 3, end, known)) {
                known.scalars.insert(at(i + 1));
                known.floats.insert(at(i + 1));
            } else if (m_text.is_float_name(at(i + 3)) && at(i + 4) == "(" && m_text.match(i + 4) + 1 == end) {
                known.variables[at(i + 1)].type = at(i + 3);
            }
        }
    }

    /// Whether tokens [i, end) are known to be of scalars.
    bool is_scalar(size_t i, size_t end, const Known& known) const
    {
        while (i < end) {
            const size_t behind = operand_end(i, known);
            if (behind == i && may_hold_vectors(i, i + 1, known.scalars))
                return false;
            i = std::max(behind, i + 1);
        }
        return true;
    }

    /// The token behind a scalar of floats that begins at i: a variable, or an element of one, or of a constructor's
    /// value; i where none does.
    size_t operand_end(size_t i, const Known& known) const
    {
        if (at(i - 1) == "." || !is_word(at(i)))
            return i;
        size_t base = i;
        if (m_text.is_float_name(at(i)) && at(i + 1) == "(" && m_text.match(i + 1) != npos)
            base = m_text.match(i + 1);
        const NamePath path = path_at(m_text, base);
        if (path.end == base + 1)
            return known.floats.count(at(i)) ? path.end : i;
        return at(path.end) != "(" && is_element(base, path, known.variables) ? path.end : i;
    }

    /// Whether a path leads to one number of a vector, a matrix, an array or a struct of floats. Parameters that keep
    /// their values are read from memory, which is right as it is.
    bool is_element(size_t base, const NamePath& path, const Variables& variables) const
    {
        const std::string_view last = at(path.last + 1);
        const bool is_single = at(path.last) == "[" || (last.size() == 1 && swizzle_letters.find(last) != npos);
        if (base + 1 < path.end && at(base) == ")")
            return is_single;
        const auto found = variables.find(at(base));
        if (found == variables.end() || found->second.is_other || !is_made_here(found->second, base))
            return false;
        if (m_text.is_float_name(found->second.type))
            return is_single;
        size_t field = path.last; // the last one that is no letter of a swizzle
        while (field > base && !(at(field) == "." && is_float_field(at(field + 1))))
            --field;
        return field > base && (is_single || field == path.last);
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

    /// Whether tokens [i, end) are read as an operand of a sum, a product or the like.
    bool is_operand(size_t i, size_t end) const
    {
        if (is_float_word(at(i - 1)) || at(end) == "." || at(end) == "[" || at(end) == "(")
            return false;
        if (is_step(end) || (i >= 2 && is_step(i - 2)))
            return false; // d++, ++d
        size_t first = i, last = end - 1;
        while (first >= 2 && at(first - 1) == "(" && at(last + 1) == ")" && !is_called(first - 2))
            first -= is_float_word(at(first - 2)) ? 2 : 1, ++last;
        return is_signed(first, last) || is_chosen(first, last);
    }

    /// Whether a sum, a product or the like takes what stands at tokens first to last.
    bool is_signed(size_t first, size_t last) const
    {
        const std::string_view before = at(first - 1), after = at(last + 1);
        if (is_sign(before) && !(first >= 2 && is_float_word(at(first - 2)))) // else `float *d`
            return true;
        if (before == "=" && first >= 2 && is_sign(at(first - 2)) && joined(first - 2))
            return true; // v *= d
        return is_sign(after) && !(at(last + 2) == "=" && joined(last + 1));
    }

    /// Whether that is `d` of an operand (c ? d : e) or (c, d), or of v += c ? d : e, which Slang takes for d where it
    /// knows c.
    bool is_chosen(size_t first, size_t last) const
    {
        static const Names before = {"?", ":", ","}, after = {":", ")", ";"};
        if (!before.count(at(first - 1)) || !after.count(at(last + 1)))
            return false;
        const size_t open = m_text.around(first);
        if (open == npos || open == 0 || m_text.match(open) == npos)
            return false;
        if (at(open) == "(")
            return !is_called(open - 1) && is_signed(open, m_text.match(open));
        for (size_t i = first; i-- > open && at(i) != ";" && at(i) != "{" && at(i) != "}";)
            if (at(i) == "=")
                return is_sign(at(i - 1)) && joined(i - 1);
        return false;
    }

    /// Whether a variable is made in the function: a local one, or a parameter that is written.
    bool is_made_here(const DeclaredName& variable, size_t read) const
    {
        const size_t token = variable.tokens.front(), list = m_text.around(token);
        if (at(list) != "(")
            return true;
        for (size_t i = m_text.match(list); i < read; ++i)
            if (at(i) == at(token) && m_text.is_assignment(path_at(m_text, i).end))
                return true;
        return false;
    }

    /// Whether all structs known give a field of this name numbers of floats.
    bool is_float_field(std::string_view name) const
    {
        bool is_known = false;
        const auto look = [&](const FunctionTable& table) {
            const FieldTypes* types = table.field(name);
            if (!types)
                return true;
            is_known = true;
            const auto is_float = [](const std::string& type) { return is_float_type(type); };
            return std::all_of(types->arrays.begin(), types->arrays.end(), is_float) &&
                std::all_of(types->singles.begin(), types->singles.end(), is_float);
        };
        return look(m_own) &&
            std::all_of(m_imported.begin(), m_imported.end(), [&](const auto& table) { return look(*table); }) &&
            is_known;
    }

    /// Whether a bracket behind token i holds arguments; that of a cast is one of an expression.
    bool is_called(size_t i) const { return is_word(at(i)) && at(i) != "return" && !is_float_word(at(i)); }
    bool is_step(size_t i) const { return (at(i) == "+" || at(i) == "-") && at(i + 1) == at(i) && joined(i); }
    static bool is_sign(std::string_view sign) { return sign == "*" || sign == "/" || sign == "+" || sign == "-"; }

    BracketedText m_text;
    FunctionTable m_own;
    const FunctionTables& m_imported;
};

} // namespace

std::vector<Edit> rewrite_scalars(std::string_view source, const FunctionTables& imported)
{
    if (source.find("ifferentiable") == source.npos || source.find_first_of("+-*/") == source.npos)
        return {};
    std::vector<Edit> edits;
    for (const TextToken& place : ScalarScanner(source, imported).found())
        edits.push_back(
            {place.begin, place.end, cat("(-(-", source.substr(place.begin, place.end - place.begin), "))")});
    return edits;
}

} // namespace spy
