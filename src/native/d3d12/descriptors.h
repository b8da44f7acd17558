#pragma once
// The descriptors that kernels see: the table of windows into all buffers, followed by a ring for what each launch
// binds; samplers have a ring of their own.
#include "d3d12/context.h"

namespace spy {

class D3D12Queue;

/// Part of a heap, taken in order and given back when the work that uses it is done.
struct DescriptorRing {
    Com<ID3D12DescriptorHeap> heap;
    D3D12_DESCRIPTOR_HEAP_TYPE type = D3D12_DESCRIPTOR_HEAP_TYPE_CBV_SRV_UAV;
    uint32_t first = 0, size = 0, step = 0;
    uint64_t head = 0, tail = 0; ///< counted on, modulo size

    D3D12_CPU_DESCRIPTOR_HANDLE cpu(uint32_t index) const;
    D3D12_GPU_DESCRIPTOR_HANDLE gpu(uint32_t index) const;
};

class D3D12Descriptors {
public:
    explicit D3D12Descriptors(D3D12Context& context) : m_context(context) { }
    void open();
    void close() noexcept;
    D3D12_CPU_DESCRIPTOR_HANDLE window(uint32_t index) const { return resources.cpu(index); }
    D3D12_GPU_DESCRIPTOR_HANDLE windows() const { return resources.gpu(0); }
    /// Index of the first of `count` neighbours, which live until the open list is done. May flush.
    uint32_t allocate(DescriptorRing& ring, uint32_t count, D3D12Queue& queue, const std::string& what);

    /// The place of an allocated descriptor in a heap that kernels do not see, which clears ask for as well.
    D3D12_CPU_DESCRIPTOR_HANDLE host_copy(uint32_t index) const;

    /// Places for the attachments of the pass, or the part of a texture, that is being recorded.
    D3D12_CPU_DESCRIPTOR_HANDLE target(uint32_t index) const;
    D3D12_CPU_DESCRIPTOR_HANDLE depth() const { return m_depths->GetCPUDescriptorHandleForHeapStart(); }

    DescriptorRing resources, samplers;

private:
    Com<ID3D12DescriptorHeap> m_host_copies, m_targets, m_depths;
    D3D12Context& m_context;
};

} // namespace spy
