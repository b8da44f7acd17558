#pragma once
// Lines that were changed before Slang saw them, kept for its diagnostics, which quote them.
#include <string>
#include <string_view>

namespace spy {

/// Keeps what each changed line was. Both texts have the same lines, except at their end.
void remember_lines(std::string_view before, std::string_view after);

/// Puts the lines of the source back into diagnostics, with their columns.
std::string restore_lines(std::string text);

} // namespace spy
