#pragma once
// Command lists, submission, waiting, and what is freed when work is done: Vulkan's part of device/list_queue.h.
#include "vulkan/lists.h"
#include "vulkan/memory.h"
#include "vulkan/timeline.h"

#include "device/list_queue.h"

namespace spy {

class VulkanHandles;
class VulkanRecorder;

/// A driver object to destroy once `id` has passed.
struct Garbage {
    uint64_t id = 0;
    VkObjectType type = VK_OBJECT_TYPE_UNKNOWN;
    uint64_t handle = 0;
    Allocation allocation;

    uint64_t bytes() const { return allocation.size; }
};

/// Timelines that CUDA and we signal, and what the next submission does with them.
struct CudaOrder {
    VkSemaphore from = VK_NULL_HANDLE, to = VK_NULL_HANDLE;
    uint64_t wait = 0;     ///< value of `from` that it waits for; 0: nothing
    uint64_t to_value = 0; ///< last signalled
    bool signal = false;   ///< it signals `to`
};

class VulkanQueue final : public ListQueue<CommandList, Garbage> {
public:
    VulkanQueue(VulkanContext& context, VulkanMemory& memory, VulkanUploads& uploads)
        : ListQueue(timeline),
          timeline(context),
          m_context(context),
          m_memory(memory),
          m_lists(context, uploads)
    {
    }
    void close() noexcept;

    // The caller holds the lock.
    CommandList& open_list() override;
    /// `draws`: it is a render pass, whose stages a barrier must name.
    VkCommandBuffer begin_command(bool draws = false);
    void global_barrier();
    void flush(const SubmitDesc* signals = nullptr) override;
    bool is_idle();
    const CommandList* oldest_pending() const { return m_pending.empty() ? nullptr : m_pending.front().get(); }

    // Waiting
    bool wait(uint64_t submit_id, uint64_t timeout_ns);
    void wait_all(); ///< as long as it takes
    /// Waits for all work and for what is on its way to the screen; nothing is recorded any more, either.
    void finish_all() noexcept;
    /// Waits for all work, and frees what it has used; half a submission stays open.
    void wait_and_collect();

    /// Destroys a driver object now, or when the work that may use it is done. Null handles are fine.
    void discard(VkObjectType type, uint64_t handle, const Allocation& allocation = {}) noexcept;

    VulkanTimeline timeline;
    CudaOrder cuda;
    VulkanHandles* handles = nullptr; ///< whose places become free with the work that used them
    /// Of images of windows: the next submission waits until they are free, and signals that one is drawn.
    std::vector<VkSemaphore> images_to_wait_for;
    VkSemaphore image_to_signal = VK_NULL_HANDLE;

protected:
    bool is_open() const override { return m_context.is_open(); }
    std::unique_ptr<CommandList> begin_foreign_list() override;
    NativeHandle handle_of(const CommandList& list) const override
    {
        return {NativeHandleType::VkCommandBuffer, uint64_t(list.commands)};
    }
    void adopt_foreign_list() override { m_needs_barrier = m_drew = true; }
    void recycle(std::unique_ptr<CommandList> list) override { m_lists.recycle(std::move(list)); }
    void abandon(std::unique_ptr<CommandList> list) noexcept override { m_lists.recycle(std::move(list)); }
    void destroy(Garbage& garbage) noexcept override;

private:
    VkResult submit_open_list(const SubmitDesc* waits, const SubmitDesc* signals);

    VulkanContext& m_context;
    VulkanMemory& m_memory;
    bool m_needs_barrier = false;
    bool m_drew = false; ///< what was recorded last may have drawn
    VulkanLists m_lists;
};

} // namespace spy
