// Opening and closing a device, and the way from the contract to its parts.
#include "vulkan/device.h"

#include "core/error.h"

namespace spy {

namespace {

std::vector<AdapterInfo> enumerate_adapters()
{
    // Kept for the life of the process: opening an instance loads every driver of the machine.
    static const std::vector<AdapterInfo> adapters = [] {
        std::vector<AdapterInfo> result;
        try {
            const std::shared_ptr<VulkanInstance> instance = VulkanInstance::shared(false, {});
            for (VkPhysicalDevice device : instance->physical_devices())
                result.push_back(VulkanAdapter(*instance, device).info());
        } catch (const Error&) {
            result.clear(); // no loader or driver: the contract asks for an empty list
        }
        return result;
    }();
    return adapters;
}

ref<Device> open_vulkan_device(const DeviceDesc& desc) { return ref<Device>(new VulkanDevice(desc)); }

} // namespace

Backend vulkan_backend() { return {DeviceType::vulkan, "vulkan", &enumerate_adapters, &open_vulkan_device}; }

VulkanDevice::VulkanDevice(const DeviceDesc& desc)
{
    m_desc = desc;
    m_desc.type = DeviceType::vulkan;
    try {
        m_context.open(m_desc);
        m_queue.timeline.open();
        m_queue.handles = &m_handles;
        m_uploads.open();
        m_recorder.open();
        open_interop();
    } catch (...) {
        close_backend();
        throw;
    }
    m_info = vulkan_info(m_context);
    m_target = vulkan_target(m_context);
    m_info.capabilities = m_target.capabilities;
    m_info.capabilities.insert(m_info.capabilities.begin(),
                               {"spirv_1_0", "spirv_1_1", "spirv_1_2", "spirv_1_3", "spirv_1_4", "spirv_1_5"});
}

VulkanDevice::~VulkanDevice() { close_backend(); }

void VulkanDevice::close_backend() noexcept
{
    if (!m_context.is_open())
        return;
    if (m_context.vk.DestroyDevice) {
        m_context.wait_idle();
        std::lock_guard lock(m_queue.mutex());
        m_interop = nullptr; // waits for CUDA
        m_queue.close();
        m_handles.close();
        m_recorder.close();
        m_uploads.close();
        m_host.close();
        m_memory.clear();
    }
    m_context.close();
}

// --- the rest

std::array<NativeHandle, 3> VulkanDevice::native_handles()
{
    require_open("native_handles");
    return {NativeHandle{NativeHandleType::VkInstance, uint64_t(m_context.instance->handle())},
            NativeHandle{NativeHandleType::VkPhysicalDevice, uint64_t(m_context.adapter->handle)},
            NativeHandle{NativeHandleType::VkDevice, uint64_t(m_context.device)}};
}

} // namespace spy
