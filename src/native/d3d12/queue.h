#pragma once
// Command lists, submission, waiting, and what is freed when work is done.
//
// Work is recorded into one open command list, which is submitted ("flushed") when somebody waits or reads, when the
// GPU has nothing to do, or when the list is full. A fence carries the submit ids. Whatever is released while work is
// in flight goes to a queue that is emptied as ids pass, so commands hold no references.
#include "d3d12/descriptors.h"
#include "d3d12/memory.h"
#include "d3d12/upload.h"

#include "core/interrupt.h"
#include "device/command.h"

#include <deque>

namespace spy {

class D3D12Recorder;

struct CommandList {
    Com<ID3D12CommandAllocator> allocator;
    Com<ID3D12GraphicsCommandList> commands;
    std::vector<UploadPage*> pages;
    uint64_t id = 0, serial = 0;
    uint32_t command_count = 0;
    uint64_t staged_bytes = 0;
    uint64_t resource_head = 0, sampler_head = 0; ///< of the descriptor rings when it was submitted
    ID3D12PipelineState* bound = nullptr;
    std::vector<D3D12Block*> copied;                                       ///< in a state that kernels cannot use
    std::vector<std::pair<D3D12Texture*, D3D12_RESOURCE_STATES>> textures; ///< with their states before the list
};

class D3D12Queue {
public:
    D3D12Queue(D3D12Context& context, D3D12Memory& memory, D3D12Uploads& uploads, D3D12Descriptors& descriptors)
        : m_context(context),
          m_memory(memory),
          m_uploads(uploads),
          m_descriptors(descriptors)
    {
    }
    void open();
    void close() noexcept;
    void require_open(const char* what) const;
    /// Guards all of the device's state, its queue and its memory.
    PoliteMutex& mutex() { return m_mutex; }

    // Recording; the caller holds the lock.
    CommandList& open_list();
    CommandList* current_list() { return m_open.get(); }
    ID3D12GraphicsCommandList* begin_command();
    /// Brings a buffer into the state that the next command needs.
    void use(D3D12Block& block, D3D12_RESOURCE_STATES state);
    void use(D3D12Texture& texture, D3D12_RESOURCE_STATES state);
    /// Buffers that were copied become what kernels can use; the writes of kernels before become visible.
    void prepare_dispatch();
    void note_dispatch() { m_needs_barrier = true; }
    void global_barrier();
    void note_label(const std::string& label) { m_last_label = label; }

    // Submission; the caller holds the lock.
    /// Submits the open list. `waits` and `signals` name fences; with either, an empty list is submitted too.
    void flush(const SubmitDesc* waits = nullptr, const SubmitDesc* signals = nullptr);
    void flush_if_due(); ///< an idle GPU starts at once; behind a busy one launches gather
    uint64_t submit(const SubmitDesc& desc, D3D12Recorder& recorder, std::unique_lock<PoliteMutex>& lock);
    uint64_t submitted() const { return m_submitted; }
    uint64_t newest_id() const { return m_submitted + (m_open ? 1 : 0); }
    bool is_idle() { return !m_open && completed_id() == m_submitted; }
    /// Flushes, and waits until the oldest list in flight is done: what it holds is free then.
    void wait_for_oldest();

    // Waiting
    bool is_finished(uint64_t submit_id);
    bool wait(uint64_t submit_id, uint64_t timeout_ns);
    void wait_all(); ///< as long as it takes
    /// As long as it takes, or until Ctrl-C.
    void wait_id(uint64_t submit_id);

    // What is released
    void discard(D3D12Block* block) noexcept;
    template <typename T>
    void discard(Com<T>& object) noexcept
    {
        discard_object(Com<IUnknown>(object.detach()));
    }
    /// A texture that goes: the open list must not remember it.
    void forget(const D3D12Texture* texture) noexcept;
    /// Frees what finished work has used.
    void collect();
    /// Keeps released memory that is still in use by the GPU within bounds.
    void throttle_garbage();

private:
    struct Garbage {
        uint64_t id = 0;
        D3D12Block* block = nullptr;
        Com<IUnknown> object;
    };

    std::unique_ptr<CommandList> create_list();
    void begin_list(CommandList& list);
    void run_callback(const command::Callback& command, std::unique_lock<PoliteMutex>& lock);
    void recycle(std::unique_ptr<CommandList> list) noexcept;
    void abandon_open_list() noexcept;
    void add_garbage(Garbage garbage) noexcept;
    void destroy_now(Garbage& garbage) noexcept;
    void discard_object(Com<IUnknown> object) noexcept;
    uint64_t completed_id();
    void check_result(HRESULT result, const char* what);
    [[noreturn]] void fail_lost(HRESULT reason);

    D3D12Context& m_context;
    D3D12Memory& m_memory;
    D3D12Uploads& m_uploads;
    D3D12Descriptors& m_descriptors;
    PoliteMutex m_mutex;
    Com<ID3D12Fence> m_fence;
    uint64_t m_submitted = 0, m_completed = 0, m_serial = 0;
    bool m_needs_barrier = false, m_in_submit = false;
    std::string m_lost; ///< message once the device is lost
    std::string m_last_label;
    std::unique_ptr<CommandList> m_open;
    std::deque<std::unique_ptr<CommandList>> m_pending;
    std::vector<std::unique_ptr<CommandList>> m_free_lists;
    std::deque<Garbage> m_garbage;
    uint64_t m_garbage_bytes = 0;
};

} // namespace spy
