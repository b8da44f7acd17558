#pragma once
// The backends of this build. Each row function is defined in its backend's device.cpp, inside namespace spy.
#include "device/device.h"

namespace spy {

/// Named in the table of backend.cpp; compiled in by SPY_HAS_CUDA, SPY_HAS_VULKAN, SPY_HAS_D3D12 (CMake sets them).
Backend cpu_backend();
Backend null_backend();
Backend cuda_backend();
Backend vulkan_backend();
Backend d3d12_backend();

const char* device_type_name(DeviceType type);

/// The row of a type, or null when this build has none.
const Backend* find_backend(DeviceType type);

/// The text for what a device cannot run: "function 'f' uses group barriers, which the cpu device cannot run; ...".
std::string unsupported_feature_message(std::string_view function, std::string_view feature, DeviceType type,
                                        std::string_view devices_that_can = "cuda, vulkan, d3d12");

} // namespace spy
