#pragma once
// What to do about loops that Slang refuses.
#include "slang/files.h"

#include <string>

namespace spy {

/// After each "loop in differentiable function needs attributes" of a message, what the loop carries from trip to trip
/// and what to write; empty where there is none.
std::string loop_advice(const std::string& message, const SourceFiles& files);

} // namespace spy
