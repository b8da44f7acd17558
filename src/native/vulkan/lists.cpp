// Command lists: what is recorded into, and those that may be recorded into again.
#include "vulkan/lists.h"

#include <utility>

namespace spy {

std::unique_ptr<CommandList> VulkanLists::create()
{
    if (!m_free.empty()) {
        auto list = std::move(m_free.back());
        m_free.pop_back();
        return list;
    }
    auto list = std::make_unique<CommandList>();
    VkCommandPoolCreateInfo pool{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
    pool.flags = VK_COMMAND_POOL_CREATE_TRANSIENT_BIT;
    pool.queueFamilyIndex = m_context.queue_family;
    vk_check(m_context.vk.CreateCommandPool(m_context.device, &pool, nullptr, &list->pool), "vkCreateCommandPool");
    VkCommandBufferAllocateInfo info{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
    info.commandPool = list->pool;
    info.commandBufferCount = 1;
    const VkResult code = m_context.vk.AllocateCommandBuffers(m_context.device, &info, &list->commands);
    if (code < 0)
        m_context.vk.DestroyCommandPool(m_context.device, list->pool, nullptr);
    vk_check(code, "vkAllocateCommandBuffers");
    return list;
}

std::unique_ptr<CommandList> VulkanLists::begin()
{
    std::unique_ptr<CommandList> list = create();
    VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
    vk_check(m_context.vk.BeginCommandBuffer(list->commands, &begin), "vkBeginCommandBuffer");
    return list;
}

void VulkanLists::recycle(std::unique_ptr<CommandList> list)
{
    m_context.vk.ResetCommandPool(m_context.device, list->pool, 0);
    for (size_t i = 0; i <= list->descriptor_pool && i < list->descriptor_pools.size(); ++i)
        m_context.vk.ResetDescriptorPool(m_context.device, list->descriptor_pools[i], 0);
    list->descriptor_pool = 0;
    m_uploads.note_done(list->staged_bytes);
    for (UploadPage* page : list->pages)
        m_uploads.recycle_page(page);
    list->pages.clear();
    list->id = list->staged_bytes = 0;
    list->command_count = 0;
    list->bound = VK_NULL_HANDLE;
    m_free.push_back(std::move(list));
}

void VulkanLists::destroy(CommandList& list) noexcept
{
    for (VkDescriptorPool pool : list.descriptor_pools)
        m_context.vk.DestroyDescriptorPool(m_context.device, pool, nullptr);
    for (UploadPage* page : list.pages)
        m_uploads.destroy_page(page);
    m_context.vk.DestroyCommandPool(m_context.device, list.pool, nullptr);
}

void VulkanLists::close() noexcept
{
    for (auto& list : m_free)
        destroy(*list);
    m_free.clear();
}

} // namespace spy
