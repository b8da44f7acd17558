// Host-visible memory that command lists carve up: staging, arguments, spilled push constants.
#include "vulkan/upload.h"

#include "core/align.h"
#include "vulkan/queue.h"

#include "core/error.h"

#include <algorithm>

namespace spy {

namespace {

constexpr uint64_t small_page_size = 1ull << 20, large_page_size = 8ull << 20;
constexpr uint64_t max_small_slice = 256ull << 10;
constexpr uint64_t max_staged_bytes = 128ull << 20;

uint64_t spill_range(const VulkanContext& context)
{
    return std::min<uint64_t>(context.adapter->properties.limits.maxUniformBufferRange, 65536);
}

} // namespace

void VulkanUploads::open()
{
    VkDescriptorSetLayoutBinding binding{};
    binding.descriptorType = VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER_DYNAMIC;
    binding.descriptorCount = 1;
    binding.stageFlags = VK_SHADER_STAGE_ALL;
    VkDescriptorSetLayoutCreateInfo layout{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
    layout.bindingCount = 1;
    layout.pBindings = &binding;
    vk_check(m_context.vk.CreateDescriptorSetLayout(m_context.device, &layout, nullptr, &m_spill_layout),
             "vkCreateDescriptorSetLayout");
}

void VulkanUploads::close() noexcept
{
    for (std::vector<UploadPage*>* pages : {&m_free_pages, &m_free_large_pages}) {
        for (UploadPage* page : *pages)
            destroy_page(page);
        pages->clear();
    }
    m_context.vk.DestroyDescriptorSetLayout(m_context.device, m_spill_layout, nullptr);
}

UploadPage* VulkanUploads::create_page(uint64_t size)
{
    VkBufferCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
    info.size = size + spill_range(m_context);
    info.usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT |
        VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;
    if (m_context.can_trace_rays())
        info.usage |= VK_BUFFER_USAGE_SHADER_BINDING_TABLE_BIT_KHR;
    auto page = std::make_unique<UploadPage>();
    page->size = size;
    vk_check(m_context.vk.CreateBuffer(m_context.device, &info, nullptr, &page->buffer), "vkCreateBuffer");
    try {
        AllocationRequest request;
        m_context.vk.GetBufferMemoryRequirements(m_context.device, page->buffer, &request.requirements);
        if (m_context.can_trace_rays())
            request.requirements.alignment = std::max<VkDeviceSize>(
                request.requirements.alignment, m_context.adapter->ray_tracing.shaderGroupBaseAlignment);
        request.use = MemoryUse::upload;
        request.buffer = page->buffer;
        page->allocation = m_memory.allocate(request);
        vk_check(m_context.vk.BindBufferMemory(m_context.device, page->buffer, page->allocation.memory,
                                               page->allocation.offset),
                 "vkBindBufferMemory");
    } catch (...) {
        destroy_page(page.release());
        throw;
    }
    return page.release();
}

void VulkanUploads::destroy_page(UploadPage* page) noexcept
{
    m_context.vk.DestroyDescriptorPool(m_context.device, page->spill_pool, nullptr);
    m_context.vk.DestroyBuffer(m_context.device, page->buffer, nullptr);
    m_memory.free(page->allocation);
    delete page;
}

void VulkanUploads::recycle_page(UploadPage* page)
{
    page->used = 0;
    if (page->size == small_page_size)
        m_free_pages.push_back(page);
    else if (page->size == large_page_size && m_free_large_pages.size() < 4)
        m_free_large_pages.push_back(page);
    else
        destroy_page(page);
}

UploadSlice VulkanUploads::slice(uint64_t size, uint64_t alignment)
{
    const bool small = size <= max_small_slice;
    const uint64_t page_size = small ? small_page_size : std::max(large_page_size, size);
    if (CommandList* open = m_queue.current_list())
        for (auto it = open->pages.rbegin(); it != open->pages.rend(); ++it) {
            UploadPage* page = *it;
            const uint64_t offset = round_up(page->used, alignment);
            if ((page->size == small_page_size) != small || offset + size > page->size)
                continue;
            page->used = offset + size;
            return {page, offset, page->allocation.mapped + offset};
        }
    std::vector<UploadPage*>& pool = small ? m_free_pages : m_free_large_pages;
    UploadPage* page = nullptr;
    if (!pool.empty() && pool.back()->size >= page_size) {
        page = pool.back();
        pool.pop_back();
    } else
        page = create_page(page_size);
    page->used = size;
    CommandList& list = m_queue.open_list();
    list.pages.push_back(page);
    list.staged_bytes += page->size;
    m_staged_bytes += page->size;
    return {page, 0, page->allocation.mapped};
}

void VulkanUploads::limit()
{
    while (m_staged_bytes > max_staged_bytes) {
        m_queue.flush();
        const CommandList* oldest = m_queue.oldest_pending();
        if (!oldest)
            return;
        m_queue.timeline.wait(oldest->id);
        m_queue.collect();
    }
}

VkDescriptorSet VulkanUploads::spill_set(UploadPage& page)
{
    if (page.spill_set)
        return page.spill_set;
    const VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER_DYNAMIC, 1};
    VkDescriptorPoolCreateInfo pool{VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
    pool.maxSets = pool.poolSizeCount = 1;
    pool.pPoolSizes = &size;
    vk_check(m_context.vk.CreateDescriptorPool(m_context.device, &pool, nullptr, &page.spill_pool),
             "vkCreateDescriptorPool");
    VkDescriptorSetAllocateInfo info{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
    info.descriptorPool = page.spill_pool;
    info.descriptorSetCount = 1;
    info.pSetLayouts = &m_spill_layout;
    vk_check(m_context.vk.AllocateDescriptorSets(m_context.device, &info, &page.spill_set), "vkAllocateDescriptorSets");
    const VkDescriptorBufferInfo buffer{page.buffer, 0, spill_range(m_context)};
    VkWriteDescriptorSet write{VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET};
    write.dstSet = page.spill_set;
    write.descriptorCount = 1;
    write.descriptorType = VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER_DYNAMIC;
    write.pBufferInfo = &buffer;
    m_context.vk.UpdateDescriptorSets(m_context.device, 1, &write, 0, nullptr);
    return page.spill_set;
}

} // namespace spy
