// Command lists, submission, waiting, and what is freed when work is done.
#include "d3d12/queue.h"

#include "d3d12/recorder.h"

#include "core/error.h"
#include "device/profile.h"

#include <algorithm>

namespace spy {

namespace {

constexpr uint64_t max_garbage_bytes = 1ull << 30;
constexpr uint64_t open_garbage_bytes = 64ull << 20; ///< released memory that only a flush can free
constexpr uint32_t max_list_commands = 32;           ///< launches gathered while the GPU is busy
constexpr size_t max_pending_lists = 64;

} // namespace

// --- life

void D3D12Queue::close() noexcept
{
    abandon_open_list();
    while (!m_pending.empty()) { // idle, or lost: nothing will touch these again
        m_lists.recycle(std::move(m_pending.front()));
        m_pending.pop_front();
    }
    for (D3D12Garbage& garbage : m_garbage)
        destroy_now(garbage);
    m_garbage.clear();
    m_lists.close();
    timeline.close();
}

// --- lists

D3D12List& D3D12Queue::open_list()
{
    timeline.require_open("command");
    if (!m_open) {
        m_open = m_lists.begin();
        barriers.note_writes(); // of lists before
    }
    return *m_open;
}

ID3D12GraphicsCommandList* D3D12Queue::begin_command()
{
    D3D12List& list = open_list();
    ++list.command_count;
    return list.commands.get();
}

void D3D12Queue::flush(const SubmitDesc* signals)
{
    if (!m_open && !m_waits && !(signals && !signals->signal_fences.empty()))
        return;
    D3D12List& list = open_list();
    ID3D12CommandQueue* queue = m_context.queue.get();
    HRESULT result = list.commands->Close();
    if (FAILED(result))
        abandon_open_list();
    timeline.check(result, "ID3D12GraphicsCommandList::Close");
    const SubmitDesc* waits = std::exchange(m_waits, nullptr);
    for (size_t i = 0; waits && i < waits->wait_fences.size(); ++i)
        timeline.check(
            queue->Wait(static_cast<D3D12Fence*>(waits->wait_fences[i].get())->handle(), waits->wait_values[i]),
            "ID3D12CommandQueue::Wait");
    ID3D12CommandList* lists[] = {list.commands.get()};
    queue->ExecuteCommandLists(1, lists);
    m_open->id = timeline.advance();
    m_open->resource_head = m_descriptors.resources.head;
    m_open->sampler_head = m_descriptors.samplers.head;
    m_pending.push_back(std::move(m_open));
    timeline.check(queue->Signal(timeline.fence(), timeline.submitted()), "ID3D12CommandQueue::Signal");
    for (size_t i = 0; signals && i < signals->signal_fences.size(); ++i)
        timeline.check(queue->Signal(static_cast<D3D12Fence*>(signals->signal_fences[i].get())->handle(),
                                     signals->signal_values[i]),
                       "ID3D12CommandQueue::Signal");
    if (m_pending.size() > max_pending_lists)
        timeline.wait(m_pending.front()->id);
    collect();
}

void D3D12Queue::flush_if_due()
{
    if (m_open && (m_open->command_count >= max_list_commands || timeline.completed() == timeline.submitted()))
        flush();
}

void D3D12Queue::abandon_open_list() noexcept
{
    if (m_open)
        m_lists.abandon(std::move(m_open));
}

// --- progress

void D3D12Queue::wait_for_oldest()
{
    flush();
    if (m_pending.empty())
        fail_runtime("a launch needs more descriptors or staging memory than there is; bind fewer or smaller "
                     "resources, or wait for earlier work with device.wait()");
    timeline.wait(m_pending.front()->id);
    collect();
}

void D3D12Queue::wait_all()
{
    uint64_t target;
    {
        std::lock_guard lock(m_mutex);
        flush();
        target = timeline.submitted();
    }
    while (!wait(target, 50'000'000))
        poll_interrupt();
}

bool D3D12Queue::is_finished(uint64_t submit_id)
{
    std::lock_guard lock(m_mutex);
    if (!m_context.is_open())
        return true;
    timeline.require_open("is_finished");
    if (submit_id > timeline.submitted())
        flush();
    if (timeline.known_completed() < submit_id)
        collect();
    return timeline.known_completed() >= std::min(submit_id, timeline.submitted());
}

bool D3D12Queue::wait(uint64_t submit_id, uint64_t timeout_ns)
{
    for (PatientWait patience;;) {
        {
            std::lock_guard lock(m_mutex);
            timeline.require_open("wait");
            if (submit_id > timeline.submitted())
                flush();
            if (timeline.completed() >= std::min(submit_id, timeline.submitted())) {
                collect();
                return true;
            }
        }
        const uint64_t spent = patience.spent_ns();
        if (spent >= timeout_ns)
            return false;
        patience.pause(timeout_ns - spent, false);
    }
}

// --- release

void D3D12Queue::discard(D3D12Block* block) noexcept
{
    if (block)
        discard({0, block, {}});
}

void D3D12Queue::forget(const D3D12Texture* texture) noexcept
{
    std::lock_guard lock(m_mutex);
    if (m_open)
        std::erase_if(m_open->textures, [&](const auto& entry) { return entry.first == texture; });
}

void D3D12Queue::discard(D3D12Garbage garbage) noexcept
{
    std::lock_guard lock(m_mutex);
    if (garbage.block)
        m_garbage_bytes += garbage.block->size;
    garbage.id = newest_id();
    uint64_t completed = timeline.known_completed();
    if (completed < garbage.id && !m_open)
        completed = timeline.completed_or_known();
    if (garbage.id <= completed)
        destroy_now(garbage);
    else
        m_garbage.push_back(std::move(garbage));
}

void D3D12Queue::destroy_now(D3D12Garbage& garbage) noexcept
{
    if (garbage.block) {
        m_garbage_bytes -= garbage.block->size;
        m_memory.recycle(garbage.block);
    }
    garbage = {};
}

void D3D12Queue::collect()
{
    const uint64_t completed = timeline.completed();
    while (!m_pending.empty() && m_pending.front()->id <= completed) {
        std::unique_ptr<D3D12List> list = std::move(m_pending.front());
        m_pending.pop_front();
        m_descriptors.resources.tail = list->resource_head;
        m_descriptors.samplers.tail = list->sampler_head;
        m_lists.recycle(std::move(list));
    }
    while (!m_garbage.empty() && m_garbage.front().id <= completed) {
        D3D12Garbage garbage = std::move(m_garbage.front());
        m_garbage.pop_front();
        destroy_now(garbage);
    }
}

void D3D12Queue::throttle_garbage()
{
    if (m_garbage.empty())
        return;
    if (m_open && m_garbage_bytes > open_garbage_bytes)
        flush();
    else
        collect();
    while (m_garbage_bytes > max_garbage_bytes && !m_garbage.empty()) {
        if (m_garbage.front().id > timeline.submitted())
            flush();
        timeline.wait(m_garbage.front().id);
        collect();
    }
}

// --- submission

uint64_t D3D12Queue::submit(Device& device, const SubmitDesc& desc, D3D12Recorder& recorder,
                            std::unique_lock<PoliteMutex>& lock)
{
    flush(); // what came before does not wait for this submission's fences
    const auto count = [&] {
        Profiler* const profiler = device.profiler();
        return profiler ? profiler->count() : 0;
    };
    size_t first = count(); // what is measured from here on runs only if the list is submitted
    open_list();
    m_waits = desc.wait_fences.empty() ? nullptr : &desc;
    try {
        for (CommandBuffer* buffer : desc.command_buffers)
            for (const Command& command : buffer->commands()) {
                if (auto* callback = std::get_if<command::Callback>(&command)) {
                    flush();
                    first = count();
                    run_callback(*callback, lock);
                    first = count();
                } else
                    recorder.record_timed(device, command);
            }
    } catch (...) {
        m_waits = nullptr;
        if (Profiler* const profiler = device.profiler())
            profiler->drop_from(first);
        abandon_open_list(); // a submission runs whole or not at all (up to a callback)
        throw;
    }
    open_list();
    flush(&desc);
    return timeline.submitted();
}

void D3D12Queue::run_callback(const command::Callback& command, std::unique_lock<PoliteMutex>& lock)
{
    // The function may need other locks (Python's), whose owners may be waiting for ours: it records into a list that
    // nobody else knows, with our lock released.
    std::unique_ptr<D3D12List> list = m_lists.begin();
    list->command_count = 1;
    lock.unlock();
    try {
        command.function({NativeHandleType::D3D12GraphicsCommandList, uint64_t(list->commands.get())});
    } catch (...) {
        lock.lock();
        if (m_context.is_open())
            m_lists.abandon(std::move(list));
        throw;
    }
    lock.lock();
    timeline.require_open("submit");
    flush();
    m_lists.restore(*list); // the function may have set anything
    m_open = std::move(list);
    barriers.note_writes();
}

} // namespace spy
