#pragma once
// Compiles that begin before their text is known: GCC reads what all kernels begin with, which takes it longer than
// most kernels, while Slang still makes the rest, and waits for it.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spy::cpu {

/// Starts a compiler that reads `head`, unless one waits already that did. It ends by itself when no text comes.
/// Does nothing where the compiler is not GCC, or the system not Linux.
void compile_ahead(std::string_view head, const std::vector<std::string>& flags);

struct Compiled {
    std::string object, log; ///< an object file, and what the compiler said
};

/// What the compiler that waits makes of `source`; nothing where none does that began so, or where it failed.
std::optional<Compiled> compile_begun(std::string_view source, const std::vector<std::string>& flags);

/// Whether an object file has undefined symbols.
bool needs_libraries(std::string_view object);

} // namespace spy::cpu
