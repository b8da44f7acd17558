// Kernels of the CPU device: their entry points, and arguments as Slang's C++ code lays them out.
#include "core/error.h"
#include "cpu/descriptors.h"
#include "cpu/device.h"
#include "cpu/fibers.h"
#include "cpu/host.h"

#include <algorithm>
#include <cstring>

namespace spy::cpu {

namespace {

/// What StructuredBuffer<T> and ByteAddressBuffer are in Slang's C++ code.
struct BufferView {
    const void* data;
    size_t count; ///< elements, or bytes of a byte address buffer
};

/// What reading a null buffer finds, and where writing to one goes. Kernels do not know that it has no elements.
constexpr size_t null_size = 1 << 20;
alignas(64) uint8_t nothing[null_size];
alignas(64) uint8_t discarded[null_size];

bool is_buffer(const SlotLayout& slot)
{
    return slot.kind == SlotKind::structured_buffer || slot.kind == SlotKind::byte_address_buffer;
}

bool has_texture(const SlotLayout& slot)
{
    return slot.kind == SlotKind::texture || slot.kind == SlotKind::combined_texture_sampler;
}

/// Buffer<T> or RWBuffer<T>: to kernels a texture of one dimension.
bool is_typed_buffer(const SlotLayout& slot) { return slot.kind == SlotKind::texel_buffer; }

bool has_sampler(const SlotLayout& slot)
{
    return slot.kind == SlotKind::sampler || slot.kind == SlotKind::combined_texture_sampler;
}

} // namespace

CpuKernel::CpuKernel(ref<Device> device, const KernelDesc& desc)
    : Kernel(std::move(device), desc.layout, desc.label),
      m_library(std::make_unique<Library>(desc.code, desc.label)),
      m_stack(stack_of(desc.code))
{
    if (m_stack > most_stack)
        fail_runtime(
            desc.label, ": its local variables, recorded states of loops included, take ", m_stack,
            " bytes of stack for each thread, and the cpu device gives it ", most_stack,
            ": use smaller local arrays or buffers, or lower [MaxIters(n)], of which nested loops multiply theirs");
    void* symbol = m_library->symbol(m_layout->entry_point().name);
    if (!symbol)
        fail_runtime("the compiled code of ", desc.label, " has no function '", m_layout->entry_point().name, "'");
    std::memcpy(&m_function, &symbol, sizeof(symbol));
    if (auto* host = static_cast<const SpyHost**>(m_library->symbol("_spy_host")))
        *host = &host_functions();
    if (auto* bytes = static_cast<size_t*>(m_library->symbol("_spy_stack_bytes")))
        *bytes = group_stack();
    m_set_adds = find_set_adds(*m_library);
    m_outside = static_cast<std::atomic<int>*>(m_library->symbol("_spy_outside"));
    m_overrun = static_cast<std::atomic<int>*>(m_library->symbol("_spy_overrun"));
    m_divided = static_cast<std::atomic<int>*>(m_library->symbol("_spy_divided_by_zero"));

    for (const ScopeLayout& scope : m_layout->scopes) {
        m_scope_offsets.push_back(m_block_size);
        // 16 bytes more: Slang's structs may be rounded up beyond what reflection counts.
        m_block_size += (scope.size + 16 + 63) / 64 * 64;
    }
    m_block_size = std::max<uint64_t>(m_block_size, 64);
    for (size_t i = 0; i < m_layout->slots.size(); ++i) {
        const SlotLayout& slot = m_layout->slots[i];
        if (!is_buffer(slot) && !has_texture(slot) && !has_sampler(slot) && !is_typed_buffer(slot))
            continue; // not reached by the kernel (slangpy/compiler/text/prelude.py): its place stays empty
        const uint64_t size = is_buffer(slot) ? sizeof(BufferView) : has_texture(slot) && has_sampler(slot) ? 16 : 8;
        if (slot.scope >= m_layout->scopes.size() || slot.offset + size > m_layout->scopes[slot.scope].size + 16)
            fail_runtime(desc.label, ": the layout places parameter '", slot.path, "' outside of its scope");
        if (is_buffer(slot))
            continue;
        m_resources.push_back({i, m_block_size});
        m_block_size += (sizeof(Descriptors) + 63) / 64 * 64;
    }
    for (const ScopeLayout& scope : m_layout->scopes)
        if (scope.parent >= int32_t(m_layout->scopes.size()) ||
            (scope.parent >= 0 && scope.parent_offset + 8 > m_layout->scopes[size_t(scope.parent)].size + 16))
            fail_runtime(desc.label, ": the layout places block '", scope.path, "' outside of its scope");
}

uint64_t CpuKernel::group_stack() const
{
    constexpr uint64_t rest = 64 << 10, page = 4096; // what is called besides: samplers, the switch itself
    return std::max(fibers::usual_stack, (m_stack + rest + page - 1) / page * page);
}

void CpuKernel::fill_block(const Arguments& arguments, uint8_t* block) const
{
    const ProgramLayout& layout = *m_layout;
    for (size_t i = 0; i < std::min(layout.scopes.size(), arguments.scopes.size()); ++i) {
        const std::span<const uint8_t> bytes = arguments.scopes[i];
        if (!bytes.empty())
            std::memcpy(scope(block, i), bytes.data(), std::min<uint64_t>(bytes.size(), layout.scopes[i].size));
    }
    for (size_t i = 0; i < layout.slots.size(); ++i) {
        const SlotLayout& slot = layout.slots[i];
        if (!is_buffer(slot))
            continue;
        BufferView view{slot.writable ? discarded : nothing, 0};
        if (i < arguments.slots.size() && arguments.slots[i]) {
            const auto* buffer = static_cast<const Buffer*>(arguments.slots[i].get());
            const uint64_t stride = slot.kind == SlotKind::structured_buffer && slot.element_stride
                ? slot.element_stride
                : 1;
            view = {buffer->host_pointer(), buffer->desc().size / stride};
        }
        std::memcpy(scope(block, slot.scope) + slot.offset, &view, sizeof(view));
    }
    for (const Resource& resource : m_resources)
        fill_resource(resource, resource.slot < arguments.slots.size() ? arguments.slots[resource.slot].get() : nullptr,
                      block);
    for (size_t i = 0; i < layout.scopes.size(); ++i)
        if (layout.scopes[i].parent >= 0) {
            const uint8_t* pointer = scope(block, i);
            std::memcpy(scope(block, size_t(layout.scopes[i].parent)) + layout.scopes[i].parent_offset, &pointer, 8);
        }
}

/// Nothing bound: a texture without texels, and the default sampler.
void CpuKernel::fill_resource(const Resource& resource, Object* object, uint8_t* block) const
{
    const SlotLayout& slot = m_layout->slots[resource.slot];
    auto* descriptors = new (block + resource.offset) Descriptors{};
    uint8_t* handle = scope(block, slot.scope) + slot.offset;
    const Sampler* sampler = nullptr;
    if (is_typed_buffer(slot)) {
        descriptors->texture.mip_count = 1;
        if (object)
            fill(*static_cast<const Buffer*>(object), slot.path, slot.writable, descriptors->texture);
        const SpyTexture* pointer = &descriptors->texture;
        std::memcpy(handle, &pointer, 8);
    } else if (has_texture(slot)) {
        descriptors->texture.mip_count = 1;
        if (auto* view = dynamic_cast<TextureView*>(object)) {
            fill(*static_cast<const HostTexture*>(view->texture()), view, descriptors->texture);
            sampler = view->sampler() ? view->sampler() : view->texture()->sampler();
        } else if (object) {
            const auto* texture = static_cast<const HostTexture*>(object);
            fill(*texture, nullptr, descriptors->texture);
            sampler = texture->sampler();
        }
        const SpyTexture* pointer = &descriptors->texture;
        std::memcpy(handle, &pointer, 8);
        handle += 8;
    } else {
        sampler = static_cast<const Sampler*>(object);
    }
    if (has_sampler(slot)) {
        fill(sampler ? sampler->desc() : SamplerDesc{}, descriptors->sampler);
        const SpySampler* pointer = &descriptors->sampler;
        std::memcpy(handle, &pointer, 8);
    }
}

} // namespace spy::cpu
