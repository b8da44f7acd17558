#pragma once
// What a launch binds: descriptors of its resources and samplers, and the bytes of its arguments.
#include "d3d12/pipeline.h"
#include "d3d12/queue.h"

namespace spy {

/// Arguments of a launch as the recording code reads them.
struct D3D12Arguments {
    std::span<const std::span<const uint8_t>> scopes;
    std::span<const ref<Object>> slots;
};

class D3D12Bindings {
public:
    D3D12Bindings(D3D12Context& context, D3D12Queue& queue, D3D12Uploads& uploads, D3D12Descriptors& descriptors)
        : m_context(context),
          m_queue(queue),
          m_uploads(uploads),
          m_descriptors(descriptors)
    {
    }
    /// Binds everything in the open list, to which the dispatch itself goes then.
    ID3D12GraphicsCommandList* record(D3D12Kernel& kernel, const D3D12Arguments& arguments);

private:
    void prepare_slots(D3D12Kernel& kernel, const D3D12Arguments& arguments);
    void write_slot(D3D12Kernel& kernel, uint32_t slot, Object* object, D3D12_CPU_DESCRIPTOR_HANDLE to);
    void write_buffer_view(D3D12Kernel& kernel, const SlotLayout& slot, const D3D12Buffer& buffer,
                           D3D12_CPU_DESCRIPTOR_HANDLE to);
    void write_sampler(D3D12Kernel& kernel, uint32_t slot, Object* object, D3D12_CPU_DESCRIPTOR_HANDLE to);

    D3D12Context& m_context;
    D3D12Queue& m_queue;
    D3D12Uploads& m_uploads;
    D3D12Descriptors& m_descriptors;
};

} // namespace spy
