#pragma once
// The words and signs of a Slang source, and what lies between them. Both together are the source, byte by byte.
#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

namespace spy::syntax {

enum class TokenKind : uint8_t { word, number, string, sign };

/// Bytes [begin, end) of the source. Signs are whole operators (`+=`, `<<=`, `::`, `->`), but for those that begin with
/// ">": these are one ">" each, because `A<B<C>>` ends two lists. `Tree::sign` joins them.
struct Token {
    uint32_t begin, end;
    TokenKind kind;
    std::string_view text(std::string_view source) const { return source.substr(begin, end - begin); }
};

/// `hidden`: a branch of an `#if` that opens or closes other brackets than it has, where another branch of the same
/// `#if` was taken in its place.
enum class TriviaKind : uint8_t { space, comment, continuation, directive, hidden };

struct Trivia {
    uint32_t begin, end;
    TriviaKind kind;
};

struct Tokens {
    std::vector<Token> tokens;
    std::vector<Trivia> trivia; ///< in order; directives without the end of their line
};

/// `#define`, `#if`, ... with its name and the rest of its line.
struct Directive {
    std::string_view word, rest;
    bool is_condition() const { return word == "endif" || word.starts_with("if") || word.starts_with("el"); }
};

/// Linear in the length. Sources over 4 GiB are none; what is no token of Slang is a sign of one byte.
/// `with_directives`: `#`, `define` and what follows are tokens, too, and no trivia.
Tokens tokens_of(std::string_view source, bool with_directives = false);
/// The words among the tokens, in order.
std::vector<std::string_view> words_of(std::string_view source);
Directive directive_of(std::string_view line);

/// Letters and `_`. Bytes over 127 belong to words, too: Slang reads UTF-8 in names.
bool begins_word(char c);
bool in_word(char c); ///< digits, too
inline bool is_among(std::string_view text, std::initializer_list<std::string_view> texts)
{
    return std::find(texts.begin(), texts.end(), text) != texts.end();
}
/// The byte after the letters and digits that begin at a byte; that byte itself where none do.
size_t word_end(std::string_view text, size_t begin);

} // namespace spy::syntax
