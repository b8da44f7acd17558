#pragma once
// Acceleration structures of the Vulkan backend.
#include "device/acceleration.h"
#include "vulkan/memory.h"

namespace spy {

class VulkanContext;

class VulkanAccelerationStructure final : public AccelerationStructure {
public:
    VulkanAccelerationStructure(ref<Device> device, AccelerationStructureDesc desc);
    ~VulkanAccelerationStructure() override { retire(); }
    void release() noexcept override;
    uint64_t device_address() const override { return m_address; }
    NativeHandle native_handle() const override
    {
        return {NativeHandleType::VkAccelerationStructureKHR, uint64_t(m_handle)};
    }
    VkAccelerationStructureKHR handle() const { return m_handle; }

private:
    VkAccelerationStructureKHR m_handle = VK_NULL_HANDLE;
    VkBuffer m_buffer = VK_NULL_HANDLE;
    Allocation m_allocation;
    uint64_t m_address = 0;
};

/// The kind of query that tells a size of acceleration structures.
VkQueryType acceleration_query(const VulkanContext& context, QueryType type);

} // namespace spy
