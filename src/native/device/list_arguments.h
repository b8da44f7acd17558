#pragma once
// Arguments of kernels on the devices that record lists of commands (Vulkan, Direct3D 12), and checks of both.
#include "core/error.h"
#include "device/device.h"

#include <algorithm>
#include <cstring>

namespace spy {

/// Arguments of a launch as the recording code reads them.
struct ArgumentView {
    std::span<const std::span<const uint8_t>> scopes;
    std::span<const ref<Object>> slots;
};

/// ValueError for groups of threads that are larger than the device's.
inline void check_group_size(const DeviceLimits& limits, const KernelDesc& desc)
{
    const uint32_t* group = desc.layout->group_size;
    const uint32_t* largest = limits.max_compute_thread_group_size.data();
    const uint64_t threads = uint64_t(group[0]) * group[1] * group[2];
    if (threads > limits.max_compute_threads_per_group || group[0] > largest[0] || group[1] > largest[1] ||
        group[2] > largest[2])
        fail_value("kernel '", desc.label, "': a group of ", group[0], " x ", group[1], " x ", group[2],
                   " threads is larger than this device allows (", limits.max_compute_threads_per_group,
                   " threads in all)");
}

/// ValueError for more groups than the device launches at once.
inline void check_group_counts(const DeviceInfo& info, const std::string& label, const std::array<uint32_t, 3>& groups)
{
    const auto& limit = info.limits.max_compute_dispatch_thread_groups;
    if (groups[0] > limit[0] || groups[1] > limit[1] || groups[2] > limit[2])
        fail_value("kernel '", label, "': ", groups[0], " x ", groups[1], " x ", groups[2],
                   " thread groups are more than ", info.adapter_name, " allows (", limit[0], " x ", limit[1], " x ",
                   limit[2], ")");
}

/// The bytes of a scope, filled up with zeros; all zeros for one that is missing.
inline void copy_scope(uint8_t* target, uint64_t size, const ArgumentView& arguments, size_t scope)
{
    const std::span<const uint8_t> bytes = scope < arguments.scopes.size() ? arguments.scopes[scope]
                                                                           : std::span<const uint8_t>();
    const uint64_t given = std::min<uint64_t>(bytes.size(), size);
    if (given)
        std::memcpy(target, bytes.data(), given);
    std::memset(target + given, 0, size - given);
}

} // namespace spy
