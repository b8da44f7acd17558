#pragma once
// Command lists: what is recorded into, and those that may be recorded into again.
#include "d3d12/descriptors.h"
#include "d3d12/memory.h"
#include "d3d12/upload.h"

namespace spy {

struct D3D12List {
    Com<ID3D12CommandAllocator> allocator;
    Com<ID3D12GraphicsCommandList> commands;
    std::vector<D3D12UploadPage*> pages;
    uint64_t id = 0, serial = 0;
    uint32_t command_count = 0;
    bool is_written = false; ///< kernels may have written buffers in it
    uint64_t staged_bytes = 0;
    uint64_t resource_head = 0, sampler_head = 0; ///< of the descriptor rings when it was submitted
    ID3D12PipelineState* bound = nullptr;
    std::vector<D3D12Block*> copied;                                       ///< in a state that kernels cannot use
    std::vector<std::pair<D3D12Texture*, D3D12_RESOURCE_STATES>> textures; ///< with their states before the list
};

/// Lists that no work uses. All of these need the lock of the queue.
class D3D12Lists {
public:
    D3D12Lists(D3D12Context& context, D3D12Uploads& uploads, D3D12Descriptors& descriptors)
        : m_context(context),
          m_uploads(uploads),
          m_descriptors(descriptors)
    {
    }
    /// A list that commands may be recorded into at once.
    std::unique_ptr<D3D12List> begin();
    /// For a list into which others have recorded: what they set is unknown.
    void restore(D3D12List& list);
    /// Takes back a list whose work is done.
    void recycle(std::unique_ptr<D3D12List> list) noexcept;
    /// Takes back a list that was never submitted.
    void abandon(std::unique_ptr<D3D12List> list) noexcept;
    void close() noexcept { m_free.clear(); }

private:
    std::unique_ptr<D3D12List> create();

    D3D12Context& m_context;
    D3D12Uploads& m_uploads;
    D3D12Descriptors& m_descriptors;
    uint64_t m_serial = 0;
    std::vector<std::unique_ptr<D3D12List>> m_free;
};

} // namespace spy
