#pragma once
// What a launch binds: descriptors of its resources and samplers, and the bytes of its arguments.
#include "device/list_arguments.h"
#include "d3d12/pipeline.h"
#include "d3d12/queue.h"

namespace spy {

/// The texture of a texture or of a view of one; null for other objects.
D3D12Texture* bound_texture(Object* object);

/// Where arguments have been written for the GPU; valid in one command list.
struct D3D12BoundArguments {
    uint64_t list = 0; ///< serial of that list
    uint32_t resources = 0, samplers = 0;
    D3D12_GPU_VIRTUAL_ADDRESS constants = 0;
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
    ID3D12GraphicsCommandList* record(D3D12Kernel& kernel, const ArgumentView& arguments);

    /// For draws, in these steps. Writes descriptors and bytes; may flush.
    D3D12BoundArguments write(const D3D12RootSignature& root, const ArgumentView& arguments);
    /// Brings what the slots name into the state in which shaders use it, but for the textures of `except`.
    void prepare_slots(const D3D12RootSignature& root, std::span<const ref<Object>> objects,
                       std::span<D3D12Texture* const> except);
    void bind_draw(ID3D12GraphicsCommandList* commands, const D3D12RootSignature& root,
                   const D3D12BoundArguments& bound);

private:
    void write_slot(const D3D12RootSignature& root, uint32_t slot, Object* object, D3D12_CPU_DESCRIPTOR_HANDLE to);
    void write_buffer_view(const D3D12RootSignature& root, const SlotLayout& slot, const D3D12Buffer& buffer,
                           D3D12_CPU_DESCRIPTOR_HANDLE to);
    void write_sampler(const D3D12RootSignature& root, uint32_t slot, Object* object, D3D12_CPU_DESCRIPTOR_HANDLE to);

    D3D12Context& m_context;
    D3D12Queue& m_queue;
    D3D12Uploads& m_uploads;
    D3D12Descriptors& m_descriptors;
};

} // namespace spy
