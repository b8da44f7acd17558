// What a launch binds.
#include "d3d12/bindings.h"

#include "core/align.h"
#include "core/error.h"

#include <algorithm>
#include <cstring>

namespace spy {

namespace {

constexpr uint64_t constant_alignment = 256;

void copy_scope(uint8_t* target, uint64_t size, const D3D12Arguments& arguments, size_t scope)
{
    const std::span<const uint8_t> bytes = scope < arguments.scopes.size() ? arguments.scopes[scope]
                                                                           : std::span<const uint8_t>();
    const uint64_t given = std::min<uint64_t>(bytes.size(), size);
    if (given)
        std::memcpy(target, bytes.data(), given);
    std::memset(target + given, 0, size - given);
}

D3D12Texture* texture_of(Object* object)
{
    if (auto* texture = dynamic_cast<D3D12Texture*>(object))
        return texture;
    if (auto* view = dynamic_cast<TextureView*>(object))
        return static_cast<D3D12Texture*>(view->texture());
    return nullptr;
}

D3D12_SAMPLER_DESC default_sampler()
{
    D3D12_SAMPLER_DESC desc{};
    desc.Filter = D3D12_FILTER_MIN_MAG_MIP_LINEAR;
    desc.AddressU = desc.AddressV = desc.AddressW = D3D12_TEXTURE_ADDRESS_MODE_WRAP;
    desc.MaxAnisotropy = 1;
    desc.ComparisonFunc = D3D12_COMPARISON_FUNC_NEVER;
    desc.MaxLOD = D3D12_FLOAT32_MAX;
    return desc;
}

Object* object_at(const D3D12Arguments& arguments, uint32_t slot)
{
    return slot < arguments.slots.size() ? arguments.slots[slot].get() : nullptr;
}

} // namespace

// --- states

/// Brings what the slots name into the state in which kernels use it. What is written anywhere is unordered access.
void D3D12Bindings::prepare_slots(D3D12Kernel& kernel, const D3D12Arguments& arguments)
{
    const std::vector<SlotLayout>& slots = kernel.layout().slots;
    auto visit = [&](bool writable) {
        for (uint32_t slot : kernel.resources()) {
            Object* object = object_at(arguments, slot);
            if (!object || slots[slot].writable != writable)
                continue;
            const D3D12_RESOURCE_STATES state = writable ? D3D12_RESOURCE_STATE_UNORDERED_ACCESS
                                                         : D3D12_RESOURCE_STATE_NON_PIXEL_SHADER_RESOURCE;
            if (auto* buffer = dynamic_cast<D3D12Buffer*>(object))
                m_queue.barriers.use(*buffer->block(), state);
            else if (D3D12Texture* texture = texture_of(object))
                m_queue.barriers.use(*texture, state);
        }
    };
    visit(false);
    visit(true);
}

// --- descriptors

void D3D12Bindings::write_buffer_view(D3D12Kernel& kernel, const SlotLayout& slot, const D3D12Buffer& buffer,
                                      D3D12_CPU_DESCRIPTOR_HANDLE to)
{
    const uint64_t size = buffer.desc().size;
    uint64_t item = 4;
    DXGI_FORMAT format = DXGI_FORMAT_R32_TYPELESS;
    if (slot.kind == SlotKind::texel_buffer) {
        if (buffer.desc().format == Format::undefined)
            fail_value("kernel '", kernel.label(), "': the buffer for '", slot.path,
                       "' must be created with a format: it is bound as Buffer<T> or RWBuffer<T>");
        item = format_info(buffer.desc().format).bytes_per_block;
        format = DXGI_FORMAT(format_info(buffer.desc().format).dxgi_format);
    } else if (slot.kind == SlotKind::structured_buffer) {
        item = std::max<uint64_t>(slot.element_stride, 1);
        format = DXGI_FORMAT_UNKNOWN;
    }
    const bool raw = slot.kind == SlotKind::byte_address_buffer;
    // Blocks are larger than their buffers: a last word that is not whole can be read whole.
    const uint64_t count = raw ? (size + 3) / 4 : size / item;
    if (count > UINT32_MAX)
        fail_value("kernel '", kernel.label(), "': the buffer for '", slot.path, "' has ", count,
                   " elements; views have 4294967295 at most: pass it as a tensor");
    if (slot.writable) {
        D3D12_UNORDERED_ACCESS_VIEW_DESC view{};
        view.Format = format;
        view.ViewDimension = D3D12_UAV_DIMENSION_BUFFER;
        view.Buffer.NumElements = UINT(count);
        view.Buffer.StructureByteStride = slot.kind == SlotKind::structured_buffer ? UINT(item) : 0;
        view.Buffer.Flags = raw ? D3D12_BUFFER_UAV_FLAG_RAW : D3D12_BUFFER_UAV_FLAG_NONE;
        m_context.device->CreateUnorderedAccessView(buffer.block()->resource.get(), nullptr, &view, to);
        return;
    }
    D3D12_SHADER_RESOURCE_VIEW_DESC view{};
    view.Format = format;
    view.ViewDimension = D3D12_SRV_DIMENSION_BUFFER;
    view.Shader4ComponentMapping = D3D12_DEFAULT_SHADER_4_COMPONENT_MAPPING;
    view.Buffer.NumElements = UINT(count);
    view.Buffer.StructureByteStride = slot.kind == SlotKind::structured_buffer ? UINT(item) : 0;
    view.Buffer.Flags = raw ? D3D12_BUFFER_SRV_FLAG_RAW : D3D12_BUFFER_SRV_FLAG_NONE;
    m_context.device->CreateShaderResourceView(buffer.block()->resource.get(), &view, to);
}

void D3D12Bindings::write_slot(D3D12Kernel& kernel, uint32_t index, Object* object, D3D12_CPU_DESCRIPTOR_HANDLE to)
{
    const SlotLayout& slot = kernel.layout().slots[index];
    auto* buffer = dynamic_cast<D3D12Buffer*>(object);
    if (!object || (buffer && !buffer->desc().size))
        return write_null_view(m_context.device.get(), slot, to);
    if (slot.kind != SlotKind::texture) {
        if (!buffer)
            fail(ErrorKind::type, "kernel '", kernel.label(), "': '", slot.path, "' takes a buffer");
        return write_buffer_view(kernel, slot, *buffer, to);
    }
    D3D12Texture* texture = texture_of(object);
    if (!texture)
        fail(ErrorKind::type, "kernel '", kernel.label(), "': '", slot.path, "' takes a texture or a texture view");
    auto* view = dynamic_cast<TextureView*>(object);
    texture->write_view(view ? view->desc() : texture->whole(), slot.shape, slot.writable, to);
}

void D3D12Bindings::write_sampler(D3D12Kernel& kernel, uint32_t index, Object* object, D3D12_CPU_DESCRIPTOR_HANDLE to)
{
    auto* sampler = dynamic_cast<D3D12Sampler*>(object);
    if (object && !sampler)
        fail(ErrorKind::type, "kernel '", kernel.label(), "': '", kernel.layout().slots[index].path,
             "' takes a sampler");
    const D3D12_SAMPLER_DESC desc = sampler ? sampler->native_desc() : default_sampler();
    m_context.device->CreateSampler(&desc, to);
}

// --- all of it

ID3D12GraphicsCommandList* D3D12Bindings::record(D3D12Kernel& kernel, const D3D12Arguments& arguments)
{
    // First what may flush: the list that the rest goes on must be the one that holds it.
    uint64_t bytes = 0;
    for (const ScopeBinding& binding : kernel.scopes())
        bytes += round_up(kernel.layout().scopes[binding.scope].size, constant_alignment);
    const auto resource_count = uint32_t(kernel.resources().size()), sampler_count = uint32_t(kernel.samplers().size());
    uint32_t resources = 0, samplers = 0;
    D3D12UploadSlice slice;
    for (uint64_t serial = 0; serial != m_queue.open_list().serial;) {
        serial = m_queue.open_list().serial;
        if (resource_count)
            resources = m_descriptors.allocate(m_descriptors.resources, resource_count, m_queue, kernel.label());
        if (sampler_count)
            samplers = m_descriptors.allocate(m_descriptors.samplers, sampler_count, m_queue, kernel.label());
        if (bytes)
            slice = m_uploads.slice(bytes, constant_alignment);
    }
    for (uint32_t i = 0; i < resource_count; ++i)
        write_slot(kernel, kernel.resources()[i], object_at(arguments, kernel.resources()[i]),
                   m_descriptors.resources.cpu(resources + i));
    for (uint32_t i = 0; i < sampler_count; ++i)
        write_sampler(kernel, kernel.samplers()[i], object_at(arguments, kernel.samplers()[i]),
                      m_descriptors.samplers.cpu(samplers + i));
    prepare_slots(kernel, arguments);
    m_queue.barriers.prepare_dispatch();

    ID3D12GraphicsCommandList* commands = m_queue.begin_command();
    D3D12List& list = *m_queue.current_list();
    if (list.bound != kernel.pipeline()) {
        commands->SetPipelineState(kernel.pipeline());
        commands->SetComputeRootSignature(kernel.root());
        commands->SetComputeRootDescriptorTable(0, m_descriptors.windows());
        list.bound = kernel.pipeline();
    }
    for (size_t i = 0; i < kernel.scopes().size(); ++i) {
        const ScopeBinding& binding = kernel.scopes()[i];
        const uint64_t size = kernel.layout().scopes[binding.scope].size;
        copy_scope(slice.data, size, arguments, binding.scope);
        if (binding.memory)
            commands->SetComputeRootShaderResourceView(UINT(i + 1), slice.address());
        else
            commands->SetComputeRootConstantBufferView(UINT(i + 1), slice.address());
        slice.data += round_up(size, constant_alignment);
        slice.offset += round_up(size, constant_alignment);
    }
    if (resource_count)
        commands->SetComputeRootDescriptorTable(kernel.resource_parameter(), m_descriptors.resources.gpu(resources));
    if (sampler_count)
        commands->SetComputeRootDescriptorTable(kernel.sampler_parameter(), m_descriptors.samplers.gpu(samplers));
    return commands;
}

} // namespace spy
