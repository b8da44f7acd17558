#pragma once
// Sources that use functions of Slang's own module which our library has for more targets.
#include "slang/rewrite/edits.h"
#include "slang/rewrite/imports.h"

#include <string>
#include <vector>

namespace spy {

/// Adds `import slangpy_host;` at the end of a source that names barriers, wave operations, atomics, or methods of
/// textures that Slang's C++ target lacks. Lines and columns stay.
std::vector<Edit> import_host(const std::string& source, const Surroundings& around);

/// Adds `import slangpy_narrow;` at the end of a source that names BFloat16 or a float of 8 bits, for which Slang has
/// no C++.
std::vector<Edit> import_narrow(const std::string& source, const Surroundings& around);

/// Adds `import slangpy_remainders;` at the end of a source with derivatives that calls fmod(), whose gradients Slang
/// has wrong.
std::vector<Edit> import_remainders(const std::string& source);

/// Adds `import slangpy_print;` at the end of a source that calls printf(), which the compiler then finds there for all
/// targets.
std::vector<Edit> import_printing(const std::string& source);

} // namespace spy
