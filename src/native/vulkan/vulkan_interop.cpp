// What is handed to other APIs: exported memory and semaphores, and order against CUDA streams.
#include "vulkan/vulkan_backend.h"

#include "core/error.h"

#include <cstring>

namespace spy {

VkSemaphore VulkanDevice::create_timeline(uint64_t initial_value, bool exported)
{
    if (exported && !has_extension(VK_KHR_EXTERNAL_SEMAPHORE_FD_EXTENSION_NAME))
        fail_runtime("a shared fence needs the Vulkan extension VK_KHR_external_semaphore_fd, which ",
                     m_adapter->properties.deviceName, " does not offer");
    VkExportSemaphoreCreateInfo shared{VK_STRUCTURE_TYPE_EXPORT_SEMAPHORE_CREATE_INFO};
    shared.handleTypes = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT;
    VkSemaphoreTypeCreateInfo type{VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO};
    type.pNext = exported ? &shared : nullptr;
    type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
    type.initialValue = initial_value;
    const VkSemaphoreCreateInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, &type, 0};
    VkSemaphore semaphore = VK_NULL_HANDLE;
    vk_check(m_vk.CreateSemaphore(m_device, &info, nullptr, &semaphore), "vkCreateSemaphore");
    return semaphore;
}

int VulkanDevice::export_semaphore(VkSemaphore semaphore) const
{
    VkSemaphoreGetFdInfoKHR info{VK_STRUCTURE_TYPE_SEMAPHORE_GET_FD_INFO_KHR};
    info.semaphore = semaphore;
    info.handleType = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT;
    int descriptor = -1;
    vk_check(m_vk.GetSemaphoreFdKHR(m_device, &info, &descriptor), "vkGetSemaphoreFdKHR");
    return descriptor;
}

int VulkanDevice::export_memory(VkDeviceMemory memory) const
{
    VkMemoryGetFdInfoKHR info{VK_STRUCTURE_TYPE_MEMORY_GET_FD_INFO_KHR};
    info.memory = memory;
    info.handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
    int descriptor = -1;
    vk_check(m_vk.GetMemoryFdKHR(m_device, &info, &descriptor), "vkGetMemoryFdKHR");
    return descriptor;
}

void VulkanDevice::open_interop()
{
    if (!m_desc.enable_cuda_interop)
        return;
    std::array<uint8_t, 16> uuid;
    std::memcpy(uuid.data(), m_adapter->v11.deviceUUID, VK_UUID_SIZE);
    m_interop = CudaInterop::open(uuid, m_adapter->properties.deviceName);
    for (const char* name : {VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME, VK_KHR_EXTERNAL_SEMAPHORE_FD_EXTENSION_NAME})
        if (!has_extension(name))
            fail_runtime("enable_cuda_interop needs the Vulkan extension ", name, ", which ",
                         m_handle->is_ours ? m_adapter->properties.deviceName : "the device handed in",
                         " does not offer");
    m_from_cuda = create_timeline(0, true);
    m_to_cuda = create_timeline(0, true);
    const int first = export_semaphore(m_from_cuda);
    m_interop->import_timelines(first, export_semaphore(m_to_cuda));
}

CudaInterop& VulkanDevice::require_interop(const char* what) const
{
    if (!m_interop)
        fail_runtime(what, ": Device does not support CUDA interop; open it with enable_cuda_interop=True");
    return *m_interop;
}

void VulkanDevice::sync_to_stream(NativeHandle stream)
{
    std::lock_guard lock(m_mutex);
    require_open("sync_to_cuda");
    CudaInterop& interop = require_interop("sync_to_cuda");
    flush(); // what came before need not wait
    m_cuda_wait = interop.signal(stream.value);
}

void VulkanDevice::sync_stream_to(NativeHandle stream)
{
    std::lock_guard lock(m_mutex);
    require_open("sync_to_device");
    CudaInterop& interop = require_interop("sync_to_device");
    open_list();
    m_cuda_signal = true;
    flush();
    interop.wait(stream.value, m_to_cuda_value);
}

uint64_t VulkanBuffer::cuda_address()
{
    VulkanDevice& owner = *static_cast<VulkanDevice*>(m_device.get());
    std::lock_guard lock(owner.mutex());
    owner.require_open("buffer");
    if (!m_allocation.exported || !owner.interop())
        return 0;
    if (!m_cuda.handle) {
        m_interop = owner.interop();
        m_cuda = m_interop->import_memory(owner.export_memory(m_allocation.memory), m_allocation.size, m_desc.size);
    }
    return m_cuda.address;
}

void VulkanBuffer::unmap_cuda() noexcept
{
    if (m_cuda.handle)
        m_interop->release_memory(std::exchange(m_cuda, {}));
    m_interop = nullptr;
}

} // namespace spy
