#pragma once
// Host-visible memory that command lists carve up: staging and arguments.
#include "d3d12/memory.h"

namespace spy {

class D3D12Queue;

struct D3D12UploadPage {
    D3D12Block* block = nullptr;
    uint64_t size = 0, used = 0;
};
struct D3D12UploadSlice {
    D3D12Block* block = nullptr;
    uint64_t offset = 0;
    uint8_t* data = nullptr;
    D3D12_GPU_VIRTUAL_ADDRESS address() const { return block->resource->GetGPUVirtualAddress() + offset; }
};

/// The device's lock guards it.
class D3D12Uploads {
public:
    D3D12Uploads(D3D12Memory& memory, D3D12Queue& queue) : m_memory(memory), m_queue(queue) { }
    void close() noexcept;
    /// Host-visible bytes that live until the open list is done. May flush, so it comes before begin_command.
    D3D12UploadSlice slice(uint64_t size, uint64_t alignment);
    void recycle_page(D3D12UploadPage* page) noexcept;
    void note_done(uint64_t staged_bytes) { m_staged_bytes -= staged_bytes; }
    /// Waits while too much staging memory is in flight.
    void limit();

private:
    D3D12Memory& m_memory;
    D3D12Queue& m_queue;
    std::vector<D3D12UploadPage*> m_free_pages;
    uint64_t m_staged_bytes = 0;
};

} // namespace spy
