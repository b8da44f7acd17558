// What is handed to other APIs: exported memory and semaphores, and order against CUDA streams.
#include "vulkan/device.h"

#include "core/error.h"

#include <cstring>

namespace spy {

void VulkanDevice::open_interop()
{
    if (!m_desc.enable_cuda_interop)
        return;
    std::array<uint8_t, 16> uuid;
    std::memcpy(uuid.data(), m_context.adapter->v11.deviceUUID, VK_UUID_SIZE);
    m_interop = CudaInterop::open(uuid, m_context.adapter->properties.deviceName);
    for (const char* name : {VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME, VK_KHR_EXTERNAL_SEMAPHORE_FD_EXTENSION_NAME})
        if (!m_context.has_extension(name))
            fail_runtime("enable_cuda_interop needs the Vulkan extension ", name, ", which ",
                         m_context.handle->is_ours ? m_context.adapter->properties.deviceName : "the device handed in",
                         " does not offer");
    m_queue.cuda.from = m_context.create_timeline(0, true);
    m_queue.cuda.to = m_context.create_timeline(0, true);
    const int first = m_context.export_semaphore(m_queue.cuda.from);
    m_interop->import_timelines(first, m_context.export_semaphore(m_queue.cuda.to));
}

CudaInterop& VulkanDevice::require_interop(const char* what) const
{
    if (!m_interop)
        fail_runtime(what, ": Device does not support CUDA interop; open it with enable_cuda_interop=True");
    return *m_interop;
}

void VulkanDevice::sync_to_stream(NativeHandle stream)
{
    std::lock_guard lock(m_queue.mutex());
    require_open("sync_to_cuda");
    CudaInterop& interop = require_interop("sync_to_cuda");
    m_queue.flush(); // what came before need not wait
    m_queue.cuda.wait = interop.signal(stream.value);
}

void VulkanDevice::sync_stream_to(NativeHandle stream)
{
    std::lock_guard lock(m_queue.mutex());
    require_open("sync_to_device");
    CudaInterop& interop = require_interop("sync_to_device");
    m_queue.open_list();
    m_queue.cuda.signal = true;
    m_queue.flush();
    interop.wait(stream.value, m_queue.cuda.to_value);
}

uint64_t VulkanBuffer::cuda_address()
{
    VulkanDevice& owner = *static_cast<VulkanDevice*>(m_device.get());
    std::lock_guard lock(owner.queue().mutex());
    owner.require_open("buffer");
    if (!m_allocation.exported || !owner.interop())
        return 0;
    if (!m_cuda.handle) {
        m_interop = owner.interop();
        m_cuda = m_interop->import_memory(owner.context().export_memory(m_allocation.memory), m_allocation.size,
                                          m_desc.size);
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
