#include "slang/syntax/lexer.h"

#include <algorithm>
#include <array>
#include <string>

namespace spy::syntax {
namespace {

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

class Lexer {
public:
    Lexer(std::string_view source, bool with_directives) : m_source(source), m_with_directives(with_directives) { }

    Tokens read()
    {
        if (m_source.starts_with("\xef\xbb\xbf"))
            trivia(3, TriviaKind::space);
        while (m_at < m_source.size())
            step();
        return std::move(m_result);
    }

private:
    char at(size_t i) const { return i < m_source.size() ? m_source[i] : '\0'; }
    void trivia(size_t end, TriviaKind kind)
    {
        m_result.trivia.push_back({uint32_t(m_at), uint32_t(end), kind});
        m_at = end;
    }
    void token(size_t end, TokenKind kind)
    {
        m_result.tokens.push_back({uint32_t(m_at), uint32_t(end), kind});
        m_at = end;
        m_begins_line = false;
    }

    void step()
    {
        const char c = m_source[m_at];
        if (is_space(c))
            space();
        else if (c == '\\' && line_break(m_at + 1) > m_at + 1)
            trivia(line_break(m_at + 1), TriviaKind::continuation);
        else if (c == '/' && (at(m_at + 1) == '/' || at(m_at + 1) == '*'))
            trivia(comment_end(m_at), TriviaKind::comment);
        else if (c == '#' && m_begins_line && !m_with_directives)
            trivia(directive_end(), TriviaKind::directive);
        else if (c == '"' || c == '\'')
            token(string_end(m_at), TokenKind::string);
        else if (c == 'R' && at(m_at + 1) == '"')
            token(raw_string_end(), TokenKind::string);
        else if (begins_word(c))
            token(word_end(m_source, m_at), TokenKind::word);
        else if (is_digit(c) || (c == '.' && is_digit(at(m_at + 1)) && !follows_name()))
            token(number_end(), TokenKind::number);
        else
            token(m_at + sign_length(), TokenKind::sign);
    }

    void space()
    {
        size_t end = m_at;
        for (; end < m_source.size() && is_space(m_source[end]); ++end)
            m_begins_line |= m_source[end] == '\n' || m_source[end] == '\r';
        trivia(end, TriviaKind::space);
    }

    size_t line_break(size_t i) const
    {
        return at(i) == '\r' && at(i + 1) == '\n' ? i + 2 : at(i) == '\n' || at(i) == '\r' ? i + 1 : i;
    }

    /// The byte after a comment. A comment of one line ends before its line break, unless a "\" continues it.
    size_t comment_end(size_t i) const
    {
        if (m_source[i + 1] == '*') {
            const size_t end = m_source.find("*/", i + 2);
            return end == m_source.npos ? m_source.size() : end + 2;
        }
        return line_end(i + 2);
    }

    size_t line_end(size_t i) const
    {
        while (i < m_source.size() && m_source[i] != '\n' && m_source[i] != '\r')
            i = m_source[i] == '\\' ? std::max(line_break(i + 1), i + 1) : i + 1;
        return i;
    }

    size_t directive_end() const
    {
        size_t i = m_at;
        while (i < m_source.size() && m_source[i] != '\n' && m_source[i] != '\r') {
            if (m_source[i] == '\\')
                i = std::max(line_break(i + 1), i + 1);
            else if (m_source[i] == '/' && at(i + 1) == '/')
                return line_end(i);
            else if (m_source[i] == '/' && at(i + 1) == '*')
                i = comment_end(i);
            else if (m_source[i] == '"')
                i = string_end(i);
            else
                ++i;
        }
        return i;
    }

    /// Strings end with their line at the latest.
    size_t string_end(size_t i) const
    {
        const char quote = m_source[i++];
        while (i < m_source.size() && m_source[i] != '\n' && m_source[i] != '\r') {
            if (m_source[i] == '\\')
                i = std::min(std::max(line_break(i + 1), i + 2), m_source.size());
            else if (m_source[i++] == quote)
                break;
        }
        return i;
    }

    /// R"name( ... )name": over lines, and without escapes. What has no such beginning is a word before a string.
    size_t raw_string_end() const
    {
        const size_t open = m_source.find_first_of("( \t\r\n)\"\\", m_at + 2);
        if (open == m_source.npos || m_source[open] != '(')
            return m_at + 1;
        const std::string close = ")" + std::string(m_source.substr(m_at + 2, open - m_at - 2)) + '"';
        const size_t end = m_source.find(close, open + 1);
        return end == m_source.npos ? m_source.size() : end + close.size();
    }

    size_t number_end() const
    {
        size_t i = m_at;
        const bool is_hex = at(i) == '0' && (at(i + 1) == 'x' || at(i + 1) == 'X');
        for (; i < m_source.size(); ++i) {
            const char c = m_source[i];
            const bool is_exponent = !is_hex && (c == 'e' || c == 'E') && (at(i + 1) == '+' || at(i + 1) == '-');
            if (is_exponent)
                ++i;
            // `1.xxx` picks parts of a number; `1..2` is none
            else if (!(is_digit(c) || begins_word(c) || (c == '.' && !is_hex && at(i + 1) != '.' && !is_pick(i))))
                break;
        }
        return std::max(i, m_at + 1);
    }

    /// Whether the "." of a number is followed by the name of a part: `1.x`, not `1.f` or `1.e5`.
    bool is_pick(size_t dot) const
    {
        const size_t end = word_end(m_source, dot + 1);
        const std::string_view word = m_source.substr(dot + 1, end - dot - 1);
        return !word.empty() && begins_word(word[0]) && word.find_first_not_of("xyzwrgba") == word.npos;
    }

    /// `v.0` is an element of a tuple, not a number.
    bool follows_name() const
    {
        if (m_result.tokens.empty() || m_result.tokens.back().end != m_at)
            return false;
        const Token& last = m_result.tokens.back();
        const char c = m_source[last.begin];
        return last.kind == TokenKind::word || c == ')' || c == ']';
    }

    size_t sign_length() const
    {
        static constexpr std::array<std::string_view, 22> signs = {"<<=", "...", "::", "->", "=>", "++", "--", "&&",
                                                                   "||",  "<<",  "<=", "==", "!=", "+=", "-=", "*=",
                                                                   "/=",  "%=",  "&=", "|=", "^=", "##"};
        const std::string_view rest = m_source.substr(m_at, 3);
        for (const std::string_view sign : signs)
            if (rest.starts_with(sign))
                return sign.size();
        return 1;
    }

    std::string_view m_source;
    Tokens m_result;
    size_t m_at = 0;
    bool m_with_directives, m_begins_line = true;
};

} // namespace

bool begins_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || static_cast<unsigned char>(c) > 127;
}

bool in_word(char c) { return begins_word(c) || is_digit(c); }

size_t word_end(std::string_view text, size_t begin)
{
    while (begin < text.size() && in_word(text[begin]))
        ++begin;
    return begin;
}

Tokens tokens_of(std::string_view source, bool with_directives)
{
    return Lexer(source.substr(0, UINT32_MAX - 1), with_directives).read();
}

std::vector<std::string_view> words_of(std::string_view source)
{
    std::vector<std::string_view> words;
    for (const Token& token : tokens_of(source).tokens)
        if (token.kind == TokenKind::word)
            words.push_back(token.text(source));
    return words;
}

Directive directive_of(std::string_view line)
{
    const auto blanks = [&](size_t i) {
        while (i < line.size() && (is_space(line[i]) || line[i] == '\\'))
            ++i;
        return i;
    };
    const size_t begin = blanks(1);
    size_t end = begin;
    while (end < line.size() && begins_word(line[end]))
        ++end;
    return {line.substr(begin, end - begin), line.substr(blanks(end))};
}

} // namespace spy::syntax
