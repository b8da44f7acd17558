#pragma once
// The words and signs of a Slang source, and what lies between them. Both together are the source, byte by byte.
#include <cstdint>
#include <string_view>
#include <vector>

namespace spy::syntax {

enum class TokenKind : uint8_t { word, number, string, sign };

/// Bytes [begin, end) of the source. Signs are whole operators (`+=`, `<<=`, `::`, `->`), but for those that begin with
/// ">": these are one ">" each, because `A<B<C>>` ends two lists. `Tree::sign` joins them.
struct Token {
    uint32_t begin, end;
    TokenKind kind;
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
Tokens tokens_of(std::string_view source);
Directive directive_of(std::string_view line);

} // namespace spy::syntax
