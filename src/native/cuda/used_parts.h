#pragma once
// What a kernel uses of the library that Slang writes in front of it.
#include <string>
#include <string_view>

namespace spy {

constexpr bool is_cuda_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_cuda_name(char c) { return is_cuda_digit(c) || c == '_' || ((c | 32) >= 'a' && (c | 32) <= 'z'); }

/// The library without the declarations that neither `program` nor what stays names: reading the library is most of
/// NVRTC's work for a small kernel. All functions of one name stay or go together, and an operator stays with any of
/// the types that it takes, so no call means another function; what then fails to compile needs the whole library.
/// Returns the whole library where it is not understood or texts that only NVRTC reads (#include "...") may name parts
/// of it.
std::string cuda_used_parts(std::string_view library, std::string_view program);

} // namespace spy
