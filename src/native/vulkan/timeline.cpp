// How far the device is, and waiting for it.
#include "vulkan/timeline.h"

#include "core/error.h"
#include "core/interrupt.h"

namespace spy {

void VulkanTimeline::close() noexcept
{
    complete_all();
    m_context.vk.DestroySemaphore(m_context.device, m_semaphore, nullptr);
}

void VulkanTimeline::check(VkResult result, const char* what)
{
    if (result == VK_ERROR_DEVICE_LOST)
        note_lost(cat("Vulkan device ", m_context.name()), "");
    if (is_lost() && result < 0)
        fail_lost();
    vk_check(result, what);
}

uint64_t VulkanTimeline::ask_completed()
{
    uint64_t value = 0;
    check(m_context.vk.GetSemaphoreCounterValue(m_context.device, m_semaphore, &value), "vkGetSemaphoreCounterValue");
    return value;
}

uint64_t VulkanTimeline::completed_or_known() const noexcept
{
    uint64_t value = 0;
    const bool known = !is_lost() && m_context.vk.GetSemaphoreCounterValue(m_context.device, m_semaphore, &value) >= 0;
    return known ? value : known_completed();
}

void VulkanTimeline::wait(uint64_t submit_id)
{
    VkSemaphoreWaitInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO};
    info.semaphoreCount = 1;
    info.pSemaphores = &m_semaphore;
    info.pValues = &submit_id;
    VkResult code = VK_TIMEOUT;
    while ((code = m_context.vk.WaitSemaphores(m_context.device, &info, 50'000'000)) == VK_TIMEOUT)
        poll_interrupt();
    check(code, "vkWaitSemaphores");
}

VkResult VulkanTimeline::wait_for(uint64_t submit_id, uint64_t timeout_ns) const
{
    VkSemaphoreWaitInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO};
    info.semaphoreCount = 1;
    info.pSemaphores = &m_semaphore;
    info.pValues = &submit_id;
    return m_context.vk.WaitSemaphores(m_context.device, &info, timeout_ns);
}

} // namespace spy
