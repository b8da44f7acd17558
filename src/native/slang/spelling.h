#pragma once
// Names that Slang sees instead of those in the users' sources, all of the same length.
#include <array>
#include <string>
#include <string_view>

namespace spy {

/// Tensor interfaces: in sources the names are concrete structs; as a constraint or base Slang sees `iTensor` etc.
inline constexpr std::array<std::string_view, 6> interface_names = {"ITensor",     "IWTensor",     "IRWTensor",
                                                                    "IDiffTensor", "IWDiffTensor", "IRWDiffTensor"};
/// What Slang sees in place of `no_diff` before parameters of tensor type.
inline constexpr std::string_view no_diff_mark = "[_nd_] ";
/// What it sees in place of the type of a parameter of a struct's atomicAdd().
inline constexpr std::string_view buffer_name = "RWByteAddressBuffer", memory_name = "_spy_AtomicMemory__";
static_assert(buffer_name.size() == memory_name.size());

bool is_interface_name(std::string_view word);

/// Puts the users' spelling back into names and messages.
std::string restore_constraints(std::string_view text);

} // namespace spy
