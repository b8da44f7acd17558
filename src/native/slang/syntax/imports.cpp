#include "slang/syntax/imports.h"

#include "slang/syntax/lexer.h"

#include <algorithm>

namespace spy::syntax {
namespace {

/// Runs of letters and digits.
void add_words(std::string_view text, std::set<std::string_view>& words)
{
    for (size_t i = 0; i < text.size();) {
        const size_t end = word_end(text, i);
        if (end > i)
            words.insert(text.substr(i, end - i));
        i = std::max(end, i + 1);
    }
}

/// The end of what follows `#include`: `"a"`, `<a>`, or a macro; 0 where nothing does.
size_t end_of_included(std::string_view rest)
{
    const char close = rest.starts_with('"') ? '"' : rest.starts_with('<') ? '>' : '\0';
    if (close)
        return rest.find(close, 1) + 1; // npos + 1 is 0
    size_t end = 0;
    while (end < rest.size() && (in_word(rest[end]) || rest[end] == '.'))
        ++end;
    return end;
}

/// `a.b` or a string that begins at a token.
void add_imported(std::string_view source, std::string_view word, const std::vector<Token>& tokens, size_t i,
                  std::vector<Import>& found)
{
    const auto text = [&](size_t k) { return tokens[k].text(source); };
    if (i >= tokens.size() || (tokens[i].kind != TokenKind::word && tokens[i].kind != TokenKind::string))
        return;
    Import import{word, std::string(text(i)), tokens[i].begin, 0};
    if (tokens[i].kind == TokenKind::word)
        for (; i + 2 < tokens.size() && text(i + 1) == "." && tokens[i + 2].kind != TokenKind::sign; i += 2)
            import.name += "." + std::string(text(i + 2));
    import.end = tokens[i].end;
    found.push_back(std::move(import));
}

} // namespace

bool is_experimental(std::string_view file)
{
    if (file.ends_with(".slang"))
        file.remove_suffix(std::string_view(".slang").size());
    return file == "neural" || file == "slang.neural" || file == "slang/neural";
}

Summary summarize(std::string_view source)
{
    Summary found;
    const Tokens all = tokens_of(source);
    std::string_view previous;
    for (size_t i = 0; i < all.tokens.size(); ++i) {
        const std::string_view word = all.tokens[i].text(source);
        if (word == "import")
            add_imported(source, "import", all.tokens, i + 1, found.imports);
        else if (word == "implementing")
            add_imported(source, "implementing", all.tokens, i + 1, found.imports);
        else if (word == "__include")
            add_imported(source, "include", all.tokens, i + 1, found.imports);
        else if (all.tokens[i].kind == TokenKind::word &&
                 is_among(previous, {"struct", "interface", "class", "enum", "typealias"}))
            found.declared.emplace(word);
        previous = word;
    }
    for (const Trivia& trivia : all.trivia) {
        if (trivia.kind != TriviaKind::directive)
            continue;
        const Directive directive = directive_of(source.substr(trivia.begin, trivia.end - trivia.begin));
        const size_t begin = size_t(directive.rest.data() - source.data());
        if (const size_t end = directive.word == "include" ? end_of_included(directive.rest) : 0; end > 0)
            found.imports.push_back({"include", std::string(directive.rest.substr(0, end)), begin, begin + end});
        else if (directive.word == "define") {
            Summary inner = summarize(directive.rest);
            found.declared.merge(inner.declared);
            for (Import& import : inner.imports) {
                import.begin += begin;
                import.end += begin;
                found.imports.push_back(std::move(import));
            }
        }
    }
    return found;
}

std::set<std::string_view> words_in(std::string_view source)
{
    std::set<std::string_view> words;
    for (const Token& token : tokens_of(source, true).tokens)
        if (token.kind != TokenKind::sign)
            add_words(token.text(source), words);
    return words;
}

} // namespace spy::syntax
