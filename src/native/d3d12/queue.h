#pragma once
// Command lists, submission, waiting, and what is freed when work is done: this backend's part of
// device/list_queue.h.
#include "d3d12/barriers.h"
#include "d3d12/lists.h"
#include "d3d12/timeline.h"

#include "device/list_queue.h"

namespace spy {

class D3D12Recorder;

/// What goes once `id` has passed.
struct D3D12Garbage {
    uint64_t id = 0;
    D3D12Block* block = nullptr;
    Com<IUnknown> object;

    uint64_t bytes() const { return block ? block->size : 0; }
};

class D3D12Queue final : public ListQueue<D3D12List, D3D12Garbage> {
public:
    D3D12Queue(D3D12Context& context, D3D12Memory& memory, D3D12Uploads& uploads, D3D12Descriptors& descriptors)
        : ListQueue(timeline),
          timeline(context),
          m_context(context),
          m_memory(memory),
          m_descriptors(descriptors),
          m_lists(context, uploads, descriptors)
    {
    }
    void close() noexcept;

    // The caller holds the lock.
    D3D12List& open_list() override;
    ID3D12GraphicsCommandList* begin_command();
    void flush(const SubmitDesc* signals = nullptr) override;
    /// Flushes, and waits until the oldest list in flight is done: its resources are free then.
    void wait_for_oldest();

    // Waiting
    bool wait(uint64_t submit_id, uint64_t timeout_ns);
    void wait_all(); ///< as long as it takes

    // What is released: now, or when the work that may use it is done
    void discard(D3D12Block* block) noexcept;
    template <typename T>
    void discard(Com<T>& object) noexcept
    {
        if (object)
            ListQueue::discard({0, nullptr, Com<IUnknown>(object.detach())});
    }
    /// A texture that goes: the open list must not remember it.
    void forget(const D3D12Texture* texture) noexcept;

    D3D12Timeline timeline;
    D3D12Barriers barriers{*this};

protected:
    bool is_open() const override { return m_context.is_open(); }
    std::unique_ptr<D3D12List> begin_foreign_list() override { return m_lists.begin(); }
    NativeHandle handle_of(const D3D12List& list) const override
    {
        return {NativeHandleType::D3D12GraphicsCommandList, uint64_t(list.commands.get())};
    }
    void adopt_foreign_list() override;
    void recycle(std::unique_ptr<D3D12List> list) override;
    void abandon(std::unique_ptr<D3D12List> list) noexcept override { m_lists.abandon(std::move(list)); }
    void destroy(D3D12Garbage& garbage) noexcept override;

private:
    D3D12Context& m_context;
    D3D12Memory& m_memory;
    D3D12Descriptors& m_descriptors;
    D3D12Lists m_lists;
};

} // namespace spy
