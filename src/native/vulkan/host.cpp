// Host access to buffers and textures.
#include "vulkan/host.h"

#include "core/error.h"
#include "device/texture_shape.h"

#include <algorithm>
#include <cstring>

namespace spy {

namespace {

constexpr uint64_t chunk_size = 8ull << 20; ///< of transfers through staging memory

} // namespace

VulkanHostAccess::ReadPage VulkanHostAccess::create_page(uint64_t size)
{
    ReadPage page;
    VkBufferCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
    info.size = page.size = size;
    info.usage = VK_BUFFER_USAGE_TRANSFER_DST_BIT;
    vk_check(m_context.vk.CreateBuffer(m_context.device, &info, nullptr, &page.buffer), "vkCreateBuffer");
    try {
        AllocationRequest request;
        m_context.vk.GetBufferMemoryRequirements(m_context.device, page.buffer, &request.requirements);
        request.use = MemoryUse::read_back;
        request.buffer = page.buffer;
        page.allocation = m_memory.allocate(request);
        vk_check(m_context.vk.BindBufferMemory(m_context.device, page.buffer, page.allocation.memory,
                                               page.allocation.offset),
                 "vkBindBufferMemory");
    } catch (...) {
        destroy_page(page);
        throw;
    }
    return page;
}

void VulkanHostAccess::destroy_page(ReadPage& page) noexcept
{
    m_context.vk.DestroyBuffer(m_context.device, page.buffer, nullptr);
    m_memory.free(page.allocation);
    page = {};
}

void VulkanHostAccess::close() noexcept
{
    for (ReadPage& page : m_pages)
        destroy_page(page);
}

void VulkanHostAccess::read_buffer(Buffer* buffer, uint64_t offset, void* data, uint64_t size)
{
    if (!size)
        return;
    auto* source = static_cast<VulkanBuffer*>(buffer);
    const Allocation& allocation = source->allocation();
    const VkMemoryPropertyFlags flags = m_context.adapter->memory.memoryTypes[allocation.type].propertyFlags;
    if (allocation.mapped && (flags & VK_MEMORY_PROPERTY_HOST_CACHED_BIT) &&
        (flags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT)) {
        m_queue.timeline.require_open("read");
        m_queue.wait_all();
        std::memcpy(data, allocation.mapped + offset, size);
        return;
    }
    // Two pages: the GPU fills one while the host empties the other.
    std::lock_guard reading(m_mutex);
    struct Chunk {
        uint64_t id = 0, begin = 0, size = 0;
    };
    std::array<Chunk, 2> chunks;
    auto finish = [&](size_t slot) {
        if (!chunks[slot].id)
            return;
        m_queue.timeline.wait(chunks[slot].id);
        std::memcpy(static_cast<uint8_t*>(data) + chunks[slot].begin, m_pages[slot].allocation.mapped,
                    chunks[slot].size);
        chunks[slot] = {};
    };
    size_t slot = 0;
    for (uint64_t begin = 0; begin < size; begin += chunk_size, slot ^= 1) {
        finish(slot);
        std::lock_guard lock(m_queue.mutex());
        m_queue.timeline.require_open("read");
        if (!m_pages[slot].buffer)
            m_pages[slot] = create_page(chunk_size);
        const VkBufferCopy copy{offset + begin, 0, std::min(chunk_size, size - begin)};
        m_context.vk.CmdCopyBuffer(m_queue.begin_command(), source->handle(), m_pages[slot].buffer, 1, &copy);
        m_queue.flush();
        chunks[slot] = {m_queue.timeline.submitted(), begin, copy.size};
    }
    finish(slot);
    finish(slot ^ 1);
}

void VulkanHostAccess::write_buffer(Buffer* buffer, uint64_t offset, const void* data, uint64_t size)
{
    if (!size)
        return;
    auto* target = static_cast<VulkanBuffer*>(buffer);
    if (uint8_t* mapped = target->allocation().mapped) {
        // Memory the user can map is never written behind the scenes: no staged copy may be under way in it.
        if (target->host_pointer())
            m_queue.wait_all();
        std::lock_guard lock(m_queue.mutex());
        m_queue.timeline.require_open("write");
        if (target->host_pointer() || m_queue.is_idle()) {
            std::memcpy(mapped + offset, data, size);
            return;
        }
    }
    for (uint64_t begin = 0; begin < size; begin += chunk_size) {
        std::lock_guard lock(m_queue.mutex());
        m_queue.timeline.require_open("write");
        m_uploads.limit();
        const uint64_t count = std::min(chunk_size, size - begin);
        const UploadSlice slice = m_uploads.slice(count, 16);
        std::memcpy(slice.data, static_cast<const uint8_t*>(data) + begin, count);
        const VkBufferCopy copy{slice.offset, offset + begin, count};
        m_context.vk.CmdCopyBuffer(m_queue.begin_command(), slice.page->buffer, target->handle(), 1, &copy);
        if (count == chunk_size)
            m_queue.flush();
    }
}

void VulkanHostAccess::read_image(VulkanTexture& source, std::span<const VkBufferImageCopy> copies, uint64_t size,
                                  const std::function<void(const uint8_t*)>& take)
{
    std::lock_guard reading(m_mutex);
    const bool small = size <= chunk_size;
    ReadPage own;
    uint64_t id = 0;
    ReadPage* page = small ? &m_pages[0] : &own;
    {
        std::lock_guard lock(m_queue.mutex());
        m_queue.timeline.require_open("read");
        if (!page->buffer)
            *page = create_page(small ? chunk_size : size);
        m_context.vk.CmdCopyImageToBuffer(m_queue.begin_command(), source.handle(), VK_IMAGE_LAYOUT_GENERAL,
                                          page->buffer, uint32_t(copies.size()), copies.data());
        m_queue.flush();
        id = m_queue.timeline.submitted();
    }
    try {
        m_queue.timeline.wait(id);
    } catch (...) { // the copy may still be under way
        m_queue.discard(VK_OBJECT_TYPE_BUFFER, uint64_t(own.buffer), own.allocation);
        throw;
    }
    take(page->allocation.mapped);
    std::lock_guard lock(m_queue.mutex());
    if (!small)
        destroy_page(own);
    m_queue.collect();
}

void VulkanHostAccess::read_texture(Texture* texture, uint32_t layer, uint32_t mip, void* data)
{
    auto* source = static_cast<VulkanTexture*>(texture);
    if (format_info(source->desc().format).is_stencil())
        return read_planes(*source, layer, mip, static_cast<uint8_t*>(data));
    const SubresourceLayout layout = subresource_layout(source->desc(), mip);
    const VkBufferImageCopy copy = image_copy(*source, layer, mip, {}, {layout.width, layout.height, layout.depth}, 0,
                                              0, "read_texture");
    read_image(*source, {&copy, 1}, layout.size_in_bytes,
               [&](const uint8_t* memory) { std::memcpy(data, memory, layout.size_in_bytes); });
}

// --- depth and stencil in one texture: memory gets them one plane after the other, the host as 8 bytes a texel

namespace {

constexpr uint64_t texel_size = 8, depth_size = 4;

std::array<VkBufferImageCopy, 2> plane_copies(const SubresourceLayout& layout, uint32_t layer, uint32_t mip,
                                              uint64_t offset)
{
    std::array<VkBufferImageCopy, 2> copies{};
    const uint64_t count = uint64_t(layout.width) * layout.height;
    for (uint32_t i = 0; i < 2; ++i) {
        copies[i].bufferOffset = offset + (i ? count * depth_size : 0);
        copies[i].imageSubresource = {VkImageAspectFlags(i ? VK_IMAGE_ASPECT_STENCIL_BIT : VK_IMAGE_ASPECT_DEPTH_BIT),
                                      mip, layer, 1};
        copies[i].imageExtent = {layout.width, layout.height, 1};
    }
    return copies;
}

} // namespace

void VulkanHostAccess::read_planes(VulkanTexture& texture, uint32_t layer, uint32_t mip, uint8_t* data)
{
    refuse_samples(texture.desc(), "read_texture");
    const SubresourceLayout layout = subresource_layout(texture.desc(), mip);
    const uint64_t count = uint64_t(layout.width) * layout.height;
    const auto copies = plane_copies(layout, layer, mip, 0);
    read_image(texture, copies, count * (depth_size + 1), [&](const uint8_t* memory) {
        std::memset(data, 0, count * texel_size);
        for (uint64_t i = 0; i < count; ++i) {
            std::memcpy(data + i * texel_size, memory + i * depth_size, depth_size);
            data[i * texel_size + depth_size] = memory[count * depth_size + i];
        }
    });
}

void VulkanHostAccess::write_planes(VulkanTexture& texture, uint32_t layer, uint32_t mip, const uint8_t* data)
{
    refuse_samples(texture.desc(), "write_texture");
    const SubresourceLayout layout = subresource_layout(texture.desc(), mip);
    const uint64_t count = uint64_t(layout.width) * layout.height;
    const UploadSlice slice = m_uploads.slice(count * (depth_size + 1), 16);
    for (uint64_t i = 0; i < count; ++i) {
        std::memcpy(slice.data + i * depth_size, data + i * texel_size, depth_size);
        slice.data[count * depth_size + i] = data[i * texel_size + depth_size];
    }
    const auto copies = plane_copies(layout, layer, mip, slice.offset);
    m_context.vk.CmdCopyBufferToImage(m_queue.begin_command(), slice.page->buffer, texture.handle(),
                                      VK_IMAGE_LAYOUT_GENERAL, 2, copies.data());
}

void VulkanHostAccess::write_texture(Texture* texture, uint32_t layer, uint32_t mip, const void* data)
{
    auto* target = static_cast<VulkanTexture*>(texture);
    const SubresourceLayout layout = subresource_layout(target->desc(), mip);
    std::lock_guard lock(m_queue.mutex());
    m_queue.timeline.require_open("write");
    m_uploads.limit();
    if (format_info(target->desc().format).is_stencil())
        return write_planes(*target, layer, mip, static_cast<const uint8_t*>(data));
    m_recorder.record_texture_upload(*target, layer, mip, {}, {layout.width, layout.height, layout.depth}, data,
                                     layout.size_in_bytes);
}

} // namespace spy
