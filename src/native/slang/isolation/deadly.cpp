#include "slang/isolation/deadly.h"

#include "core/error.h"
#include "slang/syntax/lexer.h"

#include <algorithm>
#include <cstdint>

namespace spy {
namespace {

constexpr size_t nowhere = SIZE_MAX;

class Words {
public:
    explicit Words(std::string_view source) : m_source(source), m_tokens(syntax::tokens_of(source).tokens) { }

    size_t size() const { return m_tokens.size(); }
    std::string_view at(size_t i) const { return i < size() ? m_tokens[i].text(m_source) : std::string_view(); }
    const syntax::Token& operator[](size_t i) const { return m_tokens[i]; }
    /// The bracket that closes the one at i; nowhere where none does.
    size_t closing(size_t i) const
    {
        const std::string_view open = at(i), close = open == "{" ? "}" : open == "[" ? "]" : ")";
        int depth = 0;
        for (; i < size(); ++i) {
            depth += at(i) == open ? 1 : at(i) == close ? -1 : 0;
            if (depth == 0)
                return i;
        }
        return nowhere;
    }

private:
    std::string_view m_source;
    std::vector<syntax::Token> m_tokens;
};

bool gives_derivatives(std::string_view word)
{
    static constexpr std::string_view names[] = {"Differentiable",        "BackwardDifferentiable",
                                                 "ForwardDifferentiable", "BackwardDerivative",
                                                 "ForwardDerivative",     "TreatAsDifferentiable"};
    return std::find(std::begin(names), std::end(names), word) != std::end(names);
}

/// The "{" of a property that begins at i, or nowhere.
size_t accessors_of_property(const Words& words, size_t i)
{
    if (words.at(i) != "property" || (i > 0 && words.at(i - 1) == "."))
        return nowhere;
    for (++i; i < words.size(); ++i) {
        const std::string_view word = words.at(i);
        if (word == "{")
            return i;
        if (word == ";" || word == "}" || word == "=" || word == ")")
            return nowhere;
    }
    return nowhere;
}

/// Bytes of the character that begins at i; 0 where there is none.
size_t character_at(std::string_view text, size_t i)
{
    const auto byte = [&](size_t k) { return i + k < text.size() ? uint8_t(text[i + k]) : uint8_t(0); };
    const uint8_t first = byte(0);
    if (first < 0x80)
        return 1;
    const size_t size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
    if (first < 0xC2 || first > 0xF4)
        return 0;
    for (size_t k = 1; k < size; ++k)
        if ((byte(k) & 0xC0) != 0x80)
            return 0;
    const uint8_t second = byte(1);
    const bool is_overlong = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
    const bool is_none = (first == 0xED && second > 0x9F) || (first == 0xF4 && second > 0x8F);
    return is_overlong || is_none ? 0 : size;
}

constexpr std::string_view accessor_advice =
    "Slang cannot differentiate accessors of a property; write a method, such as `[Differentiable] float get_x()` or "
    "`[Differentiable, mutating] void set_x(float value)`, or a __subscript, whose accessors can be differentiable";

} // namespace

std::vector<Deadly> deadly_attributes(std::string_view source)
{
    std::vector<Deadly> found;
    if (source.find("property") == source.npos ||
        (source.find("ifferentiable") == source.npos && source.find("Deriv") == source.npos))
        return found;
    const Words words(source);
    for (size_t i = 0; i < words.size(); ++i) {
        const size_t open = accessors_of_property(words, i), end = open == nowhere ? nowhere : words.closing(open);
        if (end == nowhere)
            continue;
        for (size_t k = open + 1; k < end; ++k) {
            const size_t close = words.at(k) == "{" || words.at(k) == "[" ? words.closing(k) : nowhere;
            if (close == nowhere)
                continue;
            for (size_t word = k; words.at(k) == "[" && word < close; ++word)
                if (gives_derivatives(words.at(word))) {
                    found.push_back({words[k].begin, words[close].end, std::string(accessor_advice)});
                    break;
                }
            k = close;
        }
        i = end;
    }
    return found;
}

std::vector<Deadly> foreign_bytes(std::string_view source)
{
    std::vector<Deadly> found;
    for (size_t i = 0; i < source.size();) {
        const size_t size = character_at(source, i);
        if (!size) {
            constexpr std::string_view digits = "0123456789ABCDEF";
            const auto byte = uint8_t(source[i]);
            found.push_back({i, i + 1,
                             cat("the byte 0x", digits[byte >> 4], digits[byte & 15],
                                 " is not UTF-8; save the file with that encoding")});
        }
        i += std::max(size, size_t(1));
    }
    return found;
}

std::string point_at(std::string_view source, std::string_view path, const Deadly& place)
{
    const size_t before = place.begin == 0 ? source.npos : source.rfind('\n', place.begin - 1);
    const size_t begin = before == source.npos ? 0 : before + 1;
    const std::string_view line = source.substr(begin, source.find('\n', begin) - begin);
    const size_t column = place.begin - begin,
                 number = size_t(std::count(source.begin(), source.begin() + long(begin), '\n')) + 1;
    const std::string margin(std::to_string(number).size(), ' ');
    const std::string carets(std::max(std::min(place.end - place.begin, line.size() - column), size_t(1)), '^');
    return cat(" --> ", path, ":", number, ":", column + 1, "\n", margin, " |\n", number, " | ", line, "\n", margin,
               " | ", std::string(column, ' '), carets, " ", place.advice);
}

} // namespace spy
