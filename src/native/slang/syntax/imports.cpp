#include "slang/syntax/imports.h"

#include "slang/syntax/lexer.h"

#include <algorithm>

namespace spy::syntax {
namespace {

bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
        static_cast<unsigned char>(c) > 127;
}

/// Runs of letters and digits.
void add_words(std::string_view text, std::set<std::string_view>& words)
{
    for (size_t i = 0; i < text.size();) {
        size_t end = i;
        while (end < text.size() && is_letter(text[end]))
            ++end;
        if (end > i)
            words.insert(text.substr(i, end - i));
        i = std::max(end, i + 1);
    }
}

/// What stands behind `#include`: `"a"`, `<a>`, or a macro.
std::string included(std::string_view rest)
{
    const char close = rest.starts_with('"') ? '"' : rest.starts_with('<') ? '>' : '\0';
    size_t end = close ? rest.find(close, 1) : 0;
    if (close)
        return end == rest.npos ? std::string() : std::string(rest.substr(0, end + 1));
    while (end < rest.size() && (is_letter(rest[end]) || rest[end] == '.'))
        ++end;
    return std::string(rest.substr(0, end));
}

/// `a.b` or a string that begins at a token.
std::string imported(std::string_view source, const std::vector<Token>& tokens, size_t i)
{
    const auto text = [&](size_t k) { return source.substr(tokens[k].begin, tokens[k].end - tokens[k].begin); };
    std::string name;
    if (i >= tokens.size() || (tokens[i].kind != TokenKind::word && tokens[i].kind != TokenKind::string))
        return name;
    name = text(i);
    if (tokens[i].kind == TokenKind::string)
        return name;
    for (; i + 2 < tokens.size() && text(i + 1) == "." && tokens[i + 2].kind != TokenKind::sign; i += 2)
        name += "." + std::string(text(i + 2));
    return name;
}

} // namespace

std::vector<Import> imports_in(std::string_view source)
{
    std::vector<Import> found;
    const auto add = [&](std::string_view word, std::string name) {
        if (!name.empty())
            found.push_back({word, std::move(name)});
    };
    const Tokens all = tokens_of(source);
    for (size_t i = 0; i < all.tokens.size(); ++i) {
        const std::string_view word = source.substr(all.tokens[i].begin, all.tokens[i].end - all.tokens[i].begin);
        if (word == "import" || word == "implementing" || word == "__include")
            add(word == "__include" ? "include" : word, imported(source, all.tokens, i + 1));
    }
    for (const Trivia& trivia : all.trivia) {
        if (trivia.kind != TriviaKind::directive)
            continue;
        const Directive directive = directive_of(source.substr(trivia.begin, trivia.end - trivia.begin));
        if (directive.word == "include")
            add(directive.word, included(directive.rest));
        else if (directive.word == "define")
            for (Import& inner : imports_in(directive.rest))
                found.push_back(std::move(inner));
    }
    return found;
}

std::set<std::string_view> words_in(std::string_view source)
{
    std::set<std::string_view> words;
    const Tokens all = tokens_of(source);
    for (const Token& token : all.tokens)
        if (token.kind != TokenKind::sign)
            add_words(source.substr(token.begin, token.end - token.begin), words);
    for (const Trivia& trivia : all.trivia)
        if (trivia.kind == TriviaKind::directive)
            add_words(source.substr(trivia.begin, trivia.end - trivia.begin), words);
    return words;
}

} // namespace spy::syntax
