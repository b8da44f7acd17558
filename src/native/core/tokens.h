#pragma once
// The words and signs of a source in Slang or CUDA, for changes of its text.
#include <string_view>
#include <vector>

namespace spy {

constexpr size_t npos = std::string_view::npos;

/// A word, a number, or one sign: bytes [begin, end) of the text.
struct TextToken {
    size_t begin, end;
};

bool starts_word(char c);
bool in_word(char c);

/// End of the comment or literal that starts at `pos`, or `pos` when none does.
size_t skip_opaque(std::string_view text, size_t pos);

/// The tokens of a text, without comments and literals; preprocessor lines are left out unless asked for.
std::vector<TextToken> tokens_of(std::string_view source, bool with_directives = true);

} // namespace spy
