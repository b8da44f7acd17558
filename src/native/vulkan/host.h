#pragma once
// Host access to buffers and textures.
#include "vulkan/recorder.h"

#include <functional>
#include <span>

namespace spy {

class VulkanHostAccess {
public:
    VulkanHostAccess(VulkanContext& context, VulkanMemory& memory, VulkanQueue& queue, VulkanUploads& uploads,
                     VulkanRecorder& recorder)
        : m_context(context),
          m_memory(memory),
          m_queue(queue),
          m_uploads(uploads),
          m_recorder(recorder)
    {
    }
    void close() noexcept;
    void read_buffer(Buffer* buffer, uint64_t offset, void* data, uint64_t size);
    void write_buffer(Buffer* buffer, uint64_t offset, const void* data, uint64_t size);
    void read_texture(Texture* texture, uint32_t layer, uint32_t mip, void* data);
    void write_texture(Texture* texture, uint32_t layer, uint32_t mip, const void* data);

private:
    struct ReadPage {
        VkBuffer buffer = VK_NULL_HANDLE;
        Allocation allocation;
        uint64_t size = 0;
    };
    /// Copies from an image to memory of the host, `size` bytes, which `take` reads.
    void read_image(VulkanTexture& source, std::span<const VkBufferImageCopy> copies, uint64_t size,
                    const std::function<void(const uint8_t*)>& take);
    void read_planes(VulkanTexture& texture, uint32_t layer, uint32_t mip, uint8_t* data);
    void write_planes(VulkanTexture& texture, uint32_t layer, uint32_t mip, const uint8_t* data); ///< in the lock
    ReadPage create_page(uint64_t size);
    void destroy_page(ReadPage& page) noexcept;

    VulkanContext& m_context;
    VulkanMemory& m_memory;
    VulkanQueue& m_queue;
    VulkanUploads& m_uploads;
    VulkanRecorder& m_recorder;
    PoliteMutex m_mutex;
    std::array<ReadPage, 2> m_pages;
};

} // namespace spy
