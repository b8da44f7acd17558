#pragma once
// Constants at file scope in the CUDA text that Slang emits.
#include <string>
#include <string_view>

namespace spy {

/// Slang 2026.12 emits `__device__ static const float3 _S3 = make_float3((float)_S2.x, ...);`, which NVRTC refuses:
/// such variables cannot be filled at run time. Constants made of literals, casts and vectors of them become
/// `constexpr`; any other becomes a function, and a macro of its name that calls it. Needs `cuda_constants_supplement`
/// before the program.
std::string cuda_mend_constants(std::string_view program);

} // namespace spy
