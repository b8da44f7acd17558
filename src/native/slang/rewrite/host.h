#pragma once
// Sources that use functions of Slang's own module which our library has for more targets.
#include "slang/imports.h"

#include <string>

namespace spy {

/// Adds `import slangpy_host;` behind a source that names barriers, wave operations, atomics, or methods of textures
/// that Slang's C++ target lacks. Lines and columns stay.
std::string import_host(std::string source, const Surroundings& around);

/// Adds `import slangpy_narrow;` behind a source that names BFloat16 or a float of 8 bits, for which Slang has no C++.
std::string import_narrow(std::string source, const Surroundings& around);

/// Adds `import slangpy_remainders;` behind a source with derivatives that calls fmod(), whose gradients Slang has
/// wrong.
std::string import_remainders(std::string source);

/// Adds `import slangpy_print;` behind a source that calls printf(), which the compiler then finds there for all
/// targets.
std::string import_printing(std::string source);

} // namespace spy
