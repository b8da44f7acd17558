// Command lists, submission, waiting, and what is freed when work is done.
#include "vulkan/vulkan_backend.h"

#include "core/error.h"

#include <algorithm>

namespace spy {

namespace {

constexpr uint64_t max_garbage_bytes = 1ull << 30;
constexpr uint64_t open_garbage_bytes = 64ull << 20; ///< released memory that only a flush can free
constexpr uint32_t max_list_commands = 32;           ///< launches gathered while the GPU is busy
constexpr size_t max_pending_lists = 64;

} // namespace

// --- lists

std::unique_ptr<CommandList> VulkanDevice::create_list()
{
    if (!m_free_lists.empty()) {
        auto list = std::move(m_free_lists.back());
        m_free_lists.pop_back();
        return list;
    }
    auto list = std::make_unique<CommandList>();
    VkCommandPoolCreateInfo pool{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
    pool.flags = VK_COMMAND_POOL_CREATE_TRANSIENT_BIT;
    pool.queueFamilyIndex = m_queue_family;
    vk_check(m_vk.CreateCommandPool(m_device, &pool, nullptr, &list->pool), "vkCreateCommandPool");
    VkCommandBufferAllocateInfo info{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
    info.commandPool = list->pool;
    info.commandBufferCount = 1;
    const VkResult code = m_vk.AllocateCommandBuffers(m_device, &info, &list->commands);
    if (code < 0)
        m_vk.DestroyCommandPool(m_device, list->pool, nullptr);
    vk_check(code, "vkAllocateCommandBuffers");
    return list;
}

void VulkanDevice::begin_list(CommandList& list)
{
    VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
    vk_check(m_vk.BeginCommandBuffer(list.commands, &begin), "vkBeginCommandBuffer");
}

CommandList& VulkanDevice::open_list()
{
    require_open("command");
    if (!m_open) {
        std::unique_ptr<CommandList> list = create_list();
        begin_list(*list);
        m_open = std::move(list);
    }
    return *m_open;
}

VkCommandBuffer VulkanDevice::begin_command()
{
    CommandList& list = open_list();
    if (m_needs_barrier)
        barrier(list.commands);
    m_needs_barrier = true; // barriers reach back over submissions of the queue
    ++list.command_count;
    return list.commands;
}

void VulkanDevice::barrier(VkCommandBuffer commands)
{
    constexpr VkPipelineStageFlags stages = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
    VkMemoryBarrier memory{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
    memory.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
    memory.dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_READ_BIT
        | VK_ACCESS_TRANSFER_WRITE_BIT | VK_ACCESS_UNIFORM_READ_BIT | VK_ACCESS_INDIRECT_COMMAND_READ_BIT;
    m_vk.CmdPipelineBarrier(commands, stages, stages | VK_PIPELINE_STAGE_DRAW_INDIRECT_BIT, 0, 1, &memory, 0, nullptr,
                            0, nullptr);
}

void VulkanDevice::record_initial_layout(VulkanTexture& texture)
{
    VkImageMemoryBarrier image{VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER};
    image.dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_READ_BIT
        | VK_ACCESS_TRANSFER_WRITE_BIT;
    image.oldLayout = VK_IMAGE_LAYOUT_UNDEFINED;
    image.newLayout = VK_IMAGE_LAYOUT_GENERAL;
    image.srcQueueFamilyIndex = image.dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED;
    image.image = texture.handle();
    image.subresourceRange = {texture.aspects(), 0, VK_REMAINING_MIP_LEVELS, 0, VK_REMAINING_ARRAY_LAYERS};
    // The memory may have been another resource's: wait for what used it.
    constexpr VkPipelineStageFlags stages = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
    m_vk.CmdPipelineBarrier(begin_command(), stages, stages, 0, 0, nullptr, 0, nullptr, 1, &image);
}

void VulkanDevice::flush(const SubmitDesc* waits, const SubmitDesc* signals)
{
    if (!m_open && !m_cuda_signal && !(waits && !waits->wait_fences.empty()) && !(signals && !signals->signal_fences.empty()))
        return;
    CommandList& list = open_list();
    // Mapped memory is read by the host after the wait.
    VkMemoryBarrier memory{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
    memory.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
    memory.dstAccessMask = VK_ACCESS_HOST_READ_BIT;
    m_vk.CmdPipelineBarrier(list.commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT,
                            VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &memory, 0, nullptr, 0, nullptr);
    std::vector<VkSemaphore> wait_semaphores, signal_semaphores{m_timeline};
    std::vector<uint64_t> wait_values, signal_values{m_submitted + 1};
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
    if (m_cuda_wait) {
        wait_semaphores.push_back(m_from_cuda);
        wait_values.push_back(m_cuda_wait);
    }
    if (m_cuda_signal) {
        signal_semaphores.push_back(m_to_cuda);
        signal_values.push_back(m_to_cuda_value + 1);
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
    info.pCommandBuffers = &list.commands;
    info.signalSemaphoreCount = uint32_t(signal_semaphores.size());
    info.pSignalSemaphores = signal_semaphores.data();
    VkResult code = m_vk.EndCommandBuffer(list.commands);
    if (code >= 0) {
        const std::lock_guard lock(m_handle->queue_mutex);
        code = m_vk.QueueSubmit(m_queue, 1, &info, VK_NULL_HANDLE);
    }
    if (code < 0)
        abandon_open_list();
    const bool signalled = std::exchange(m_cuda_signal, false);
    check_result(code, "vkQueueSubmit");
    m_to_cuda_value += signalled;
    m_cuda_wait = 0;
    m_open->id = ++m_submitted;
    m_pending.push_back(std::move(m_open));
    if (m_pending.size() > max_pending_lists)
        wait_semaphore(m_pending.front()->id);
    collect(false);
}

void VulkanDevice::abandon_open_list() noexcept
{
    if (m_open)
        recycle(std::move(m_open));
}

void VulkanDevice::recycle(std::unique_ptr<CommandList> list)
{
    m_vk.ResetCommandPool(m_device, list->pool, 0);
    for (size_t i = 0; i <= list->descriptor_pool && i < list->descriptor_pools.size(); ++i)
        m_vk.ResetDescriptorPool(m_device, list->descriptor_pools[i], 0);
    list->descriptor_pool = 0;
    m_staged_bytes -= list->staged_bytes;
    for (UploadPage* page : list->pages)
        recycle_page(page);
    list->pages.clear();
    list->id = list->staged_bytes = 0;
    list->command_count = 0;
    list->bound = VK_NULL_HANDLE;
    m_free_lists.push_back(std::move(list));
}

// --- progress

void VulkanDevice::check_result(VkResult result, const char* what)
{
    if (result == VK_ERROR_DEVICE_LOST && m_lost.empty())
        m_lost = cat("the Vulkan device ", m_info.adapter_name, " was lost: a kernel faulted or ran too long",
                     m_last_label.empty() ? "" : " (the last one launched was '", m_last_label,
                     m_last_label.empty() ? "" : "')", "; close this device and create another");
    if (!m_lost.empty() && result < 0)
        fail_runtime(m_lost);
    vk_check(result, what);
}

uint64_t VulkanDevice::completed_id()
{
    if (m_completed < m_submitted) {
        uint64_t value = 0;
        check_result(m_vk.GetSemaphoreCounterValue(m_device, m_timeline, &value), "vkGetSemaphoreCounterValue");
        m_completed = std::max(m_completed, std::min(value, m_submitted));
    }
    return m_completed;
}

bool VulkanDevice::is_idle() { return !m_open && completed_id() == m_submitted; }

void VulkanDevice::wait_semaphore(uint64_t submit_id)
{
    VkSemaphoreWaitInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO};
    info.semaphoreCount = 1;
    info.pSemaphores = &m_timeline;
    info.pValues = &submit_id;
    VkResult code = VK_TIMEOUT;
    while ((code = m_vk.WaitSemaphores(m_device, &info, 50'000'000)) == VK_TIMEOUT)
        poll_interrupt();
    check_result(code, "vkWaitSemaphores");
}

void VulkanDevice::wait_all()
{
    uint64_t target;
    {
        std::lock_guard lock(m_mutex);
        flush();
        target = m_submitted;
        if (completed_id() >= target)
            return;
    }
    wait_semaphore(target);
    std::lock_guard lock(m_mutex);
    collect(false);
}

uint64_t VulkanDevice::last_submit_id()
{
    std::lock_guard lock(m_mutex);
    return m_submitted + (m_open ? 1 : 0);
}

bool VulkanDevice::is_finished(uint64_t submit_id)
{
    std::lock_guard lock(m_mutex);
    if (!m_device)
        return true;
    require_open("is_finished");
    if (submit_id > m_submitted)
        flush();
    if (m_completed < submit_id)
        collect(false);
    return m_completed >= std::min(submit_id, m_submitted);
}

bool VulkanDevice::wait(uint64_t submit_id, uint64_t timeout_ns)
{
    {
        std::lock_guard lock(m_mutex);
        require_open("wait");
        if (submit_id > m_submitted)
            flush();
        submit_id = std::min(submit_id, m_submitted);
        if (completed_id() >= submit_id) {
            collect(false);
            return true;
        }
    }
    VkSemaphoreWaitInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO};
    info.semaphoreCount = 1;
    info.pSemaphores = &m_timeline;
    info.pValues = &submit_id;
    const VkResult code = m_vk.WaitSemaphores(m_device, &info, timeout_ns);
    std::lock_guard lock(m_mutex);
    check_result(code, "vkWaitSemaphores");
    if (code == VK_TIMEOUT)
        return false;
    collect(false);
    return true;
}

// --- release

void VulkanDevice::discard(VkObjectType type, uint64_t handle, const Allocation& allocation) noexcept
{
    std::lock_guard lock(m_mutex);
    if (!m_device || (!handle && !allocation.memory))
        return;
    Garbage garbage{m_submitted + (m_open ? 1 : 0), type, handle, allocation};
    uint64_t completed = m_completed;
    if (completed < garbage.id && !m_open && m_lost.empty()) {
        uint64_t value = 0;
        if (m_vk.GetSemaphoreCounterValue(m_device, m_timeline, &value) >= 0)
            completed = value;
    }
    if (garbage.id <= completed) {
        destroy_now(garbage);
        return;
    }
    m_garbage_bytes += allocation.size;
    m_garbage.push_back(garbage);
}

void VulkanDevice::destroy_now(const Garbage& garbage) noexcept
{
    switch (garbage.type) {
#define X(type, name)                                                                                                  \
    case VK_OBJECT_TYPE_##type:                                                                                        \
        m_vk.Destroy##name(m_device, Vk##name(garbage.handle), nullptr);                                               \
        break;
        X(BUFFER, Buffer) X(BUFFER_VIEW, BufferView) X(IMAGE, Image) X(IMAGE_VIEW, ImageView) X(SAMPLER, Sampler)
        X(SEMAPHORE, Semaphore) X(QUERY_POOL, QueryPool) X(PIPELINE, Pipeline) X(PIPELINE_LAYOUT, PipelineLayout)
        X(DESCRIPTOR_SET_LAYOUT, DescriptorSetLayout) X(DESCRIPTOR_UPDATE_TEMPLATE, DescriptorUpdateTemplate)
#undef X
    default:
        break;
    }
    m_memory.free(garbage.allocation);
}

void VulkanDevice::collect(bool block)
{
    if (block) {
        if (!m_in_submit) // half a submission must not run, nor run ahead of its fences
            flush();
        wait_semaphore(m_submitted);
    }
    const uint64_t completed = completed_id();
    while (!m_pending.empty() && m_pending.front()->id <= completed) {
        std::unique_ptr<CommandList> list = std::move(m_pending.front());
        m_pending.pop_front();
        recycle(std::move(list));
    }
    while (!m_garbage.empty() && m_garbage.front().id <= completed) {
        const Garbage garbage = m_garbage.front();
        m_garbage.pop_front();
        m_garbage_bytes -= garbage.allocation.size;
        destroy_now(garbage);
    }
}

void VulkanDevice::throttle_garbage()
{
    if (m_garbage.empty())
        return;
    if (m_open && m_garbage_bytes > open_garbage_bytes)
        flush();
    else
        collect(false);
    while (m_garbage_bytes > max_garbage_bytes && !m_garbage.empty()) {
        if (m_garbage.front().id > m_submitted)
            flush();
        wait_semaphore(m_garbage.front().id);
        collect(false);
    }
}

// --- submission

void VulkanDevice::launch(const LaunchDesc& desc)
{
    const bool on_stream = desc.stream.type != NativeHandleType::undefined;
    std::lock_guard lock(m_mutex);
    require_open("launch");
    if (on_stream)
        sync_to_stream(desc.stream);
    record_launch(*static_cast<VulkanKernel*>(desc.kernel), desc.group_count,
                  {desc.arguments.scopes, desc.arguments.slots});
    if (on_stream)
        return sync_stream_to(desc.stream);
    // An idle GPU starts at once; behind a busy one launches gather, which costs fewer submissions.
    if (m_open && (m_open->command_count >= max_list_commands || completed_id() == m_submitted))
        flush();
}

uint64_t VulkanDevice::submit(const SubmitDesc& desc)
{
    const bool on_stream = desc.stream.type != NativeHandleType::undefined;
    std::unique_lock lock(m_mutex);
    require_open("submit");
    if (on_stream)
        sync_to_stream(desc.stream);
    flush(); // what came before does not wait for this submission's fences
    const SubmitDesc* waits = desc.wait_fences.empty() ? nullptr : &desc;
    open_list();
    m_in_submit = true;
    try {
        for (CommandBuffer* buffer : desc.command_buffers)
            for (const Command& command : buffer->commands()) {
                if (auto* callback = std::get_if<command::Callback>(&command)) {
                    flush(std::exchange(waits, nullptr));
                    run_callback(*callback, lock);
                } else
                    std::visit([&](const auto& c) { record(c); }, command);
            }
    } catch (...) {
        m_in_submit = false;
        abandon_open_list(); // a submission runs whole or not at all (up to a callback)
        throw;
    }
    m_in_submit = false;
    open_list();
    flush(waits, &desc);
    const uint64_t id = m_submitted;
    if (on_stream)
        sync_stream_to(desc.stream);
    return id;
}

void VulkanDevice::run_callback(const command::Callback& command, std::unique_lock<PoliteMutex>& lock)
{
    // The function may need other locks (Python's), whose owners may be waiting for ours: it records into a list that
    // nobody else knows, with our lock released.
    std::unique_ptr<CommandList> list = create_list();
    begin_list(*list);
    barrier(list->commands);
    list->command_count = 1;
    m_in_submit = false;
    lock.unlock();
    try {
        command.function({NativeHandleType::VkCommandBuffer, uint64_t(list->commands)});
    } catch (...) {
        lock.lock();
        if (m_device)
            recycle(std::move(list));
        throw;
    }
    lock.lock();
    require_open("submit");
    flush();
    m_open = std::move(list);
    m_needs_barrier = m_in_submit = true;
}

} // namespace spy
