#pragma once
// Arrays that NVRTC puts into one place though both are alive.
#include <string>
#include <string_view>

namespace spy {

/// NVRTC 12.8 to 13.0 may give an array in local memory the place of another one that is read later: kernels with wrong
/// numbers, without a message. This option leaves out the pass that does it; empty for versions that need none.
std::string cuda_unshared_option(int major, int minor);

/// Whether a kernel keeps arrays in local memory. The tables that sin, cos and tan of float need for large arguments
/// are none: they lie alone there.
bool cuda_has_local_arrays(std::string_view ptx);

} // namespace spy
