// Names of types and functions, as Slang may see them.
#include "slang/name_text.h"

#include "slang/syntax/lexer.h"

#include <algorithm>
#include <vector>

namespace spy {

namespace {

constexpr std::string_view spaces = " \t\r\n";
/// Deeper or longer names than any program has: Slang follows them by recursion, until its stack ends.
constexpr size_t most_tokens = 400;

template <size_t Count>
bool is_one_of(std::string_view text, const std::string_view (&list)[Count])
{
    return std::find(std::begin(list), std::end(list), text) != std::end(list);
}

/// Words that are names nowhere.
constexpr std::string_view reserved_words[] = {"in",     "out",   "inout", "no_diff", "const",
                                               "struct", "class", "enum",  "sizeof",  "alignof",
                                               "true",   "false", "this",  "new",     "__func_as_type"};
/// Words of Slang's that may also name a function of the user's, but crash it inside of <>, or in front of one.
constexpr std::string_view keywords[] = {"none",    "nullptr", "countof",  "expand",  "spirv_asm",
                                         "require", "try",     "fwd_diff", "bwd_diff"};
/// Words that Slang takes for modifiers where an argument begins, and then crashes.
constexpr std::string_view modifiers[] = {
    "centroid", "coherent", "column_major",     "constexpr",   "dyn",      "dynamic_uniform", "export",
    "extern",   "volatile", "globallycoherent", "groupshared", "highp",    "hitAttributeEXT", "indices",
    "internal", "line",     "lineadj",          "linear",      "lowp",     "mediump",         "nointerpolation",
    "override", "payload",  "noperspective",    "pervertex",   "precise",  "primitives",      "private",
    "public",   "readonly", "restrict",         "row_major",   "sample",   "snorm",           "static",
    "triangle", "unorm",    "triangleadj",      "uniform",     "vertices", "writeonly",       "param"};
constexpr std::string_view operator_signs[] = {"+",  "-",  "*", "/", "%", "==", "!=", "<", ">", "<=", ">=",
                                               "<<", ">>", "&", "|", "^", "&&", "||", "!", "~", "++", "--"};
constexpr std::string_view unary_signs[] = {"-", "~"}; // Slang crashes on +N and !N
constexpr std::string_view binary_signs[] = {"+", "-", "*", "/", "%", "&", "|", "^"};

bool is_numeral(std::string_view word)
{
    const bool is_hex = word.starts_with("0x") || word.starts_with("0X");
    if (is_hex)
        word.remove_prefix(2);
    const size_t digits = std::min(word.find_first_not_of(is_hex ? "0123456789abcdefABCDEF" : "0123456789"),
                                   word.size());
    constexpr size_t most_digits = 15, longest_suffix = 3; // Slang crashes on what no 64 bits hold
    return digits > 0 && digits <= most_digits && word.size() - digits <= longest_suffix &&
        word.find_first_not_of("uUlLzZ", digits) == word.npos;
}

/// Reads a name by the grammar
///
///     name     = operand without operators, of a type or function | "operator" sign
///     path     = word ["<" sum {"," sum} ">"] {("::" | ".") word ["<" ... ">"]}
///     operand  = number | path {"[" [sum] "]" ["." path] | "*"} | ("sizeof" | "alignof") "(" path ")"
///     sum      = {unary} operand {binary {unary} operand}
///
/// and writes it as Slang may see it: on pointer syntax, and on much that is no name, Slang 2026.12 crashes.
class NameReader {
public:
    explicit NameReader(std::string_view text) : m_text(text) { }

    /// A type or function.
    bool read_name()
    {
        skip_spaces();
        if (!starts_word_here() || !read_path(false))
            return false;
        return read_suffixes(0, false) && at_end();
    }
    bool read_expression() { return read_sum(true) && at_end(); }

    const std::string& out() const { return m_out; }
    const NameValues& values() const { return m_values; }

private:
    bool at_end()
    {
        skip_spaces();
        return m_at == m_text.size() && m_tokens <= most_tokens;
    }
    bool starts_word_here() const { return m_at < m_text.size() && syntax::begins_word(m_text[m_at]); }
    bool sees(std::string_view sign) const { return m_text.substr(m_at, sign.size()) == sign; }

    void skip_spaces()
    {
        const size_t end = std::min(m_text.find_first_not_of(spaces, m_at), m_text.size());
        take(end - m_at);
    }
    void take(size_t length)
    {
        m_out += m_text.substr(m_at, length);
        m_at += length;
    }
    bool take_sign(std::string_view sign)
    {
        skip_spaces();
        if (!sees(sign) || (m_at && (sign == "+" || sign == "-") && m_text[m_at - 1] == sign[0])) // no "--"
            return false;
        take(sign.size());
        ++m_tokens;
        return true;
    }
    std::string_view peek_word() const { return m_text.substr(m_at, syntax::word_end(m_text, m_at) - m_at); }

    /// Every way down leads through here, so nesting ends with the tokens.
    bool read_word(std::string_view& word)
    {
        skip_spaces();
        word = peek_word();
        const bool has_byte_order_mark = word.find("\xef\xbb\xbf") != word.npos; // Slang skips it
        if (word.empty() || has_byte_order_mark || ++m_tokens > most_tokens || is_one_of(word, reserved_words))
            return false;
        take(word.size());
        return true;
    }

    /// "operator" is followed by its sign, and by nothing else.
    bool read_operator()
    {
        skip_spaces();
        const std::string_view rest = m_text.substr(m_at);
        const std::string_view sign = rest.substr(0, rest.find_last_not_of(spaces) + 1);
        take(rest.size());
        return is_one_of(sign, operator_signs);
    }

    /// `is_inner`: stands inside of brackets.
    bool read_path(bool is_inner)
    {
        const size_t begin = m_at;
        do {
            std::string_view word;
            skip_spaces();
            const bool is_first = m_at == std::min(m_text.find_first_not_of(spaces, begin), m_text.size());
            if (!starts_word_here() || !read_word(word))
                return false;
            if (word == "operator")
                return !is_inner && is_first && read_operator();
            const bool has_arguments = sees_after_spaces("<"),
                       is_keyword = word.starts_with("__") || is_one_of(word, keywords);
            if ((is_keyword && (is_inner || has_arguments || sees_after_spaces(".") || sees_after_spaces("::"))) ||
                (is_first && is_inner && is_one_of(word, modifiers)))
                return false;
            if (has_arguments && !read_arguments())
                return false;
        } while (take_sign("::") || take_sign("."));
        return true;
    }

    bool sees_after_spaces(std::string_view sign) const
    {
        const size_t next = std::min(m_text.find_first_not_of(spaces, m_at), m_text.size());
        return m_text.substr(next, sign.size()) == sign;
    }

    bool read_arguments()
    {
        take_sign("<");
        do {
            if (!read_sum(false))
                return false;
        } while (take_sign(","));
        return take_sign(">");
    }

    /// A `*` that nothing follows which it could multiply by.
    bool is_pointer_star() const
    {
        const size_t next = m_text.find_first_not_of(spaces, m_at + 1);
        return next == m_text.npos || std::string_view(",>*[").find(m_text[next]) != std::string_view::npos;
    }

    /// Of what stands in the output from `begin` on.
    bool read_suffixes(size_t begin, bool in_size)
    {
        for (;;) {
            skip_spaces();
            if (sees("*") && !in_size && is_pointer_star()) {
                ++m_at;
                begin = std::min(m_out.find_first_not_of(spaces, begin), m_out.size());
                m_out.erase(m_out.find_last_not_of(spaces) + 1);
                m_out.insert(begin, "Ptr<");
                m_out += '>';
                if (++m_tokens > most_tokens)
                    return false;
            } else if (sees("[")) {
                take_sign("[");
                if (!sees_after_spaces("]") && !read_sum(true))
                    return false;
                if (!take_sign("]"))
                    return false;
                if (take_sign(".") && !read_path(true)) // float[4].Differential
                    return false;
            } else {
                return true;
            }
        }
    }

    enum class Operand { none, number, name, no_value };

    Operand read_operand(bool may_be_type)
    {
        skip_spaces();
        const std::string_view word = peek_word();
        const size_t begin = m_out.size();
        if (is_numeral(word) || word == "true" || word == "false") {
            ++m_tokens;
            take(word.size());
            return syntax::begins_word(word[0]) ? Operand::no_value : Operand::number;
        }
        if (word == "sizeof" || word == "alignof") {
            take(word.size());
            const bool is_good = take_sign("(") && read_path(true) && read_suffixes(begin, true) && take_sign(")");
            return is_good ? Operand::name : Operand::none;
        }
        if (!read_path(true))
            return Operand::none;
        const size_t end = m_out.size();
        if (!read_suffixes(begin, !may_be_type))
            return Operand::none;
        return m_out.find_first_not_of(spaces, end) == m_out.npos ? Operand::name : Operand::no_value;
    }

    /// One argument, which may be a type, or a value: a size. A type takes part in no sum.
    bool read_sum(bool is_value)
    {
        const size_t begin = m_out.size();
        std::vector<std::string> names;
        bool is_sum = false, has_types = false;
        do {
            while (take_one_of(unary_signs))
                is_sum = true;
            const size_t at = m_out.size();
            const Operand operand = read_operand(!is_value && !is_sum);
            if (operand == Operand::none)
                return false;
            if (operand == Operand::name)
                names.push_back(m_out.substr(at));
            has_types |= operand == Operand::no_value;
        } while (take_one_of(binary_signs) && (is_sum = true));
        if (!is_value && !is_sum)
            return true;
        if (!names.empty())
            m_values.whole.push_back(m_out.substr(begin));
        if (is_sum)
            m_values.terms.insert(m_values.terms.end(), names.begin(), names.end());
        return !has_types;
    }

    template <size_t Count>
    bool take_one_of(const std::string_view (&signs)[Count])
    {
        return m_tokens <= most_tokens &&
            std::any_of(std::begin(signs), std::end(signs), [this](std::string_view sign) { return take_sign(sign); });
    }

    std::string_view m_text;
    size_t m_at = 0, m_tokens = 0;
    std::string m_out;
    NameValues m_values;
};

} // namespace

bool is_expression(std::string_view text, NameValues* values)
{
    NameReader reader(text);
    const bool is_one = reader.read_expression();
    if (values)
        *values = reader.values();
    return is_one;
}

std::string sanitize_name(std::string_view name, NameValues* values)
{
    NameReader reader(name);
    if (!reader.read_name())
        return {};
    if (values)
        *values = reader.values();
    const std::string& out = reader.out();
    const size_t first = out.find_first_not_of(spaces);
    return out.substr(first, out.find_last_not_of(spaces) - first + 1);
}

} // namespace spy
