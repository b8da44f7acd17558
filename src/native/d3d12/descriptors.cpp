#include "d3d12/descriptors.h"

#include "d3d12/memory.h"
#include "d3d12/queue.h"

#include "core/error.h"
#include "device/render.h"

namespace spy {

namespace {

constexpr uint32_t ring_size = 32768, sampler_ring_size = 2048; ///< the API allows no more samplers

void open_ring(ID3D12Device* device, DescriptorRing& ring, D3D12_DESCRIPTOR_HEAP_TYPE type, uint32_t first,
               uint32_t size)
{
    D3D12_DESCRIPTOR_HEAP_DESC desc{};
    desc.Type = ring.type = type;
    desc.NumDescriptors = first + size;
    desc.Flags = D3D12_DESCRIPTOR_HEAP_FLAG_SHADER_VISIBLE;
    d3d12_check(device->CreateDescriptorHeap(&desc, iid_of<ID3D12DescriptorHeap>(), ring.heap.put_void()),
                "CreateDescriptorHeap");
    ring.first = first;
    ring.size = size;
    ring.step = device->GetDescriptorHandleIncrementSize(type);
}

/// A heap that shaders do not see.
void open_heap(ID3D12Device* device, Com<ID3D12DescriptorHeap>& heap, D3D12_DESCRIPTOR_HEAP_TYPE type, uint32_t size)
{
    D3D12_DESCRIPTOR_HEAP_DESC desc{};
    desc.Type = type;
    desc.NumDescriptors = size;
    d3d12_check(device->CreateDescriptorHeap(&desc, iid_of<ID3D12DescriptorHeap>(), heap.put_void()),
                "CreateDescriptorHeap");
}

} // namespace

D3D12_CPU_DESCRIPTOR_HANDLE DescriptorRing::cpu(uint32_t index) const
{
    D3D12_CPU_DESCRIPTOR_HANDLE handle = heap->GetCPUDescriptorHandleForHeapStart();
    handle.ptr += SIZE_T(index) * step;
    return handle;
}

D3D12_GPU_DESCRIPTOR_HANDLE DescriptorRing::gpu(uint32_t index) const
{
    D3D12_GPU_DESCRIPTOR_HANDLE handle = heap->GetGPUDescriptorHandleForHeapStart();
    handle.ptr += UINT64(index) * step;
    return handle;
}

void D3D12Descriptors::open()
{
    ID3D12Device* device = m_context.device.get();
    open_ring(device, resources, D3D12_DESCRIPTOR_HEAP_TYPE_CBV_SRV_UAV, window_count, ring_size);
    open_ring(device, samplers, D3D12_DESCRIPTOR_HEAP_TYPE_SAMPLER, 0, sampler_ring_size);
    open_heap(device, m_host_copies, D3D12_DESCRIPTOR_HEAP_TYPE_CBV_SRV_UAV, ring_size);
    open_heap(device, m_targets, D3D12_DESCRIPTOR_HEAP_TYPE_RTV, max_color_attachments);
    open_heap(device, m_depths, D3D12_DESCRIPTOR_HEAP_TYPE_DSV, 1);
    D3D12_UNORDERED_ACCESS_VIEW_DESC none{}; // at the address 0
    none.Format = DXGI_FORMAT_R32_TYPELESS;
    none.ViewDimension = D3D12_UAV_DIMENSION_BUFFER;
    none.Buffer.NumElements = 4;
    none.Buffer.Flags = D3D12_BUFFER_UAV_FLAG_RAW;
    device->CreateUnorderedAccessView(nullptr, nullptr, &none, window(0));
}

void D3D12Descriptors::close() noexcept
{
    m_host_copies.reset();
    m_targets.reset();
    m_depths.reset();
    resources = {};
    samplers = {};
}

D3D12_CPU_DESCRIPTOR_HANDLE D3D12Descriptors::host_copy(uint32_t index) const
{
    D3D12_CPU_DESCRIPTOR_HANDLE handle = m_host_copies->GetCPUDescriptorHandleForHeapStart();
    handle.ptr += SIZE_T(index - resources.first) * resources.step;
    return handle;
}

D3D12_CPU_DESCRIPTOR_HANDLE D3D12Descriptors::target(uint32_t index) const
{
    D3D12_CPU_DESCRIPTOR_HANDLE handle = m_targets->GetCPUDescriptorHandleForHeapStart();
    handle.ptr += SIZE_T(index) * m_context.device->GetDescriptorHandleIncrementSize(D3D12_DESCRIPTOR_HEAP_TYPE_RTV);
    return handle;
}

uint32_t D3D12Descriptors::allocate(DescriptorRing& ring, uint32_t count, D3D12Queue& queue, const std::string& what)
{
    if (count > ring.size / 2)
        fail_value("kernel '", what, "' takes ", count, " resources; a Direct3D 12 device binds ", ring.size / 2,
                   " at most");
    if (ring.head % ring.size + count > ring.size)
        ring.head += ring.size - ring.head % ring.size;
    while (ring.head + count - ring.tail > ring.size)
        queue.wait_for_oldest();
    const uint32_t index = ring.first + uint32_t(ring.head % ring.size);
    ring.head += count;
    return index;
}

} // namespace spy
