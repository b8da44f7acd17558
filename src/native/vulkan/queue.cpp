// Command lists, submission, waiting, and what is freed when work is done: Vulkan's part of device/list_queue.h.
#include "vulkan/queue.h"

#include "vulkan/handles.h"
#include "vulkan/recorder.h"

#include "core/error.h"

#include <algorithm>

namespace spy {

namespace {

/// Between work of which one part or the other may draw.
void full_barrier(const VulkanContext& context, VkCommandBuffer commands)
{
    VkMemoryBarrier memory{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
    memory.srcAccessMask = VK_ACCESS_MEMORY_WRITE_BIT;
    memory.dstAccessMask = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT;
    context.vk.CmdPipelineBarrier(commands, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, 0,
                                  1, &memory, 0, nullptr, 0, nullptr);
}

void barrier(const VulkanContext& context, VkCommandBuffer commands)
{
    constexpr VkPipelineStageFlags stages = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
    VkMemoryBarrier memory{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
    memory.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
    memory.dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_READ_BIT |
        VK_ACCESS_TRANSFER_WRITE_BIT | VK_ACCESS_UNIFORM_READ_BIT | VK_ACCESS_INDIRECT_COMMAND_READ_BIT;
    context.vk.CmdPipelineBarrier(commands, stages, stages | VK_PIPELINE_STAGE_DRAW_INDIRECT_BIT, 0, 1, &memory, 0,
                                  nullptr, 0, nullptr);
}

} // namespace

// --- life

void VulkanQueue::close() noexcept
{
    abandon_open_list();
    for (auto& list : m_pending) // idle, or lost: nothing will touch these again
        m_lists.destroy(*list);
    m_pending.clear();
    destroy_garbage();
    m_lists.close();
    for (VkSemaphore semaphore : {cuda.from, cuda.to})
        m_context.vk.DestroySemaphore(m_context.device, semaphore, nullptr);
    timeline.close();
}

// --- lists

CommandList& VulkanQueue::open_list()
{
    timeline.require_open("command");
    if (!m_open)
        m_open = m_lists.begin();
    return *m_open;
}

VkCommandBuffer VulkanQueue::begin_command(bool draws)
{
    CommandList& list = open_list();
    if (m_needs_barrier)
        (draws || m_drew ? full_barrier : barrier)(m_context, list.commands);
    m_needs_barrier = true; // barriers reach back over submissions of the queue
    m_drew = draws;
    ++list.command_count;
    return list.commands;
}

void VulkanQueue::global_barrier()
{
    full_barrier(m_context, open_list().commands); // what comes next may draw
    m_needs_barrier = m_drew = false;
}

VkResult VulkanQueue::submit_open_list(const SubmitDesc* waits, const SubmitDesc* signals)
{
    std::vector<VkSemaphore> wait_semaphores, signal_semaphores{timeline.semaphore()};
    std::vector<uint64_t> wait_values, signal_values{timeline.submitted() + 1};
    if (waits)
        for (size_t i = 0; i < waits->wait_fences.size(); ++i) {
            wait_semaphores.push_back(static_cast<VulkanFence*>(waits->wait_fences[i].get())->handle());
            wait_values.push_back(waits->wait_values[i]);
        }
    if (signals)
        for (size_t i = 0; i < signals->signal_fences.size(); ++i) {
            signal_semaphores.push_back(static_cast<VulkanFence*>(signals->signal_fences[i].get())->handle());
            signal_values.push_back(signals->signal_values[i]);
        }
    if (cuda.wait) {
        wait_semaphores.push_back(cuda.from);
        wait_values.push_back(cuda.wait);
    }
    if (cuda.signal) {
        signal_semaphores.push_back(cuda.to);
        signal_values.push_back(cuda.to_value + 1);
    }
    for (VkSemaphore semaphore : images_to_wait_for) {
        wait_semaphores.push_back(semaphore);
        wait_values.push_back(0); // binary: the value is ignored
    }
    if (image_to_signal) {
        signal_semaphores.push_back(image_to_signal);
        signal_values.push_back(0);
    }
    const std::vector<VkPipelineStageFlags> stages(wait_semaphores.size(), VK_PIPELINE_STAGE_ALL_COMMANDS_BIT);
    VkTimelineSemaphoreSubmitInfo timeline{VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO};
    timeline.waitSemaphoreValueCount = uint32_t(wait_values.size());
    timeline.pWaitSemaphoreValues = wait_values.data();
    timeline.signalSemaphoreValueCount = uint32_t(signal_values.size());
    timeline.pSignalSemaphoreValues = signal_values.data();
    VkSubmitInfo info{VK_STRUCTURE_TYPE_SUBMIT_INFO, &timeline};
    info.waitSemaphoreCount = uint32_t(wait_semaphores.size());
    info.pWaitSemaphores = wait_semaphores.data();
    info.pWaitDstStageMask = stages.data();
    info.commandBufferCount = 1;
    info.pCommandBuffers = &m_open->commands;
    info.signalSemaphoreCount = uint32_t(signal_semaphores.size());
    info.pSignalSemaphores = signal_semaphores.data();
    const VkResult code = m_context.vk.EndCommandBuffer(m_open->commands);
    if (code < 0)
        return code;
    const std::lock_guard lock(m_context.handle->queue_mutex);
    return m_context.vk.QueueSubmit(m_context.queue, 1, &info, VK_NULL_HANDLE);
}

void VulkanQueue::flush(const SubmitDesc* signals)
{
    if (!m_open && !cuda.signal && !m_waits && !(signals && !signals->signal_fences.empty()))
        return;
    const SubmitDesc* waits = std::exchange(m_waits, nullptr);
    CommandList& list = open_list();
    // Mapped memory is read by the host after the wait.
    VkMemoryBarrier memory{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
    memory.srcAccessMask = m_drew ? VkAccessFlags(VK_ACCESS_MEMORY_WRITE_BIT)
                                  : VkAccessFlags(VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT);
    memory.dstAccessMask = VK_ACCESS_HOST_READ_BIT;
    m_context.vk.CmdPipelineBarrier(
        list.commands,
        m_drew ? VkPipelineStageFlags(VK_PIPELINE_STAGE_ALL_COMMANDS_BIT)
               : VkPipelineStageFlags(VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT),
        VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &memory, 0, nullptr, 0, nullptr);
    const VkResult code = submit_open_list(waits, signals);
    if (code < 0)
        abandon_open_list();
    const bool signalled = std::exchange(cuda.signal, false);
    images_to_wait_for.clear();
    image_to_signal = VK_NULL_HANDLE;
    timeline.check(code, "vkQueueSubmit");
    cuda.to_value += signalled;
    cuda.wait = 0;
    note_submitted();
    limit_pending();
    collect();
}

// --- progress

bool VulkanQueue::is_idle() { return !m_open && timeline.completed() == timeline.submitted(); }

void VulkanQueue::wait_all()
{
    uint64_t target;
    {
        std::lock_guard lock(m_mutex);
        flush();
        target = timeline.submitted();
        if (timeline.completed() >= target)
            return;
    }
    timeline.wait(target);
    std::lock_guard lock(m_mutex);
    collect();
}

void VulkanQueue::finish_all() noexcept
{
    try {
        std::lock_guard lock(m_mutex);
        flush();
    } catch (const Error&) {
        // The device is lost, which whoever waits for the work is told: nothing runs any more.
    }
    m_context.wait_idle();
}

bool VulkanQueue::wait(uint64_t submit_id, uint64_t timeout_ns)
{
    {
        std::lock_guard lock(m_mutex);
        timeline.require_open("wait");
        if (submit_id > timeline.submitted())
            flush();
        submit_id = std::min(submit_id, timeline.submitted());
        if (timeline.completed() >= submit_id) {
            collect();
            return true;
        }
    }
    const VkResult code = timeline.wait_for(submit_id, timeout_ns);
    std::lock_guard lock(m_mutex);
    timeline.check(code, "vkWaitSemaphores");
    if (code == VK_TIMEOUT)
        return false;
    collect();
    return true;
}

// --- release

void VulkanQueue::discard(VkObjectType type, uint64_t handle, const Allocation& allocation) noexcept
{
    std::lock_guard lock(m_mutex);
    if (is_open() && (handle || allocation.memory))
        ListQueue::discard({0, type, handle, allocation});
}

void VulkanQueue::destroy(Garbage& garbage) noexcept
{
    switch (garbage.type) {
    case VK_OBJECT_TYPE_DESCRIPTOR_SET: handles->recycle(garbage.handle); break;
#define X(type, name)                                                                                                  \
    case VK_OBJECT_TYPE_##type: m_context.vk.Destroy##name(m_context.device, Vk##name(garbage.handle), nullptr); break;
        // clang-format off
        X(BUFFER, Buffer) X(BUFFER_VIEW, BufferView) X(IMAGE, Image) X(IMAGE_VIEW, ImageView) X(SAMPLER, Sampler)
        X(SEMAPHORE, Semaphore) X(QUERY_POOL, QueryPool) X(PIPELINE, Pipeline) X(PIPELINE_LAYOUT, PipelineLayout)
        X(DESCRIPTOR_SET_LAYOUT, DescriptorSetLayout) X(DESCRIPTOR_UPDATE_TEMPLATE, DescriptorUpdateTemplate)
        X(ACCELERATION_STRUCTURE_KHR, AccelerationStructureKHR)
        // clang-format on
#undef X
                        default : break;
    }
    m_memory.free(garbage.allocation);
}

void VulkanQueue::wait_and_collect()
{
    if (!m_in_submit) // half a submission must not run, nor run ahead of its fences
        flush();
    timeline.wait(timeline.submitted());
    collect();
}

std::unique_ptr<CommandList> VulkanQueue::begin_foreign_list()
{
    std::unique_ptr<CommandList> list = m_lists.begin();
    (m_drew ? full_barrier : barrier)(m_context, list->commands);
    return list;
}

} // namespace spy
