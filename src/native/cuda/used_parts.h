#pragma once
// What a kernel uses of the library that Slang writes in front of it.
#include <string>
#include <string_view>

namespace spy {

/// The library without the declarations that neither `program` nor what stays names: reading the library is most of
/// NVRTC's work for a small kernel. All functions of one name stay or go together, and an operator stays with any of
/// the types that it takes, so no call means another function; what then fails to compile needs the whole library.
/// Returns the whole library where it is not understood or texts that only NVRTC reads (#include "...") may name parts
/// of it.
std::string cuda_used_parts(std::string_view library, std::string_view program);

} // namespace spy
