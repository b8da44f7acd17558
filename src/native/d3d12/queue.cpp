// Command lists, submission, waiting, and what is freed when work is done: this backend's part of
// device/list_queue.h.
#include "d3d12/queue.h"

#include "d3d12/recorder.h"

#include "core/error.h"

#include <algorithm>

namespace spy {

// --- life

void D3D12Queue::close() noexcept
{
    abandon_open_list();
    while (!m_pending.empty()) { // idle, or lost: nothing will touch these again
        m_lists.recycle(std::move(m_pending.front()));
        m_pending.pop_front();
    }
    destroy_garbage();
    m_lists.close();
    timeline.close();
}

// --- lists

D3D12List& D3D12Queue::open_list()
{
    timeline.require_open("command");
    if (!m_open) {
        m_open = m_lists.begin();
        barriers.begin_list();
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
    const SubmitDesc* waits = std::exchange(m_waits, nullptr);
    D3D12List& list = open_list();
    ID3D12CommandQueue* queue = m_context.queue.get();
    HRESULT result = list.commands->Close();
    if (FAILED(result))
        abandon_open_list();
    timeline.check(result, "ID3D12GraphicsCommandList::Close");
    for (size_t i = 0; waits && i < waits->wait_fences.size(); ++i)
        timeline.check(
            queue->Wait(static_cast<D3D12Fence*>(waits->wait_fences[i].get())->handle(), waits->wait_values[i]),
            "ID3D12CommandQueue::Wait");
    ID3D12CommandList* lists[] = {list.commands.get()};
    queue->ExecuteCommandLists(1, lists);
    list.resource_head = m_descriptors.resources.head;
    list.sampler_head = m_descriptors.samplers.head;
    note_submitted();
    timeline.check(queue->Signal(timeline.fence(), timeline.submitted()), "ID3D12CommandQueue::Signal");
    for (size_t i = 0; signals && i < signals->signal_fences.size(); ++i)
        timeline.check(queue->Signal(static_cast<D3D12Fence*>(signals->signal_fences[i].get())->handle(),
                                     signals->signal_values[i]),
                       "ID3D12CommandQueue::Signal");
    limit_pending();
    collect();
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
        ListQueue::discard({0, block, {}});
}

void D3D12Queue::forget(const D3D12Texture* texture) noexcept
{
    std::lock_guard lock(m_mutex);
    if (m_open)
        std::erase_if(m_open->textures, [&](const auto& entry) { return entry.first == texture; });
}

void D3D12Queue::destroy(D3D12Garbage& garbage) noexcept
{
    if (garbage.block)
        m_memory.recycle(garbage.block);
    garbage = {};
}

// --- lists that come back

void D3D12Queue::recycle(std::unique_ptr<D3D12List> list)
{
    m_descriptors.resources.tail = list->resource_head;
    m_descriptors.samplers.tail = list->sampler_head;
    m_lists.recycle(std::move(list));
}

void D3D12Queue::adopt_foreign_list()
{
    m_lists.restore(*m_open);
    barriers.note_writes();
}

} // namespace spy
