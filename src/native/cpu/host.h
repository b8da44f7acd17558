#pragma once
// What kernels call back: the functions of SpyHost.
#include "../../slangpy/slang/host_cpp.h"

namespace spy::cpu {

/// The one table that all kernels are given.
const SpyHost& host_functions();

} // namespace spy::cpu
