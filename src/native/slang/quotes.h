#pragma once
// Sources that were rewritten before Slang saw them, kept for its messages, which quote them.
#include "core/text_map.h"

#include <string>
#include <string_view>

namespace spy {

/// Keeps a source by the path that messages name, with what Slang got to see. Both have the same lines, except at their
/// end.
void remember_source(const std::string& path, std::string before, std::string after, TextMap map);

/// Puts the users' lines, columns and spelling back into a message.
std::string restore_quotes(const std::string& text);

} // namespace spy
