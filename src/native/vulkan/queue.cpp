// Command lists, submission, waiting, and what is freed when work is done.
#include "vulkan/queue.h"

#include "vulkan/recorder.h"

#include "core/error.h"
#include "device/profile.h"

#include <algorithm>

namespace spy {

namespace {

constexpr uint64_t max_garbage_bytes = 1ull << 30;
constexpr uint64_t open_garbage_bytes = 64ull << 20; ///< released memory that only a flush can free
constexpr uint32_t max_list_commands = 32;           ///< launches gathered while the GPU is busy
constexpr size_t max_pending_lists = 64;

void destroy(VulkanContext& context, VulkanMemory& memory, const Garbage& garbage) noexcept
{
    switch (garbage.type) {
#define X(type, name)                                                                                                  \
    case VK_OBJECT_TYPE_##type: context.vk.Destroy##name(context.device, Vk##name(garbage.handle), nullptr); break;
        // clang-format off
        X(BUFFER, Buffer) X(BUFFER_VIEW, BufferView) X(IMAGE, Image) X(IMAGE_VIEW, ImageView) X(SAMPLER, Sampler)
        X(SEMAPHORE, Semaphore) X(QUERY_POOL, QueryPool) X(PIPELINE, Pipeline) X(PIPELINE_LAYOUT, PipelineLayout)
        X(DESCRIPTOR_SET_LAYOUT, DescriptorSetLayout) X(DESCRIPTOR_UPDATE_TEMPLATE, DescriptorUpdateTemplate)
        // clang-format on
#undef X
                    default : break;
    }
    memory.free(garbage.allocation);
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
    for (const Garbage& garbage : m_garbage)
        destroy(m_context, m_memory, garbage);
    m_garbage.clear();
    m_lists.close();
    for (VkSemaphore semaphore : {cuda.from, cuda.to})
        m_context.vk.DestroySemaphore(m_context.device, semaphore, nullptr);
    timeline.close();
}

// --- lists

CommandList& VulkanQueue::open_list()
{
    timeline.require_open("command");
    if (!m_open) {
        m_open = m_lists.begin();
    }
    return *m_open;
}

VkCommandBuffer VulkanQueue::begin_command()
{
    CommandList& list = open_list();
    if (m_needs_barrier)
        barrier(m_context, list.commands);
    m_needs_barrier = true; // barriers reach back over submissions of the queue
    ++list.command_count;
    return list.commands;
}

void VulkanQueue::global_barrier()
{
    barrier(m_context, open_list().commands);
    m_needs_barrier = false;
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

void VulkanQueue::flush(const SubmitDesc* waits, const SubmitDesc* signals)
{
    if (!m_open && !cuda.signal && !(waits && !waits->wait_fences.empty()) &&
        !(signals && !signals->signal_fences.empty()))
        return;
    CommandList& list = open_list();
    // Mapped memory is read by the host after the wait.
    VkMemoryBarrier memory{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
    memory.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
    memory.dstAccessMask = VK_ACCESS_HOST_READ_BIT;
    m_context.vk.CmdPipelineBarrier(list.commands,
                                    VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT,
                                    VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &memory, 0, nullptr, 0, nullptr);
    const VkResult code = submit_open_list(waits, signals);
    if (code < 0)
        abandon_open_list();
    const bool signalled = std::exchange(cuda.signal, false);
    timeline.check(code, "vkQueueSubmit");
    cuda.to_value += signalled;
    cuda.wait = 0;
    m_open->id = timeline.advance();
    m_pending.push_back(std::move(m_open));
    if (m_pending.size() > max_pending_lists)
        timeline.wait(m_pending.front()->id);
    collect(false);
}

void VulkanQueue::flush_if_due()
{
    // An idle GPU starts at once; behind a busy one launches gather, which costs fewer submissions.
    if (m_open && (m_open->command_count >= max_list_commands || timeline.completed() == timeline.submitted()))
        flush();
}

void VulkanQueue::abandon_open_list() noexcept
{
    if (m_open)
        m_lists.recycle(std::move(m_open));
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
    collect(false);
}

bool VulkanQueue::is_finished(uint64_t submit_id)
{
    std::lock_guard lock(m_mutex);
    if (!m_context.device)
        return true;
    timeline.require_open("is_finished");
    if (submit_id > timeline.submitted())
        flush();
    if (timeline.known_completed() < submit_id)
        collect(false);
    return timeline.known_completed() >= std::min(submit_id, timeline.submitted());
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
            collect(false);
            return true;
        }
    }
    const VkResult code = timeline.wait_for(submit_id, timeout_ns);
    std::lock_guard lock(m_mutex);
    timeline.check(code, "vkWaitSemaphores");
    if (code == VK_TIMEOUT)
        return false;
    collect(false);
    return true;
}

// --- release

void VulkanQueue::discard(VkObjectType type, uint64_t handle, const Allocation& allocation) noexcept
{
    std::lock_guard lock(m_mutex);
    if (!m_context.device || (!handle && !allocation.memory))
        return;
    Garbage garbage{timeline.submitted() + (m_open ? 1 : 0), type, handle, allocation};
    uint64_t completed = timeline.known_completed();
    if (completed < garbage.id && !m_open && !timeline.is_lost())
        completed = timeline.completed_or_known();
    if (garbage.id <= completed) {
        destroy(m_context, m_memory, garbage);
        return;
    }
    m_garbage_bytes += allocation.size;
    m_garbage.push_back(garbage);
}

void VulkanQueue::collect(bool block)
{
    if (block) {
        if (!m_in_submit) // half a submission must not run, nor run ahead of its fences
            flush();
        timeline.wait(timeline.submitted());
    }
    const uint64_t completed = timeline.completed();
    while (!m_pending.empty() && m_pending.front()->id <= completed) {
        std::unique_ptr<CommandList> list = std::move(m_pending.front());
        m_pending.pop_front();
        m_lists.recycle(std::move(list));
    }
    while (!m_garbage.empty() && m_garbage.front().id <= completed) {
        const Garbage garbage = m_garbage.front();
        m_garbage.pop_front();
        m_garbage_bytes -= garbage.allocation.size;
        destroy(m_context, m_memory, garbage);
    }
}

void VulkanQueue::throttle_garbage()
{
    if (m_garbage.empty())
        return;
    if (m_open && m_garbage_bytes > open_garbage_bytes)
        flush();
    else
        collect(false);
    while (m_garbage_bytes > max_garbage_bytes && !m_garbage.empty()) {
        if (m_garbage.front().id > timeline.submitted())
            flush();
        timeline.wait(m_garbage.front().id);
        collect(false);
    }
}

// --- submission

uint64_t VulkanQueue::submit(Device& device, const SubmitDesc& desc, VulkanRecorder& recorder,
                             std::unique_lock<PoliteMutex>& lock)
{
    flush(); // what came before does not wait for this submission's fences
    const auto count = [&] {
        Profiler* const profiler = device.profiler();
        return profiler ? profiler->count() : 0;
    };
    size_t first = count(); // what is measured from here on runs only if the list is submitted
    const SubmitDesc* waits = desc.wait_fences.empty() ? nullptr : &desc;
    open_list();
    m_in_submit = true;
    try {
        for (CommandBuffer* buffer : desc.command_buffers)
            for (const Command& command : buffer->commands()) {
                if (auto* callback = std::get_if<command::Callback>(&command)) {
                    flush(std::exchange(waits, nullptr));
                    first = count();
                    run_callback(*callback, lock);
                    first = count();
                } else
                    recorder.record_timed(device, command);
            }
    } catch (...) {
        m_in_submit = false;
        if (Profiler* const profiler = device.profiler())
            profiler->drop_from(first);
        abandon_open_list(); // a submission runs whole or not at all (up to a callback)
        throw;
    }
    m_in_submit = false;
    open_list();
    flush(waits, &desc);
    return timeline.submitted();
}

void VulkanQueue::run_callback(const command::Callback& command, std::unique_lock<PoliteMutex>& lock)
{
    // The function may need other locks (Python's), whose owners may be waiting for ours: it records into a list that
    // nobody else knows, with our lock released.
    std::unique_ptr<CommandList> list = m_lists.begin();
    barrier(m_context, list->commands);
    list->command_count = 1;
    m_in_submit = false;
    lock.unlock();
    try {
        command.function({NativeHandleType::VkCommandBuffer, uint64_t(list->commands)});
    } catch (...) {
        lock.lock();
        if (m_context.device)
            m_lists.recycle(std::move(list));
        throw;
    }
    lock.lock();
    timeline.require_open("submit");
    flush();
    m_open = std::move(list);
    m_needs_barrier = m_in_submit = true;
}

} // namespace spy
