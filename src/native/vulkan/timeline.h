#pragma once
// How far the device is: the semaphore that counts submissions, and the message once the device is lost.
#include "vulkan/context.h"

namespace spy {

/// All of these but wait() need the lock of the queue.
class VulkanTimeline {
public:
    explicit VulkanTimeline(VulkanContext& context) : m_context(context) { }
    void open() { m_semaphore = m_context.create_timeline(0, false); }
    void close() noexcept;
    void require_open(const char* what) const;

    VkSemaphore semaphore() const { return m_semaphore; }
    uint64_t submitted() const { return m_submitted; }
    uint64_t advance() { return ++m_submitted; } ///< one more is submitted
    uint64_t completed();
    uint64_t known_completed() const { return m_completed; } ///< when it was last asked
    uint64_t completed_or_known() const noexcept;
    /// As long as it takes, or until Ctrl-C.
    void wait(uint64_t submit_id);
    /// VK_TIMEOUT when the time is up.
    VkResult wait_for(uint64_t submit_id, uint64_t timeout_ns) const;

    /// Throws for a failed call, with what is known of a lost device.
    void check(VkResult result, const char* what);
    bool is_lost() const { return !m_lost.empty(); }
    void note_label(const std::string& label) { m_last_label = label; }

private:
    VulkanContext& m_context;
    VkSemaphore m_semaphore = VK_NULL_HANDLE;
    uint64_t m_submitted = 0, m_completed = 0;
    std::string m_lost; ///< message once the device is lost
    std::string m_last_label;
};

} // namespace spy
