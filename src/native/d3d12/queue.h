#pragma once
// Command lists, submission, waiting, and what is freed when work is done.
//
// Work is recorded into one open command list, which is submitted ("flushed") when somebody waits or reads, when the
// GPU has nothing to do, or when the list is full. A fence carries the submit ids. Whatever is released while work is
// in flight goes to a queue that is emptied as ids pass, so commands hold no references.
#include "d3d12/barriers.h"
#include "d3d12/lists.h"
#include "d3d12/timeline.h"

#include "core/interrupt.h"
#include "device/command.h"

#include <deque>

namespace spy {

class D3D12Recorder;

/// What goes once `id` has passed.
struct D3D12Garbage {
    uint64_t id = 0;
    D3D12Block* block = nullptr;
    Com<IUnknown> object;
};

class D3D12Queue {
public:
    D3D12Queue(D3D12Context& context, D3D12Memory& memory, D3D12Uploads& uploads, D3D12Descriptors& descriptors)
        : timeline(context),
          m_context(context),
          m_memory(memory),
          m_descriptors(descriptors),
          m_lists(context, uploads, descriptors)
    {
    }
    void close() noexcept;
    /// Guards all of the device's state, its queue and its memory.
    PoliteMutex& mutex() { return m_mutex; }

    // Recording; the caller holds the lock.
    D3D12List& open_list();
    D3D12List* current_list() { return m_open.get(); }
    ID3D12GraphicsCommandList* begin_command();

    // Submission; the caller holds the lock.
    /// Submits the open list. With fences to wait for or to signal, an empty one, too.
    void flush(const SubmitDesc* signals = nullptr);
    void flush_if_due(); ///< an idle GPU starts at once; behind a busy one launches gather
    uint64_t submit(Device& device, const SubmitDesc& desc, D3D12Recorder& recorder,
                    std::unique_lock<PoliteMutex>& lock);
    uint64_t newest_id() const { return timeline.submitted() + (m_open ? 1 : 0); }
    /// Flushes, and waits until the oldest list in flight is done: what it holds is free then.
    void wait_for_oldest();

    // Waiting
    bool is_finished(uint64_t submit_id);
    bool wait(uint64_t submit_id, uint64_t timeout_ns);
    void wait_all(); ///< as long as it takes

    // What is released
    void discard(D3D12Block* block) noexcept;
    template <typename T>
    void discard(Com<T>& object) noexcept
    {
        if (object)
            discard({0, nullptr, Com<IUnknown>(object.detach())});
    }
    /// A texture that goes: the open list must not remember it.
    void forget(const D3D12Texture* texture) noexcept;
    /// Frees what finished work has used.
    void collect();
    /// Keeps released memory that is still in use by the GPU within bounds.
    void throttle_garbage();

    D3D12Timeline timeline;
    D3D12Barriers barriers{*this};

private:
    void run_callback(const command::Callback& command, std::unique_lock<PoliteMutex>& lock);
    void abandon_open_list() noexcept;
    void discard(D3D12Garbage garbage) noexcept;
    void destroy_now(D3D12Garbage& garbage) noexcept;

    D3D12Context& m_context;
    D3D12Memory& m_memory;
    D3D12Descriptors& m_descriptors;
    PoliteMutex m_mutex;
    std::unique_ptr<D3D12List> m_open;
    std::deque<std::unique_ptr<D3D12List>> m_pending;
    D3D12Lists m_lists;
    std::deque<D3D12Garbage> m_garbage;
    uint64_t m_garbage_bytes = 0;
    const SubmitDesc* m_waits = nullptr; ///< whose fences the next list waits for
};

} // namespace spy
