#include "slang/rewrite/inline.h"

#include "core/tokens.h"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace spy {
namespace {

constexpr std::string_view attribute = "[__unsafeForceInlineEarly]";

bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

/// The text with blanks for comments and literals.
std::string blanked(const std::string& source)
{
    std::string text = source;
    for (size_t at = 0; at < text.size();) {
        size_t end = at;
        if (text.compare(at, 2, "//") == 0)
            end = std::min(text.find('\n', at), text.size());
        else if (text.compare(at, 2, "/*") == 0)
            end = std::min(std::min(text.find("*/", at + 2), text.size() - 2) + 2, text.size());
        else if (text[at] == '"' || text[at] == '\'') {
            for (end = at + 1; end < text.size() && text[end] != text[at] && text[end] != '\n'; ++end)
                end += text[end] == '\\';
            end = std::min(end + 1, text.size());
        }
        for (size_t i = at; i < end; ++i)
            if (text[i] != '\n')
                text[i] = ' ';
        at = end > at ? end : at + 1;
    }
    return text;
}

size_t skip_spaces(std::string_view text, size_t at)
{
    while (at < text.size() && is_space(text[at]))
        ++at;
    return at;
}

/// Behind the bracket that closes the one at `at`.
size_t behind_closing(std::string_view text, size_t at)
{
    const char open = text[at], close = open == '(' ? ')' : open == '[' ? ']' : '}';
    int depth = 0;
    for (; at < text.size(); ++at) {
        depth += text[at] == open;
        depth -= text[at] == close;
        if (depth == 0)
            return at + 1;
    }
    return text.size();
}

/// The name and the body of the function that begins at `at`; an empty body where there is none.
struct Function {
    std::string_view name, body;
};

std::string_view name_before(std::string_view text, size_t parenthesis)
{
    size_t end = parenthesis;
    while (end > 0 && is_space(text[end - 1]))
        --end;
    if (end > 0 && text[end - 1] == '>') // the parameters of a generic
        for (int depth = 0; end > 0;) {
            --end;
            depth += text[end] == '>';
            depth -= text[end] == '<';
            if (depth == 0)
                break;
        }
    while (end > 0 && is_space(text[end - 1]))
        --end;
    size_t begin = end;
    while (begin > 0 && in_word(text[begin - 1]))
        --begin;
    return text.substr(begin, end - begin);
}

Function function_at(std::string_view text, size_t at)
{
    Function found;
    bool has_parameters = false;
    while (at < text.size()) {
        const char c = text[at];
        if (c == '(') {
            if (!has_parameters)
                found.name = name_before(text, at);
            has_parameters = true;
            at = behind_closing(text, at);
        } else if (c == '[')
            at = behind_closing(text, at);
        else if (c == '{') {
            const std::string_view before = text.substr(0, at);
            const bool is_accessor = !has_parameters && name_before(before, at) == "get";
            if (has_parameters || is_accessor)
                found.body = text.substr(at, behind_closing(text, at) - at);
            return found;
        } else if (c == ';' || c == '}' || c == '=')
            return found;
        else
            ++at;
    }
    return found;
}

/// Whether a body calls its own function. A method of the same name of another value is none of it.
bool calls_itself(const Function& function)
{
    const std::string_view body = function.body, name = function.name;
    if (name.empty())
        return false;
    for (size_t at = body.find(name); at != body.npos; at = body.find(name, at + name.size())) {
        const size_t next = skip_spaces(body, at + name.size());
        const bool is_word = !in_word(body[at - 1]) && next < body.size() && !in_word(body[at + name.size()]);
        const bool of_other = body[at - 1] == '.' && !body.substr(0, at).ends_with("this.");
        if (is_word && !of_other && (body[next] == '(' || body[next] == '<'))
            return true;
    }
    return false;
}

/// Behind the attribute at `at`, if it makes a function differentiable; else `at`.
size_t behind_differentiable(std::string_view text, size_t at)
{
    const size_t end = behind_closing(text, at);
    const size_t begin = skip_spaces(text, at + 1);
    for (std::string_view name : {"Differentiable", "BackwardDifferentiable", "ForwardDifferentiable"})
        if (text.substr(begin).starts_with(name) && begin + name.size() < text.size() &&
            !in_word(text[begin + name.size()]))
            return end;
    return at;
}

} // namespace

std::vector<Edit> inline_differentiable(const std::string& source)
{
    const std::string text = blanked(source);
    std::vector<Edit> edits;
    for (size_t at = text.find('['); at != text.npos; at = text.find('[', at + 1)) {
        const size_t end = behind_differentiable(text, at);
        if (end == at)
            continue;
        const Function function = function_at(text, end);
        const bool is_kept = function.name.starts_with("_spy_") && !function.name.starts_with("_spy_same_");
        if (function.body.empty() || is_kept || calls_itself(function))
            continue;
        edits.push_back({end, end, std::string(attribute)});
    }
    return edits;
}

} // namespace spy
