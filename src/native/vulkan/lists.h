#pragma once
// Command lists: what is recorded into, and those that may be recorded into again.
#include "vulkan/context.h"
#include "vulkan/upload.h"

namespace spy {

struct CommandList {
    VkCommandPool pool = VK_NULL_HANDLE;
    VkCommandBuffer commands = VK_NULL_HANDLE;
    std::vector<VkDescriptorPool> descriptor_pools;
    size_t descriptor_pool = 0; ///< the one in use
    std::vector<UploadPage*> pages;
    uint64_t id = 0;
    uint32_t command_count = 0;
    uint64_t staged_bytes = 0;
    VkPipeline bound = VK_NULL_HANDLE;
};

/// Lists that no work uses. All of these need the lock of the queue.
class VulkanLists {
public:
    VulkanLists(VulkanContext& context, VulkanUploads& uploads) : m_context(context), m_uploads(uploads) { }
    /// A list that commands may be recorded into at once.
    std::unique_ptr<CommandList> begin();
    /// Takes back a list whose work is done, or was never submitted.
    void recycle(std::unique_ptr<CommandList> list);
    void destroy(CommandList& list) noexcept;
    void close() noexcept;

private:
    std::unique_ptr<CommandList> create();

    VulkanContext& m_context;
    VulkanUploads& m_uploads;
    std::vector<std::unique_ptr<CommandList>> m_free;
};

} // namespace spy
