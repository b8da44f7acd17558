// Host access to buffers and textures.
#include "vulkan/vulkan_backend.h"

#include "core/error.h"

#include <algorithm>
#include <cstring>

namespace spy {

namespace {

constexpr uint64_t chunk_size = 8ull << 20; ///< of transfers through staging memory

} // namespace

VulkanDevice::ReadPage VulkanDevice::create_read_page(uint64_t size)
{
    ReadPage page;
    VkBufferCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
    info.size = page.size = size;
    info.usage = VK_BUFFER_USAGE_TRANSFER_DST_BIT;
    vk_check(m_vk.CreateBuffer(m_device, &info, nullptr, &page.buffer), "vkCreateBuffer");
    try {
        AllocationRequest request;
        m_vk.GetBufferMemoryRequirements(m_device, page.buffer, &request.requirements);
        request.use = MemoryUse::read_back;
        request.buffer = page.buffer;
        page.allocation = m_memory.allocate(request);
        vk_check(m_vk.BindBufferMemory(m_device, page.buffer, page.allocation.memory, page.allocation.offset),
                 "vkBindBufferMemory");
    } catch (...) {
        destroy_read_page(page);
        throw;
    }
    return page;
}

void VulkanDevice::destroy_read_page(ReadPage& page) noexcept
{
    m_vk.DestroyBuffer(m_device, page.buffer, nullptr);
    m_memory.free(page.allocation);
    page = {};
}

void VulkanDevice::read_buffer(Buffer* buffer, uint64_t offset, void* data, uint64_t size)
{
    if (!size)
        return;
    auto* source = static_cast<VulkanBuffer*>(buffer);
    const Allocation& allocation = source->allocation();
    const VkMemoryPropertyFlags flags = m_adapter->memory.memoryTypes[allocation.type].propertyFlags;
    if (allocation.mapped && (flags & VK_MEMORY_PROPERTY_HOST_CACHED_BIT)
        && (flags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT)) {
        require_open("read");
        wait_all();
        std::memcpy(data, allocation.mapped + offset, size);
        return;
    }
    // Two pages: the GPU fills one while the host empties the other.
    std::lock_guard reading(m_read_mutex);
    struct Chunk { uint64_t id = 0, begin = 0, size = 0; };
    std::array<Chunk, 2> chunks;
    auto finish = [&](size_t slot) {
        if (!chunks[slot].id)
            return;
        wait_semaphore(chunks[slot].id);
        std::memcpy(static_cast<uint8_t*>(data) + chunks[slot].begin, m_read_pages[slot].allocation.mapped,
                    chunks[slot].size);
        chunks[slot] = {};
    };
    size_t slot = 0;
    for (uint64_t begin = 0; begin < size; begin += chunk_size, slot ^= 1) {
        finish(slot);
        std::lock_guard lock(m_mutex);
        require_open("read");
        if (!m_read_pages[slot].buffer)
            m_read_pages[slot] = create_read_page(chunk_size);
        const VkBufferCopy copy{offset + begin, 0, std::min(chunk_size, size - begin)};
        m_vk.CmdCopyBuffer(begin_command(), source->handle(), m_read_pages[slot].buffer, 1, &copy);
        flush();
        chunks[slot] = {m_submitted, begin, copy.size};
    }
    finish(slot);
    finish(slot ^ 1);
}

void VulkanDevice::write_buffer(Buffer* buffer, uint64_t offset, const void* data, uint64_t size)
{
    if (!size)
        return;
    auto* target = static_cast<VulkanBuffer*>(buffer);
    if (uint8_t* mapped = target->allocation().mapped) {
        // Memory the user can map is never written behind the scenes: no staged copy may be under way in it.
        if (target->host_pointer())
            wait_all();
        std::lock_guard lock(m_mutex);
        require_open("write");
        if (target->host_pointer() || is_idle()) {
            std::memcpy(mapped + offset, data, size);
            return;
        }
    }
    for (uint64_t begin = 0; begin < size; begin += chunk_size) {
        std::lock_guard lock(m_mutex);
        require_open("write");
        limit_staging();
        const uint64_t count = std::min(chunk_size, size - begin);
        const UploadSlice slice = upload_slice(count, 16);
        std::memcpy(slice.data, static_cast<const uint8_t*>(data) + begin, count);
        const VkBufferCopy copy{slice.offset, offset + begin, count};
        m_vk.CmdCopyBuffer(begin_command(), slice.page->buffer, target->handle(), 1, &copy);
        if (count == chunk_size)
            flush();
    }
}

void VulkanDevice::read_texture(Texture* texture, uint32_t layer, uint32_t mip, void* data)
{
    auto* source = static_cast<VulkanTexture*>(texture);
    const SubresourceLayout layout = subresource_layout(source->desc(), mip);
    std::lock_guard reading(m_read_mutex);
    const bool small = layout.size_in_bytes <= chunk_size;
    ReadPage own;
    uint64_t id = 0;
    ReadPage* page = small ? &m_read_pages[0] : &own;
    {
        std::lock_guard lock(m_mutex);
        require_open("read");
        const VkBufferImageCopy copy = image_copy(*source, layer, mip, {}, {layout.width, layout.height, layout.depth},
                                                  0, 0, "read_texture");
        if (!page->buffer)
            *page = create_read_page(small ? chunk_size : layout.size_in_bytes);
        m_vk.CmdCopyImageToBuffer(begin_command(), source->handle(), VK_IMAGE_LAYOUT_GENERAL, page->buffer, 1, &copy);
        flush();
        id = m_submitted;
    }
    try {
        wait_semaphore(id);
    } catch (...) { // the copy may still be under way
        discard(VK_OBJECT_TYPE_BUFFER, uint64_t(own.buffer), own.allocation);
        throw;
    }
    std::memcpy(data, page->allocation.mapped, layout.size_in_bytes);
    std::lock_guard lock(m_mutex);
    if (!small)
        destroy_read_page(own);
    collect(false);
}

void VulkanDevice::write_texture(Texture* texture, uint32_t layer, uint32_t mip, const void* data)
{
    auto* target = static_cast<VulkanTexture*>(texture);
    const SubresourceLayout layout = subresource_layout(target->desc(), mip);
    std::lock_guard lock(m_mutex);
    require_open("write");
    limit_staging();
    record_texture_upload(*target, layer, mip, {}, {layout.width, layout.height, layout.depth}, data,
                          layout.size_in_bytes);
}

} // namespace spy
