#include "cuda/constants.h"

#include "core/error.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <set>
#include <vector>

namespace spy {
namespace {

bool begins_word(char c) { return std::isalpha(uint8_t(c)) || c == '_'; }

/// The byte after the comment or literal that begins at `pos`; `pos` where none does.
size_t skip_opaque(std::string_view text, size_t pos)
{
    if (text.substr(pos, 2) == "//")
        return std::min(text.find('\n', pos), text.size());
    if (text.substr(pos, 2) == "/*") {
        const size_t end = text.find("*/", pos + 2);
        return end == text.npos ? text.size() : end + 2;
    }
    const char quote = text[pos];
    if (quote != '"' && quote != '\'')
        return pos;
    size_t end = pos + 1;
    while (end < text.size() && text[end] != quote && text[end] != '\n')
        end += text[end] == '\\' ? 2 : 1;
    return std::min(end + 1, text.size());
}

/// The byte after the preprocessor line that begins at `pos`; a "\" at its end, or a comment, continues it.
size_t skip_directive(std::string_view text, size_t pos)
{
    while (pos < text.size() && text[pos] != '\n')
        pos = text[pos] == '\\' ? pos + 2 : std::max(skip_opaque(text, pos), pos + 1);
    return std::min(pos, text.size());
}

/// A run of letters and digits, or one sign: bytes [begin, end) of the text.
struct Piece {
    size_t begin, end;
};

/// Without comments, literals and lines of the preprocessor.
std::vector<Piece> pieces_of(std::string_view text)
{
    std::vector<Piece> found;
    bool begins_line = true;
    for (size_t pos = 0, end = 0; pos < text.size(); pos = end) {
        end = pos + 1;
        if (std::isspace(uint8_t(text[pos]))) {
            begins_line |= text[pos] == '\n';
        } else if (text[pos] == '#' && begins_line) {
            end = skip_directive(text, pos);
        } else if (const size_t after = skip_opaque(text, pos); after != pos) {
            begins_line &= text[pos] == '/'; // a comment may stand before a directive
            end = after;
        } else {
            begins_line = false;
            const auto in_word = [&](size_t i) {
                return i < text.size() && (begins_word(text[i]) || std::isdigit(uint8_t(text[i])));
            };
            while (in_word(pos) && in_word(end))
                ++end;
            found.push_back({pos, end});
        }
    }
    return found;
}

constexpr std::string_view plain_words[] = {"int",      "uint",      "short",    "ushort",  "char",     "uchar",
                                            "longlong", "ulonglong", "float",    "double",  "bool",     "int8_t",
                                            "uint8_t",  "int16_t",   "uint16_t", "int32_t", "uint32_t", "int64_t",
                                            "uint64_t", "true",      "false"};

bool is_plain(std::string_view word)
{
    return std::find(std::begin(plain_words), std::end(plain_words), word) != std::end(plain_words);
}

/// "make_float3" is "float3", and "make___half3" is "__half3".
std::string_view made_vector(std::string_view word)
{
    constexpr std::string_view head = "make_";
    if (!word.starts_with(head) || word.size() < head.size() + 2 || word.back() < '1' || word.back() > '4')
        return {};
    const std::string_view scalar = word.substr(head.size(), word.size() - head.size() - 1);
    return is_plain(scalar) || scalar == "__half" ? word.substr(head.size()) : std::string_view();
}

/// One `__device__ static const TYPE NAME = VALUE;`: tokens [first, end), the last of them the semicolon.
struct Constant {
    size_t first, name, end;
};

class Mender {
public:
    explicit Mender(std::string_view text) : m_text(text), m_tokens(pieces_of(text)) { }

    std::string mended()
    {
        std::string out;
        size_t at = 0;
        int depth = 0;
        for (size_t i = 0; i < m_tokens.size(); ++i) {
            depth += word(i) == "{" ? 1 : word(i) == "}" ? -1 : 0;
            Constant constant;
            if (depth != 0 || word(i) != "__device__" || !find(i, constant))
                continue;
            out += m_text.substr(at, m_tokens[i].begin - at);
            out += replacement(constant);
            at = m_tokens[constant.end - 1].end;
            i = constant.end - 1;
        }
        out += m_text.substr(at);
        return out;
    }

private:
    std::string_view word(size_t i) const
    {
        return i < m_tokens.size() ? m_text.substr(m_tokens[i].begin, m_tokens[i].end - m_tokens[i].begin)
                                   : std::string_view();
    }
    std::string_view range(size_t begin, size_t end) const // text of the tokens [begin, end)
    {
        return m_text.substr(m_tokens[begin].begin, m_tokens[end - 1].end - m_tokens[begin].begin);
    }

    bool find(size_t first, Constant& out) const
    {
        const bool is_constant = word(first + 1) == "static" &&
            (word(first + 2) == "const" || word(first + 2) == "constexpr");
        size_t i = first + 3;
        while (i < m_tokens.size() && word(i) != "=" && word(i) != ";" && word(i) != "{" && word(i) != "(")
            ++i;
        if (!is_constant || i < first + 5 || word(i) != "=" || !begins_word(word(i - 1)[0]))
            return false; // C arrays (`T name[2]`) are not Slang's
        out = {first, i - 1, i};
        int depth = 0;
        for (; out.end < m_tokens.size() && (depth > 0 || word(out.end) != ";"); ++out.end)
            depth += is_open(word(out.end)) ? 1 : is_close(word(out.end)) ? -1 : 0;
        return ++out.end <= m_tokens.size() && out.end > out.name + 3;
    }
    static bool is_open(std::string_view token) { return token == "(" || token == "{" || token == "["; }
    static bool is_close(std::string_view token) { return token == ")" || token == "}" || token == "]"; }

    std::string replacement(const Constant& c)
    {
        const std::string name(word(c.name)), type(range(c.first + 3, c.name));
        const size_t begin = c.name + 2, end = c.end - 1;
        if (is_constant(begin, end)) {
            m_known.insert(name);
            return cat("__device__ static constexpr ", type, " ", name, " = ", constant_value(begin, end), ";");
        }
        // an lvalue, so that its address may be taken for an argument
        return cat("static __device__ __forceinline__ ", type, " _spy_constant_", name, "() { return ",
                   range(begin, end), "; }\n#define ", name, " (static_cast<const ", type, "&>(_spy_constant_", name,
                   "()))\n");
    }

    /// Whether the compiler can compute it: literals, casts between scalars, vectors of them, and constants before it.
    bool is_constant(size_t begin, size_t end) const
    {
        std::vector<bool> makes; // open brackets: whether it is one of a vector's components
        int angles = 0;
        for (size_t i = begin; i < end; ++i) {
            const std::string_view token = word(i), next = word(i + 1);
            if (is_open(token))
                makes.push_back(token == "(" && (i == begin || !is_cast(i)));
            else if (is_close(token))
                makes.pop_back();
            if (token == "[" || (token == "<" && word(i - 1) != "FixedArray"))
                return false;
            angles += token == "<" ? 1 : token == ">" ? -1 : 0;
            if (angles < 0 || (token == "-" && !is_exponent(i) && !std::isdigit(uint8_t(next[0]))))
                return false;
            if (begins_word(token[0])) {
                if (!is_constant_word(i, !makes.empty() && makes.back()))
                    return false;
            } else if (!std::isdigit(uint8_t(token[0])) &&
                       std::string_view("(){}<>,.-").find(token) == std::string_view::npos) {
                return false;
            }
        }
        return angles == 0;
    }
    bool is_cast(size_t i) const { return word(i + 2) == ")" && is_plain(word(i + 1)); }
    bool is_exponent(size_t i) const // 1.0e-5f is the words 1 . 0e - 5f
    {
        const std::string_view before = word(i - 1);
        return std::isdigit(uint8_t(before[0])) && (before.back() == 'e' || before.back() == 'E') &&
            m_tokens[i - 1].end == m_tokens[i].begin;
    }
    /// in_vector: among a vector's components, where another vector cannot stand.
    bool is_constant_word(size_t i, bool in_vector) const
    {
        const std::string_view token = word(i), next = word(i + 1), before = word(i - 1);
        if (before == "." || is_plain(token))
            return true;
        if (m_known.count(token))
            return next == "." || !in_vector;
        if (next == "(")
            return token == "__half" ? is_literal(i + 2) : !made_vector(token).empty() && !in_vector;
        return (next == "{" || next == "<" || next == "," || next == ">") && !in_vector; // a type: `float3 {`
    }
    bool is_literal(size_t i) const // but for -0.0, whose sign _spy_half() does not see
    {
        if (word(i) == "-" && word(i + 1) == "0")
            return false;
        while (word(i) == "-" || word(i) == "." || (!word(i).empty() && std::isdigit(uint8_t(word(i)[0]))))
            ++i;
        return word(i) == ")";
    }

    std::string constant_value(size_t begin, size_t end) const
    {
        std::string out;
        size_t at = m_tokens[begin].begin;
        for (size_t i = begin; i < end; ++i) {
            const std::string_view token = word(i), vector = made_vector(token);
            if (vector.empty() && (token != "__half" || word(i + 1) != "("))
                continue;
            out += m_text.substr(at, m_tokens[i].begin - at);
            out += vector.empty() ? "_spy_half" : cat("_spy_made", vector.back() - '0', "<", vector, ">");
            at = m_tokens[i].end;
        }
        return out + std::string(m_text.substr(at, m_tokens[end - 1].end - at));
    }

    std::string_view m_text;
    std::vector<Piece> m_tokens;
    std::set<std::string, std::less<>> m_known; // constants that others may be made of
};

} // namespace

std::string cuda_mend_constants(std::string_view program)
{
    return program.find("__device__ static const") == program.npos ? std::string(program) : Mender(program).mended();
}

} // namespace spy
