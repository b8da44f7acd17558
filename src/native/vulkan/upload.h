#pragma once
// Host-visible memory that command lists carve up: staging, arguments, spilled push constants.
#include "vulkan/context.h"
#include "vulkan/memory.h"

namespace spy {

class VulkanQueue;

/// Host-visible memory that one command list after another carves up.
struct UploadPage {
    VkBuffer buffer = VK_NULL_HANDLE;
    Allocation allocation;
    uint64_t size = 0, used = 0; ///< the buffer is longer: a descriptor of the whole spill range fits at any offset
    VkDescriptorPool spill_pool = VK_NULL_HANDLE;
    VkDescriptorSet spill_set = VK_NULL_HANDLE; ///< dynamic uniform buffer over the page
};
struct UploadSlice {
    UploadPage* page = nullptr;
    uint64_t offset = 0;
    uint8_t* data = nullptr;
};

/// The device's lock guards it.
class VulkanUploads {
public:
    VulkanUploads(VulkanContext& context, VulkanMemory& memory, VulkanQueue& queue)
        : m_context(context),
          m_memory(memory),
          m_queue(queue)
    {
    }
    void open();
    void close() noexcept;
    /// Host-visible bytes that live until the open list is done. May flush, so it comes before begin_command.
    UploadSlice slice(uint64_t size, uint64_t alignment);
    VkDescriptorSet spill_set(UploadPage& page);
    VkDescriptorSetLayout spill_layout() const { return m_spill_layout; }
    UploadPage* create_page(uint64_t size);
    void recycle_page(UploadPage* page);
    void destroy_page(UploadPage* page) noexcept;
    void note_done(uint64_t staged_bytes) { m_staged_bytes -= staged_bytes; }
    /// Waits while too much staging memory is in flight.
    void limit();

private:
    VulkanContext& m_context;
    VulkanMemory& m_memory;
    VulkanQueue& m_queue;
    VkDescriptorSetLayout m_spill_layout = VK_NULL_HANDLE;
    std::vector<UploadPage*> m_free_pages, m_free_large_pages;
    uint64_t m_staged_bytes = 0;
};

} // namespace spy
