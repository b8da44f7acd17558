#include "core/error.h"
#include "cpu/cpu_backend.h"

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

} // namespace

CpuKernel::CpuKernel(ref<Device> device, const KernelDesc& desc)
    : Kernel(std::move(device), desc.layout, desc.label), m_library(std::make_unique<Library>(desc.code, desc.label))
{
    void* symbol = m_library->symbol(m_layout->entry_point_name);
    if (!symbol)
        fail_runtime("the compiled code of ", desc.label, " has no function '", m_layout->entry_point_name, "'");
    std::memcpy(&m_function, &symbol, sizeof(symbol));
    m_overrun = static_cast<std::atomic<int>*>(m_library->symbol("_spy_overrun"));

    for (const ScopeLayout& scope : m_layout->scopes) {
        m_scope_offsets.push_back(m_block_size);
        // 16 bytes more: Slang's structs may be rounded up beyond what reflection counts.
        m_block_size += (scope.size + 16 + 63) / 64 * 64;
    }
    m_block_size = std::max<uint64_t>(m_block_size, 64);
    for (const SlotLayout& slot : m_layout->slots) {
        if (!is_buffer(slot))
            continue; // a global that the kernel does not reach (slangpy/prelude.py): its place stays empty
        if (slot.scope >= m_layout->scopes.size()
            || slot.offset + sizeof(BufferView) > m_layout->scopes[slot.scope].size + 16)
            fail_runtime(desc.label, ": the layout places parameter '", slot.path, "' outside of its scope");
    }
    for (const ScopeLayout& scope : m_layout->scopes)
        if (scope.parent >= int32_t(m_layout->scopes.size())
            || (scope.parent >= 0 && scope.parent_offset + 8 > m_layout->scopes[size_t(scope.parent)].size + 16))
            fail_runtime(desc.label, ": the layout places block '", scope.path, "' outside of its scope");
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
            const uint64_t stride = slot.kind == SlotKind::structured_buffer && slot.element_stride ? slot.element_stride : 1;
            view = {buffer->host_pointer(), buffer->desc().size / stride};
        }
        std::memcpy(scope(block, slot.scope) + slot.offset, &view, sizeof(view));
    }
    for (size_t i = 0; i < layout.scopes.size(); ++i)
        if (layout.scopes[i].parent >= 0) {
            const uint8_t* pointer = scope(block, i);
            std::memcpy(scope(block, size_t(layout.scopes[i].parent)) + layout.scopes[i].parent_offset, &pointer, 8);
        }
}

} // namespace spy::cpu
