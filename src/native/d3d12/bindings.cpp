// What a launch binds.
#include "d3d12/bindings.h"

#include "core/align.h"
#include "core/error.h"

#include <algorithm>

namespace spy {

namespace {

constexpr uint64_t constant_alignment = 256;

} // namespace

D3D12Texture* bound_texture(Object* object)
{
    if (auto* texture = dynamic_cast<D3D12Texture*>(object))
        return texture;
    if (auto* view = dynamic_cast<TextureView*>(object))
        return static_cast<D3D12Texture*>(view->texture());
    return nullptr;
}

namespace {

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

Object* object_at(std::span<const ref<Object>> slots, uint32_t slot)
{
    return slot < slots.size() ? slots[slot].get() : nullptr;
}

} // namespace

// --- states

/// Brings what the slots name into the state in which kernels use it. What is written anywhere is unordered access.
void D3D12Bindings::prepare_slots(const D3D12RootSignature& root, std::span<const ref<Object>> objects,
                                  std::span<D3D12Texture* const> except)
{
    const std::vector<SlotLayout>& slots = root.layout().slots;
    auto visit = [&](bool writable) {
        for (uint32_t slot : root.resources()) {
            Object* object = object_at(objects, slot);
            if (!object || slots[slot].writable != writable)
                continue;
            const D3D12_RESOURCE_STATES state = writable ? D3D12_RESOURCE_STATE_UNORDERED_ACCESS : shader_read_state;
            if (auto* buffer = dynamic_cast<D3D12Buffer*>(object))
                m_queue.barriers.use(*buffer->block(), state);
            else if (D3D12Texture* texture = bound_texture(object);
                     texture && std::find(except.begin(), except.end(), texture) == except.end())
                m_queue.barriers.use(*texture, state);
        }
    };
    visit(false);
    visit(true);
}

// --- descriptors

void D3D12Bindings::write_buffer_view(const D3D12RootSignature& root, const SlotLayout& slot, const D3D12Buffer& buffer,
                                      D3D12_CPU_DESCRIPTOR_HANDLE to)
{
    const uint64_t size = buffer.desc().size;
    uint64_t item = 4;
    DXGI_FORMAT format = DXGI_FORMAT_R32_TYPELESS;
    if (slot.kind == SlotKind::texel_buffer) {
        if (buffer.desc().format == Format::undefined)
            fail_value("kernel '", root.label(), "': the buffer for '", slot.path,
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
        fail_value("kernel '", root.label(), "': the buffer for '", slot.path, "' has ", count,
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

void D3D12Bindings::write_slot(const D3D12RootSignature& root, uint32_t index, Object* object,
                               D3D12_CPU_DESCRIPTOR_HANDLE to)
{
    const SlotLayout& slot = root.layout().slots[index];
    auto* buffer = dynamic_cast<D3D12Buffer*>(object);
    if (!object || (buffer && !buffer->desc().size))
        return write_null_view(m_context.device.get(), slot, to);
    if (slot.kind != SlotKind::texture) {
        if (!buffer)
            fail(ErrorKind::type, "kernel '", root.label(), "': '", slot.path, "' takes a buffer");
        return write_buffer_view(root, slot, *buffer, to);
    }
    D3D12Texture* texture = bound_texture(object);
    if (!texture)
        fail(ErrorKind::type, "kernel '", root.label(), "': '", slot.path, "' takes a texture or a texture view");
    auto* view = dynamic_cast<TextureView*>(object);
    texture->write_view(view ? view->desc() : texture->whole(), slot.shape, slot.writable, to);
}

void D3D12Bindings::write_sampler(const D3D12RootSignature& root, uint32_t index, Object* object,
                                  D3D12_CPU_DESCRIPTOR_HANDLE to)
{
    auto* sampler = dynamic_cast<D3D12Sampler*>(object);
    if (object && !sampler)
        fail(ErrorKind::type, "kernel '", root.label(), "': '", root.layout().slots[index].path, "' takes a sampler");
    const D3D12_SAMPLER_DESC desc = sampler ? sampler->native_desc() : default_sampler();
    m_context.device->CreateSampler(&desc, to);
}

// --- all of it

D3D12BoundArguments D3D12Bindings::write(const D3D12RootSignature& root, const ArgumentView& arguments)
{
    // First what may flush: the list that the rest goes on must be the one that holds it.
    D3D12BoundArguments bound;
    uint64_t bytes = 0;
    for (const ScopeBinding& binding : root.scopes())
        bytes += round_up(root.layout().scopes[binding.scope].size, constant_alignment);
    const auto resource_count = uint32_t(root.resources().size()), sampler_count = uint32_t(root.samplers().size());
    D3D12UploadSlice slice;
    for (bound.list = 0; bound.list != m_queue.open_list().serial;) {
        bound.list = m_queue.open_list().serial;
        if (resource_count)
            bound.resources = m_descriptors.allocate(m_descriptors.resources, resource_count, m_queue, root.label());
        if (sampler_count)
            bound.samplers = m_descriptors.allocate(m_descriptors.samplers, sampler_count, m_queue, root.label());
        if (bytes)
            slice = m_uploads.slice(bytes, constant_alignment);
    }
    for (uint32_t i = 0; i < resource_count; ++i)
        write_slot(root, root.resources()[i], object_at(arguments.slots, root.resources()[i]),
                   m_descriptors.resources.cpu(bound.resources + i));
    for (uint32_t i = 0; i < sampler_count; ++i)
        write_sampler(root, root.samplers()[i], object_at(arguments.slots, root.samplers()[i]),
                      m_descriptors.samplers.cpu(bound.samplers + i));
    bound.constants = slice.block ? slice.address() : 0;
    for (const ScopeBinding& binding : root.scopes()) {
        const uint64_t size = root.layout().scopes[binding.scope].size;
        copy_scope(slice.data, size, arguments, binding.scope);
        slice.data += round_up(size, constant_alignment);
    }
    return bound;
}

ID3D12GraphicsCommandList* D3D12Bindings::record(D3D12Kernel& kernel, const ArgumentView& arguments)
{
    const D3D12RootSignature& root = kernel.root();
    const D3D12BoundArguments bound = write(root, arguments);
    prepare_slots(root, arguments.slots, {});
    m_queue.barriers.prepare_dispatch();
    ID3D12GraphicsCommandList* commands = m_queue.begin_command();
    D3D12List& list = *m_queue.current_list();
    if (list.bound != kernel.pipeline()) {
        commands->SetPipelineState(kernel.pipeline());
        commands->SetComputeRootSignature(root.handle());
        commands->SetComputeRootDescriptorTable(0, m_descriptors.windows());
        list.bound = kernel.pipeline();
    }
    D3D12_GPU_VIRTUAL_ADDRESS address = bound.constants;
    for (size_t i = 0; i < root.scopes().size(); ++i) {
        const ScopeBinding& binding = root.scopes()[i];
        if (binding.memory)
            commands->SetComputeRootShaderResourceView(UINT(i + 1), address);
        else
            commands->SetComputeRootConstantBufferView(UINT(i + 1), address);
        address += round_up(root.layout().scopes[binding.scope].size, constant_alignment);
    }
    if (!root.resources().empty())
        commands->SetComputeRootDescriptorTable(root.resource_parameter(),
                                                m_descriptors.resources.gpu(bound.resources));
    if (!root.samplers().empty())
        commands->SetComputeRootDescriptorTable(root.sampler_parameter(), m_descriptors.samplers.gpu(bound.samplers));
    return commands;
}

void D3D12Bindings::bind_draw(ID3D12GraphicsCommandList* commands, const D3D12RootSignature& root,
                              const D3D12BoundArguments& bound)
{
    D3D12_GPU_VIRTUAL_ADDRESS address = bound.constants;
    for (size_t i = 0; i < root.scopes().size(); ++i) {
        const ScopeBinding& binding = root.scopes()[i];
        if (binding.memory)
            commands->SetGraphicsRootShaderResourceView(UINT(i + 1), address);
        else
            commands->SetGraphicsRootConstantBufferView(UINT(i + 1), address);
        address += round_up(root.layout().scopes[binding.scope].size, constant_alignment);
    }
    if (!root.resources().empty())
        commands->SetGraphicsRootDescriptorTable(root.resource_parameter(),
                                                 m_descriptors.resources.gpu(bound.resources));
    if (!root.samplers().empty())
        commands->SetGraphicsRootDescriptorTable(root.sampler_parameter(), m_descriptors.samplers.gpu(bound.samplers));
}

} // namespace spy
