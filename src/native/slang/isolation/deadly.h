#pragma once
// What ends the process that Slang 2026.12 runs in while it reads a source, and what it reads wrongly without a word.
#include <string>
#include <string_view>
#include <vector>

namespace spy {

/// Bytes [begin, end) of a source, and what to write instead.
struct Deadly {
    size_t begin, end;
    std::string advice;
};

/// Attributes that give derivatives to the accessors of a `property`: Slang reads a null pointer. Those of a
/// `__subscript` are fine.
std::vector<Deadly> deadly_attributes(std::string_view source);

/// Bytes that are no UTF-8: Slang takes what follows one for a part of a character, the end of a comment's line, too.
std::vector<Deadly> foreign_bytes(std::string_view source);

/// What has been seen to do the same, or to end the compiler while it makes a kernel, depending on what its names mean:
/// for the message after a crash.
std::vector<Deadly> suspects(std::string_view source);

/// ` --> path:line:column`, the line, and the advice, as Slang's diagnostics have them.
std::string point_at(std::string_view source, std::string_view path, const Deadly& place);

} // namespace spy
