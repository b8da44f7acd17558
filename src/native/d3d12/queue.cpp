// Command lists, submission, waiting, and what is freed when work is done.
#include "d3d12/queue.h"

#include "d3d12/recorder.h"

#include "core/error.h"

#include <algorithm>

namespace spy {

namespace {

constexpr uint64_t max_garbage_bytes = 1ull << 30;
constexpr uint64_t open_garbage_bytes = 64ull << 20; ///< released memory that only a flush can free
constexpr uint32_t max_list_commands = 32;           ///< launches gathered while the GPU is busy
constexpr size_t max_pending_lists = 64;

void transition(ID3D12GraphicsCommandList* commands, ID3D12Resource* resource, D3D12_RESOURCE_STATES before,
                D3D12_RESOURCE_STATES after)
{
    D3D12_RESOURCE_BARRIER barrier{};
    barrier.Type = D3D12_RESOURCE_BARRIER_TYPE_TRANSITION;
    barrier.Transition.pResource = resource;
    barrier.Transition.Subresource = D3D12_RESOURCE_BARRIER_ALL_SUBRESOURCES;
    barrier.Transition.StateBefore = before;
    barrier.Transition.StateAfter = after;
    commands->ResourceBarrier(1, &barrier);
}

bool is_copy(D3D12_RESOURCE_STATES state)
{
    return state == D3D12_RESOURCE_STATE_COPY_SOURCE || state == D3D12_RESOURCE_STATE_COPY_DEST;
}

} // namespace

// --- life

void D3D12Queue::open()
{
    d3d12_check(m_context.device->CreateFence(0, D3D12_FENCE_FLAG_NONE, iid_of<ID3D12Fence>(), m_fence.put_void()),
                "CreateFence");
}

void D3D12Queue::close() noexcept
{
    abandon_open_list();
    m_completed = ~0ull; // idle, or lost: nothing will touch these again
    while (!m_pending.empty()) {
        recycle(std::move(m_pending.front()));
        m_pending.pop_front();
    }
    for (Garbage& garbage : m_garbage)
        destroy_now(garbage);
    m_garbage.clear();
    m_free_lists.clear();
    m_fence.reset();
}

void D3D12Queue::require_open(const char* what) const
{
    if (!m_context.is_open())
        fail_runtime(what, ": device is closed");
    if (!m_lost.empty())
        fail_runtime(m_lost);
}

// --- lists

std::unique_ptr<CommandList> D3D12Queue::create_list()
{
    if (!m_free_lists.empty()) {
        auto list = std::move(m_free_lists.back());
        m_free_lists.pop_back();
        return list;
    }
    auto list = std::make_unique<CommandList>();
    ID3D12Device* device = m_context.device.get();
    d3d12_check(device->CreateCommandAllocator(D3D12_COMMAND_LIST_TYPE_DIRECT, iid_of<ID3D12CommandAllocator>(),
                                               list->allocator.put_void()),
                "CreateCommandAllocator");
    d3d12_check(device->CreateCommandList(0, D3D12_COMMAND_LIST_TYPE_DIRECT, list->allocator.get(), nullptr,
                                          iid_of<ID3D12GraphicsCommandList>(), list->commands.put_void()),
                "CreateCommandList");
    d3d12_check(list->commands->Close(), "ID3D12GraphicsCommandList::Close");
    return list;
}

void D3D12Queue::begin_list(CommandList& list)
{
    d3d12_check(list.allocator->Reset(), "ID3D12CommandAllocator::Reset");
    d3d12_check(list.commands->Reset(list.allocator.get(), nullptr), "ID3D12GraphicsCommandList::Reset");
    list.serial = ++m_serial;
    list.bound = nullptr;
    ID3D12DescriptorHeap* heaps[] = {m_descriptors.resources.heap.get(), m_descriptors.samplers.heap.get()};
    list.commands->SetDescriptorHeaps(2, heaps);
    m_needs_barrier = true; // after what lists before have written
}

CommandList& D3D12Queue::open_list()
{
    require_open("command");
    if (!m_open) {
        std::unique_ptr<CommandList> list = create_list();
        begin_list(*list);
        m_open = std::move(list);
    }
    return *m_open;
}

ID3D12GraphicsCommandList* D3D12Queue::begin_command()
{
    CommandList& list = open_list();
    ++list.command_count;
    return list.commands.get();
}

void D3D12Queue::use(D3D12Block& block, D3D12_RESOURCE_STATES state)
{
    CommandList& list = open_list();
    if (block.list != list.serial) {
        block.list = list.serial;
        block.state = D3D12_RESOURCE_STATE_COMMON;
        if (m_needs_barrier && is_copy(state)) // a kernel may have written it by address
            global_barrier();
    }
    const bool again = block.state == state && state == D3D12_RESOURCE_STATE_COPY_DEST;
    if (again) { // copies to one buffer run in order only with a barrier between them
        transition(list.commands.get(), block.resource.get(), state, D3D12_RESOURCE_STATE_COMMON);
        transition(list.commands.get(), block.resource.get(), D3D12_RESOURCE_STATE_COMMON, state);
    } else if (block.state == D3D12_RESOURCE_STATE_COMMON) {
        // promoted to what the first use needs
    } else if (block.state != state) {
        transition(list.commands.get(), block.resource.get(), block.state, state);
    }
    if (is_copy(state) && !is_copy(block.state))
        list.copied.push_back(&block);
    block.state = state;
}

void D3D12Queue::use(D3D12Texture& texture, D3D12_RESOURCE_STATES state)
{
    CommandList& list = open_list();
    const bool again = texture.state == state && state == D3D12_RESOURCE_STATE_COPY_DEST;
    if (texture.state == state && !again)
        return;
    list.textures.emplace_back(&texture, texture.state);
    if (again) {
        transition(list.commands.get(), texture.resource(), state, D3D12_RESOURCE_STATE_COMMON);
        transition(list.commands.get(), texture.resource(), D3D12_RESOURCE_STATE_COMMON, state);
    } else {
        transition(list.commands.get(), texture.resource(), texture.state, state);
    }
    texture.state = state;
}

void D3D12Queue::prepare_dispatch()
{
    CommandList& list = open_list();
    for (D3D12Block* block : list.copied)
        if (is_copy(block->state)) {
            transition(list.commands.get(), block->resource.get(), block->state, D3D12_RESOURCE_STATE_UNORDERED_ACCESS);
            block->state = D3D12_RESOURCE_STATE_UNORDERED_ACCESS;
        }
    list.copied.clear();
    if (m_needs_barrier)
        global_barrier();
}

void D3D12Queue::global_barrier()
{
    D3D12_RESOURCE_BARRIER barrier{};
    barrier.Type = D3D12_RESOURCE_BARRIER_TYPE_UAV; // of no resource: of all
    open_list().commands->ResourceBarrier(1, &barrier);
    m_needs_barrier = false;
}

void D3D12Queue::flush(const SubmitDesc* waits, const SubmitDesc* signals)
{
    if (!m_open && !(waits && !waits->wait_fences.empty()) && !(signals && !signals->signal_fences.empty()))
        return;
    CommandList& list = open_list();
    ID3D12CommandQueue* queue = m_context.queue.get();
    HRESULT result = list.commands->Close();
    if (FAILED(result))
        abandon_open_list();
    check_result(result, "ID3D12GraphicsCommandList::Close");
    for (size_t i = 0; waits && i < waits->wait_fences.size(); ++i)
        check_result(
            queue->Wait(static_cast<D3D12Fence*>(waits->wait_fences[i].get())->handle(), waits->wait_values[i]),
            "ID3D12CommandQueue::Wait");
    ID3D12CommandList* lists[] = {list.commands.get()};
    queue->ExecuteCommandLists(1, lists);
    m_open->id = ++m_submitted;
    m_open->resource_head = m_descriptors.resources.head;
    m_open->sampler_head = m_descriptors.samplers.head;
    m_pending.push_back(std::move(m_open));
    check_result(queue->Signal(m_fence.get(), m_submitted), "ID3D12CommandQueue::Signal");
    for (size_t i = 0; signals && i < signals->signal_fences.size(); ++i)
        check_result(queue->Signal(static_cast<D3D12Fence*>(signals->signal_fences[i].get())->handle(),
                                   signals->signal_values[i]),
                     "ID3D12CommandQueue::Signal");
    if (m_pending.size() > max_pending_lists)
        wait_id(m_pending.front()->id);
    collect();
}

void D3D12Queue::flush_if_due()
{
    if (m_open && (m_open->command_count >= max_list_commands || completed_id() == m_submitted))
        flush();
}

void D3D12Queue::abandon_open_list() noexcept
{
    if (!m_open)
        return;
    m_open->commands->Close(); // whatever it says: the list is reset before it is used again
    for (auto it = m_open->textures.rbegin(); it != m_open->textures.rend(); ++it)
        it->first->state = it->second;
    recycle(std::move(m_open));
}

void D3D12Queue::recycle(std::unique_ptr<CommandList> list) noexcept
{
    m_uploads.note_done(list->staged_bytes);
    for (UploadPage* page : list->pages)
        m_uploads.recycle_page(page);
    list->pages.clear();
    list->copied.clear();
    list->textures.clear();
    list->id = list->staged_bytes = 0;
    list->command_count = 0;
    m_free_lists.push_back(std::move(list));
}

// --- progress

void D3D12Queue::fail_lost(HRESULT reason)
{
    if (m_lost.empty())
        m_lost = cat("the Direct3D 12 device ", m_context.name(), " was lost (", hresult_text(reason),
                     "): a kernel faulted or ran too long", m_last_label.empty() ? "" : " (the last one launched was '",
                     m_last_label, m_last_label.empty() ? "" : "')", "; close this device and create another");
    fail_runtime(m_lost);
}

void D3D12Queue::check_result(HRESULT result, const char* what)
{
    if (SUCCEEDED(result))
        return;
    if (const HRESULT reason = m_context.device->GetDeviceRemovedReason(); FAILED(reason))
        fail_lost(reason);
    d3d12_check(result, what);
}

uint64_t D3D12Queue::completed_id()
{
    if (m_completed < m_submitted) {
        const uint64_t value = m_fence->GetCompletedValue();
        if (value == ~0ull)
            fail_lost(m_context.device->GetDeviceRemovedReason());
        m_completed = std::max(m_completed, std::min(value, m_submitted));
    }
    return m_completed;
}

void D3D12Queue::wait_id(uint64_t submit_id)
{
    for (PatientWait patience; completed_id() < std::min(submit_id, m_submitted);)
        patience.pause();
}

void D3D12Queue::wait_for_oldest()
{
    flush();
    if (m_pending.empty())
        fail_runtime("a launch needs more descriptors or staging memory than there is");
    wait_id(m_pending.front()->id);
    collect();
}

void D3D12Queue::wait_all()
{
    uint64_t target;
    {
        std::lock_guard lock(m_mutex);
        flush();
        target = m_submitted;
    }
    while (!wait(target, 50'000'000))
        poll_interrupt();
}

bool D3D12Queue::is_finished(uint64_t submit_id)
{
    std::lock_guard lock(m_mutex);
    if (!m_context.is_open())
        return true;
    require_open("is_finished");
    if (submit_id > m_submitted)
        flush();
    if (m_completed < submit_id)
        collect();
    return m_completed >= std::min(submit_id, m_submitted);
}

bool D3D12Queue::wait(uint64_t submit_id, uint64_t timeout_ns)
{
    for (PatientWait patience;;) {
        {
            std::lock_guard lock(m_mutex);
            require_open("wait");
            if (submit_id > m_submitted)
                flush();
            if (completed_id() >= std::min(submit_id, m_submitted)) {
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
    if (!block)
        return;
    std::lock_guard lock(m_mutex);
    m_garbage_bytes += block->size;
    add_garbage({0, block, {}});
}

void D3D12Queue::forget(const D3D12Texture* texture) noexcept
{
    std::lock_guard lock(m_mutex);
    if (m_open)
        std::erase_if(m_open->textures, [&](const auto& entry) { return entry.first == texture; });
}

void D3D12Queue::discard_object(Com<IUnknown> object) noexcept
{
    if (!object)
        return;
    std::lock_guard lock(m_mutex);
    add_garbage({0, nullptr, std::move(object)});
}

void D3D12Queue::add_garbage(Garbage garbage) noexcept
{
    garbage.id = m_submitted + (m_open ? 1 : 0);
    uint64_t completed = m_completed;
    if (completed < garbage.id && !m_open && m_fence && m_lost.empty())
        completed = m_fence->GetCompletedValue();
    if (garbage.id <= completed)
        destroy_now(garbage);
    else
        m_garbage.push_back(std::move(garbage));
}

void D3D12Queue::destroy_now(Garbage& garbage) noexcept
{
    if (garbage.block) {
        m_garbage_bytes -= garbage.block->size;
        m_memory.recycle(garbage.block);
    }
    garbage = {};
}

void D3D12Queue::collect()
{
    const uint64_t completed = completed_id();
    while (!m_pending.empty() && m_pending.front()->id <= completed) {
        std::unique_ptr<CommandList> list = std::move(m_pending.front());
        m_pending.pop_front();
        m_descriptors.resources.tail = list->resource_head;
        m_descriptors.samplers.tail = list->sampler_head;
        recycle(std::move(list));
    }
    while (!m_garbage.empty() && m_garbage.front().id <= completed) {
        Garbage garbage = std::move(m_garbage.front());
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
        if (m_garbage.front().id > m_submitted)
            flush();
        wait_id(m_garbage.front().id);
        collect();
    }
}

// --- submission

uint64_t D3D12Queue::submit(const SubmitDesc& desc, D3D12Recorder& recorder, std::unique_lock<PoliteMutex>& lock)
{
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
                    std::visit([&](const auto& c) { recorder.record(c); }, command);
            }
    } catch (...) {
        m_in_submit = false;
        abandon_open_list(); // a submission runs whole or not at all (up to a callback)
        throw;
    }
    m_in_submit = false;
    open_list();
    flush(waits, &desc);
    return m_submitted;
}

void D3D12Queue::run_callback(const command::Callback& command, std::unique_lock<PoliteMutex>& lock)
{
    // The function may need other locks (Python's), whose owners may be waiting for ours: it records into a list that
    // nobody else knows, with our lock released.
    std::unique_ptr<CommandList> list = create_list();
    begin_list(*list);
    list->command_count = 1;
    m_in_submit = false;
    lock.unlock();
    try {
        command.function({NativeHandleType::D3D12GraphicsCommandList, uint64_t(list->commands.get())});
    } catch (...) {
        lock.lock();
        list->commands->Close();
        if (m_context.is_open())
            recycle(std::move(list));
        throw;
    }
    lock.lock();
    require_open("submit");
    flush();
    ID3D12DescriptorHeap* heaps[] = {m_descriptors.resources.heap.get(), m_descriptors.samplers.heap.get()};
    list->commands->SetDescriptorHeaps(2, heaps); // the function may have set others
    list->serial = ++m_serial;
    m_open = std::move(list);
    m_needs_barrier = m_in_submit = true;
}

} // namespace spy
