#pragma once
// CUDA source to machine code.
#include "device/device.h"

namespace spy {

/// Compiles CUDA source without a device: `desc.cuda_arch` ("sm_80") must be set. Returns a cubin, or PTX when this
/// NVRTC does not know the architecture. Throws spy::Error with NVRTC's log, the label and the saved source's path.
std::string cuda_compile(const CompileDesc& desc);
/// Opens NVRTC, where there is a driver, and has it compile an empty kernel: a compile that comes later begins at once.
/// Throws spy::Error where NVRTC is not there.
void prepare_nvrtc();
/// Compiler and flags; part of cache keys.
std::string cuda_fingerprint(const std::string& arch);
/// Name of a symbol of kernels that store to the surface of this path with conversion. The path may be Slang's text
/// for a variable: "(globalParams_0->image_0[int(2)])" is "image".
std::string cuda_conversion_mark(std::string_view path);

} // namespace spy
