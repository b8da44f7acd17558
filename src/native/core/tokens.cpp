#include "core/tokens.h"

#include <algorithm>
#include <cctype>

namespace spy {
namespace {

/// End of the preprocessor line that starts at `pos`: lines that end in a backslash go on, and so do block comments.
size_t skip_directive(std::string_view text, size_t pos)
{
    while (pos < text.size() && text[pos] != '\n') {
        if (text[pos] == '\\' && pos + 1 < text.size())
            pos += text.substr(pos + 1, 2) == "\r\n" ? 3 : 2;
        else
            pos = std::max(skip_opaque(text, pos), pos + 1);
    }
    return std::min(pos, text.size());
}

} // namespace

bool starts_word(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

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

std::vector<TextToken> tokens_of(std::string_view source, bool with_directives)
{
    std::vector<TextToken> found;
    bool line_start = true;
    for (size_t pos = 0; pos < source.size();) {
        if (source[pos] == '\n' || std::isspace(static_cast<unsigned char>(source[pos]))) {
            line_start |= source[pos++] == '\n';
            continue;
        }
        if (source[pos] == '#' && line_start && !with_directives) {
            pos = skip_directive(source, pos);
            continue;
        }
        if (const size_t end = skip_opaque(source, pos); end != pos) {
            line_start &= source[pos] == '/'; // a comment may stand before a directive
            pos = end;
            continue;
        }
        line_start = false;
        size_t end = pos + 1;
        while (in_word(source[pos]) && end < source.size() && in_word(source[end]))
            ++end;
        found.push_back({pos, end});
        pos = end;
    }
    return found;
}

} // namespace spy
