// How far the device is, waiting for it, and the message once it is lost.
#include "vulkan/timeline.h"

#include "core/error.h"
#include "core/interrupt.h"

#include <algorithm>

namespace spy {

void VulkanTimeline::close() noexcept
{
    m_completed = ~0ull; // idle, or lost: nothing will touch what waited any more
    m_context.vk.DestroySemaphore(m_context.device, m_semaphore, nullptr);
}

void VulkanTimeline::require_open(const char* what) const
{
    if (!m_context.is_open())
        fail_runtime(what, ": device is closed");
    if (!m_lost.empty())
        fail_runtime(m_lost);
}

void VulkanTimeline::check(VkResult result, const char* what)
{
    if (result == VK_ERROR_DEVICE_LOST && m_lost.empty())
        m_lost = cat("the Vulkan device ", m_context.name(), " was lost: a kernel faulted or ran too long",
                     m_last_label.empty() ? "" : " (the last one launched was '", m_last_label,
                     m_last_label.empty() ? "" : "')", "; close this device and create another");
    if (!m_lost.empty() && result < 0)
        fail_runtime(m_lost);
    vk_check(result, what);
}

uint64_t VulkanTimeline::completed()
{
    if (m_completed < m_submitted) {
        uint64_t value = 0;
        check(m_context.vk.GetSemaphoreCounterValue(m_context.device, m_semaphore, &value),
              "vkGetSemaphoreCounterValue");
        m_completed = std::max(m_completed, std::min(value, m_submitted));
    }
    return m_completed;
}

uint64_t VulkanTimeline::completed_or_known() const noexcept
{
    uint64_t value = 0;
    const bool known = m_context.vk.GetSemaphoreCounterValue(m_context.device, m_semaphore, &value) >= 0;
    return known ? value : m_completed;
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
