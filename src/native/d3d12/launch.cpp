// Launches.
#include "d3d12/device.h"

#include "core/error.h"

namespace spy {

void D3D12Recorder::record_launch(D3D12Kernel& kernel, const std::array<uint32_t, 3>& groups,
                                  const ArgumentView& arguments)
{
    if (!groups[0] || !groups[1] || !groups[2])
        return;
    check_group_counts(m_info, kernel.label(), groups);
    m_bindings.record(kernel, arguments)->Dispatch(groups[0], groups[1], groups[2]);
    m_queue.barriers.note_writes();
    m_queue.timeline.note_label(kernel.label());
}

void D3D12Recorder::record(const command::Dispatch& command)
{
    const std::vector<std::span<const uint8_t>> scopes(command.scopes.begin(), command.scopes.end());
    record_launch(*static_cast<D3D12Kernel*>(command.kernel.get()), command.group_count, {scopes, command.slots});
}

void D3D12Recorder::record(const command::DispatchIndirect& command)
{
    auto& kernel = *static_cast<D3D12Kernel*>(command.kernel.get());
    D3D12Block& counts = *static_cast<D3D12Buffer*>(command.buffer.get())->block();
    const std::vector<std::span<const uint8_t>> scopes(command.scopes.begin(), command.scopes.end());
    // The counts lie in a copy: their own buffer may be one that the kernel writes.
    m_queue.open_list();
    D3D12Block* copy = m_memory.acquire(sizeof(D3D12_DISPATCH_ARGUMENTS), MemoryType::device_local, false);
    m_queue.discard(copy);
    record_copy(*copy, 0, counts, command.offset, sizeof(D3D12_DISPATCH_ARGUMENTS));
    ID3D12GraphicsCommandList* commands = m_bindings.record(kernel, {scopes, command.slots});
    m_queue.barriers.use(*copy, D3D12_RESOURCE_STATE_INDIRECT_ARGUMENT);
    commands->ExecuteIndirect(m_indirect.get(), 1, copy->resource.get(), 0, nullptr, 0);
    m_queue.barriers.note_writes();
    m_queue.timeline.note_label(kernel.label());
}

} // namespace spy
