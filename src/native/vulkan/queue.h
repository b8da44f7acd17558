#pragma once
// Command lists, submission, waiting, and what is freed when work is done.
//
// Work is recorded into one open command list, which is submitted ("flushed") when somebody waits or reads, when the
// GPU has nothing to do, or when the list is full. A timeline semaphore carries the submit ids. Whatever is released
// while work is in flight goes to a queue that is emptied as ids pass, so commands hold no references.
#include "vulkan/lists.h"
#include "vulkan/memory.h"
#include "vulkan/timeline.h"

#include "core/interrupt.h"
#include "device/command.h"

#include <deque>

namespace spy {

class VulkanRecorder;

/// A driver object to destroy once `id` has passed.
struct Garbage {
    uint64_t id = 0;
    VkObjectType type = VK_OBJECT_TYPE_UNKNOWN;
    uint64_t handle = 0;
    Allocation allocation;
};

/// Timelines that CUDA and we signal, and what the next submission does with them.
struct CudaOrder {
    VkSemaphore from = VK_NULL_HANDLE, to = VK_NULL_HANDLE;
    uint64_t wait = 0;     ///< value of `from` that it waits for; 0: nothing
    uint64_t to_value = 0; ///< last signalled
    bool signal = false;   ///< it signals `to`
};

class VulkanQueue {
public:
    VulkanQueue(VulkanContext& context, VulkanMemory& memory, VulkanUploads& uploads)
        : timeline(context),
          m_context(context),
          m_memory(memory),
          m_lists(context, uploads)
    {
    }
    void close() noexcept;
    /// Guards all of the device's state, its queue and its memory.
    PoliteMutex& mutex() { return m_mutex; }

    // Recording; the caller holds the lock.
    CommandList& open_list();
    CommandList* current_list() { return m_open.get(); }
    VkCommandBuffer begin_command();
    void global_barrier();

    // Submission; the caller holds the lock.
    /// Submits the open list. `waits` and `signals` name fences; with either, an empty list is submitted too.
    void flush(const SubmitDesc* waits = nullptr, const SubmitDesc* signals = nullptr);
    void flush_if_due(); ///< an idle GPU starts at once; behind a busy one launches gather
    uint64_t submit(Device& device, const SubmitDesc& desc, VulkanRecorder& recorder,
                    std::unique_lock<PoliteMutex>& lock);
    uint64_t newest_id() const { return timeline.submitted() + (m_open ? 1 : 0); }
    bool is_idle();
    const CommandList* oldest_pending() const { return m_pending.empty() ? nullptr : m_pending.front().get(); }

    // Waiting
    bool is_finished(uint64_t submit_id);
    bool wait(uint64_t submit_id, uint64_t timeout_ns);
    void wait_all(); ///< as long as it takes

    // What is released
    /// Destroys a driver object now, or when the work that may use it is done. Null handles are fine.
    void discard(VkObjectType type, uint64_t handle, const Allocation& allocation = {}) noexcept;
    /// Frees what finished work has used. With `block`, waits for all of it first.
    void collect(bool block);
    /// Keeps released memory that is still in use by the GPU within bounds.
    void throttle_garbage();

    VulkanTimeline timeline;
    CudaOrder cuda;

private:
    void run_callback(const command::Callback& command, std::unique_lock<PoliteMutex>& lock);
    void abandon_open_list() noexcept;
    VkResult submit_open_list(const SubmitDesc* waits, const SubmitDesc* signals);

    VulkanContext& m_context;
    VulkanMemory& m_memory;
    PoliteMutex m_mutex;
    bool m_needs_barrier = false, m_in_submit = false;
    std::unique_ptr<CommandList> m_open;
    std::deque<std::unique_ptr<CommandList>> m_pending;
    VulkanLists m_lists;
    std::deque<Garbage> m_garbage;
    uint64_t m_garbage_bytes = 0;
};

} // namespace spy
