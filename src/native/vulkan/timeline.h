#pragma once
// How far the device is: the semaphore that counts submissions.
#include "vulkan/context.h"

#include "device/timeline.h"

namespace spy {

/// All of these but wait() need the lock of the queue.
class VulkanTimeline final : public Timeline {
public:
    explicit VulkanTimeline(VulkanContext& context) : m_context(context) { }
    void open() { m_semaphore = m_context.create_timeline(0, false); }
    void close() noexcept;

    VkSemaphore semaphore() const { return m_semaphore; }
    uint64_t completed_or_known() const noexcept override;
    void wait(uint64_t submit_id) override;
    /// VK_TIMEOUT when the time is up.
    VkResult wait_for(uint64_t submit_id, uint64_t timeout_ns) const;

    /// Throws for a failed call, with what is known of a lost device.
    void check(VkResult result, const char* what);

protected:
    bool is_open() const override { return m_context.is_open(); }
    uint64_t ask_completed() override;

private:
    VulkanContext& m_context;
    VkSemaphore m_semaphore = VK_NULL_HANDLE;
};

} // namespace spy
