#pragma once
// What to say of a module on which Slang crashed.
#include "slang/session.h"

namespace spy {

/// The message; it is remembered. `since`: the order of the first file that was looked for afterwards.
std::string crash_text(const SourceFiles& files, uint64_t since, const ModuleData& module, const std::string& what);

/// What crash_text() said of the same sources before, in any session; empty when nothing. A crash costs the memory of a
/// whole compiler, which cannot be freed, so the same one is not to happen again and again.
std::string known_crash(const ModuleData& module);

} // namespace spy
