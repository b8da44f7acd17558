// Host-visible memory that command lists carve up: staging, arguments, spilled push constants.
#include "vulkan/vulkan_backend.h"

#include "core/error.h"

#include <algorithm>

namespace spy {

namespace {

constexpr uint64_t small_page_size = 1ull << 20, large_page_size = 8ull << 20;
constexpr uint64_t max_small_slice = 256ull << 10;
constexpr uint64_t max_staged_bytes = 128ull << 20;

uint64_t round_up(uint64_t value, uint64_t alignment) { return (value + alignment - 1) / alignment * alignment; }

uint64_t spill_range(const VulkanDevice& device)
{
    return std::min<uint64_t>(device.adapter().properties.limits.maxUniformBufferRange, 65536);
}

} // namespace

UploadPage* VulkanDevice::create_page(uint64_t size)
{
    VkBufferCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
    info.size = size + spill_range(*this);
    info.usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT
        | VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;
    auto page = std::make_unique<UploadPage>();
    page->size = size;
    vk_check(m_vk.CreateBuffer(m_device, &info, nullptr, &page->buffer), "vkCreateBuffer");
    try {
        AllocationRequest request;
        m_vk.GetBufferMemoryRequirements(m_device, page->buffer, &request.requirements);
        request.use = MemoryUse::upload;
        request.buffer = page->buffer;
        page->allocation = m_memory.allocate(request);
        vk_check(m_vk.BindBufferMemory(m_device, page->buffer, page->allocation.memory, page->allocation.offset),
                 "vkBindBufferMemory");
    } catch (...) {
        destroy_page(page.release());
        throw;
    }
    return page.release();
}

void VulkanDevice::destroy_page(UploadPage* page) noexcept
{
    m_vk.DestroyDescriptorPool(m_device, page->spill_pool, nullptr);
    m_vk.DestroyBuffer(m_device, page->buffer, nullptr);
    m_memory.free(page->allocation);
    delete page;
}

void VulkanDevice::recycle_page(UploadPage* page)
{
    page->used = 0;
    if (page->size == small_page_size)
        m_free_pages.push_back(page);
    else if (page->size == large_page_size && m_free_large_pages.size() < 4)
        m_free_large_pages.push_back(page);
    else
        destroy_page(page);
}

UploadSlice VulkanDevice::upload_slice(uint64_t size, uint64_t alignment)
{
    const bool small = size <= max_small_slice;
    const uint64_t page_size = small ? small_page_size : std::max(large_page_size, size);
    if (m_open)
        for (auto it = m_open->pages.rbegin(); it != m_open->pages.rend(); ++it) {
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
    CommandList& list = open_list();
    list.pages.push_back(page);
    list.staged_bytes += page->size;
    m_staged_bytes += page->size;
    return {page, 0, page->allocation.mapped};
}

void VulkanDevice::limit_staging()
{
    while (m_staged_bytes > max_staged_bytes) {
        flush();
        if (m_pending.empty())
            return;
        wait_semaphore(m_pending.front()->id);
        collect(false);
    }
}

VkDescriptorSet VulkanDevice::spill_set(UploadPage& page)
{
    if (page.spill_set)
        return page.spill_set;
    const VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER_DYNAMIC, 1};
    VkDescriptorPoolCreateInfo pool{VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
    pool.maxSets = pool.poolSizeCount = 1;
    pool.pPoolSizes = &size;
    vk_check(m_vk.CreateDescriptorPool(m_device, &pool, nullptr, &page.spill_pool), "vkCreateDescriptorPool");
    VkDescriptorSetAllocateInfo info{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
    info.descriptorPool = page.spill_pool;
    info.descriptorSetCount = 1;
    info.pSetLayouts = &m_spill_layout;
    vk_check(m_vk.AllocateDescriptorSets(m_device, &info, &page.spill_set), "vkAllocateDescriptorSets");
    const VkDescriptorBufferInfo buffer{page.buffer, 0, spill_range(*this)};
    VkWriteDescriptorSet write{VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET};
    write.dstSet = page.spill_set;
    write.descriptorCount = 1;
    write.descriptorType = VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER_DYNAMIC;
    write.pBufferInfo = &buffer;
    m_vk.UpdateDescriptorSets(m_device, 1, &write, 0, nullptr);
    return page.spill_set;
}

} // namespace spy
