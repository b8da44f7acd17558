// Fences and query pools.
#include "vulkan/acceleration.h"
#include "vulkan/device.h"

#include "core/error.h"

#include <algorithm>

namespace spy {

// --- fences

VulkanFence::VulkanFence(ref<Device> device, uint64_t initial_value, bool shared)
    : Fence(std::move(device)),
      m_shared(shared)
{
    m_semaphore = static_cast<VulkanDevice*>(m_device.get())->context().create_timeline(initial_value, shared);
}

void VulkanFence::release() noexcept
{
    static_cast<VulkanDevice*>(m_device.get())
        ->queue()
        .discard(VK_OBJECT_TYPE_SEMAPHORE, uint64_t(std::exchange(m_semaphore, VK_NULL_HANDLE)));
    m_shared_handle.close();
}

uint64_t VulkanFence::current_value()
{
    VulkanDevice& owner = *static_cast<VulkanDevice*>(m_device.get());
    owner.require_open("fence");
    uint64_t value = 0;
    vk_check(owner.context().vk.GetSemaphoreCounterValue(owner.context().device, m_semaphore, &value),
             "vkGetSemaphoreCounterValue");
    return value;
}

void VulkanFence::signal(uint64_t value)
{
    VulkanDevice& owner = *static_cast<VulkanDevice*>(m_device.get());
    const uint64_t current = current_value();
    if (value == current)
        return;
    if (value < current)
        fail_value("fence.signal: the value ", value, " is below the current value ", current);
    VkSemaphoreSignalInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO};
    info.semaphore = m_semaphore;
    info.value = value;
    vk_check(owner.context().vk.SignalSemaphore(owner.context().device, &info), "vkSignalSemaphore");
}

bool VulkanFence::wait(uint64_t value, uint64_t timeout_ns)
{
    VulkanDevice& owner = *static_cast<VulkanDevice*>(m_device.get());
    owner.require_open("fence");
    VkSemaphoreWaitInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO};
    info.semaphoreCount = 1;
    info.pSemaphores = &m_semaphore;
    info.pValues = &value;
    const VkResult code = owner.context().vk.WaitSemaphores(owner.context().device, &info, timeout_ns);
    vk_check(code, "vkWaitSemaphores");
    return code != VK_TIMEOUT;
}

NativeHandle VulkanFence::shared_handle()
{
    VulkanDevice& owner = *static_cast<VulkanDevice*>(m_device.get());
    owner.require_open("shared_handle");
    if (!m_shared)
        fail_runtime("shared_handle: the fence was not created with shared=True");
    return m_shared_handle.get([&] { return owner.context().export_semaphore(m_semaphore); });
}

ref<Fence> VulkanDevice::create_fence(uint64_t initial_value, bool shared)
{
    require_open("create_fence");
    return ref<Fence>(new VulkanFence(ref<Device>(this), initial_value, shared));
}

// --- queries

VulkanQueryPool::VulkanQueryPool(ref<Device> device, QueryType type, uint32_t count)
    : QueryPool(std::move(device), type, count),
      m_submit_ids(count)
{
    VulkanDevice& owner = *static_cast<VulkanDevice*>(m_device.get());
    if (type == QueryType::timestamp && !owner.context().timestamp_bits)
        fail_runtime("create_query_pool: the queue of ", owner.info().adapter_name, " has no timestamps");
    VkQueryPoolCreateInfo info{VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO};
    info.queryType = type == QueryType::timestamp ? VK_QUERY_TYPE_TIMESTAMP : acceleration_query(owner.context(), type);
    info.queryCount = std::max(count, 1u);
    vk_check(owner.context().vk.CreateQueryPool(owner.context().device, &info, nullptr, &m_pool), "vkCreateQueryPool");
}

void VulkanQueryPool::release() noexcept
{
    static_cast<VulkanDevice*>(m_device.get())
        ->queue()
        .discard(VK_OBJECT_TYPE_QUERY_POOL, uint64_t(std::exchange(m_pool, VK_NULL_HANDLE)));
}

void VulkanQueryPool::reset(uint32_t index, uint32_t count)
{
    // Writing a timestamp resets the query on the device first; here it only becomes "not written".
    std::fill_n(m_submit_ids.begin() + index, count, 0);
}

void VulkanQueryPool::require_written(uint32_t index, uint32_t count) const
{
    for (uint32_t i = index; i < index + count; ++i)
        if (!m_submit_ids[i])
            fail_no_result(i);
}

void VulkanQueryPool::get_results(uint32_t index, uint32_t count, uint64_t* ticks)
{
    if (!count)
        return;
    VulkanDevice& owner = *static_cast<VulkanDevice*>(m_device.get());
    require_written(index, count);
    const uint64_t newest = *std::max_element(m_submit_ids.begin() + index, m_submit_ids.begin() + index + count);
    while (!owner.wait(newest, 50'000'000))
        poll_interrupt();
    vk_check(owner.context().vk.GetQueryPoolResults(owner.context().device, m_pool, index, count, count * 8, ticks, 8,
                                                    VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT),
             "vkGetQueryPoolResults");
    const uint32_t bits = owner.context().timestamp_bits;
    if (m_type == QueryType::timestamp && bits < 64)
        for (uint32_t i = 0; i < count; ++i)
            ticks[i] &= (1ull << bits) - 1;
}

ref<QueryPool> VulkanDevice::create_query_pool(QueryType type, uint32_t count)
{
    require_open("create_query_pool");
    return ref<QueryPool>(new VulkanQueryPool(ref<Device>(this), type, count));
}

} // namespace spy
