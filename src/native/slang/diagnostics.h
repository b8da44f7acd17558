#pragma once
// What Slang says of a source, made readable: where it points, what of it says something, and what it leaves unsaid.
#include "slang/files.h"

#include <optional>
#include <string>
#include <string_view>

namespace spy {

/// A place in a source; lines and columns count from 1.
struct Place {
    std::string path;
    size_t line = 0, column = 0;

    size_t offset_in(std::string_view source) const;
};

/// `path:line:column` after the next "--> " of a message.
std::optional<Place> place_after(std::string_view message, size_t at);
std::optional<std::string> source_of(const std::string& path, const SourceFiles& files);

/// Of each list of overloads that do not fit, three: those of the user's sources first, and of Slang's own no lines.
std::string with_few_candidates(const std::string& text);

/// For a declaration on the line on which a struct ends without a semicolon, what to write; empty where there is none.
std::string semicolon_advice(const std::string& message, const SourceFiles& files);

} // namespace spy
