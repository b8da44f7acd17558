// The states in which commands find buffers and textures, and the order between commands of the open list.
#include "d3d12/barriers.h"

#include "d3d12/queue.h"

namespace spy {

namespace {

void transition(ID3D12GraphicsCommandList* commands, ID3D12Resource* resource, D3D12_RESOURCE_STATES before,
                D3D12_RESOURCE_STATES after)
{
    D3D12_RESOURCE_BARRIER barrier{};
    barrier.Type = D3D12_RESOURCE_BARRIER_TYPE_TRANSITION;
    barrier.Transition.pResource = resource;
    barrier.Transition.Subresource = D3D12_RESOURCE_BARRIER_ALL_SUBRESOURCES;
    barrier.Transition.StateBefore = before;
    barrier.Transition.StateAfter = after;
    commands->ResourceBarrier(1, &barrier);
}

bool is_copy(D3D12_RESOURCE_STATES state)
{
    return state == D3D12_RESOURCE_STATE_COPY_SOURCE || state == D3D12_RESOURCE_STATE_COPY_DEST;
}

} // namespace

void D3D12Barriers::use(D3D12Block& block, D3D12_RESOURCE_STATES state)
{
    D3D12List& list = m_queue.open_list();
    if (block.list != list.serial) {
        block.list = list.serial;
        block.state = D3D12_RESOURCE_STATE_COMMON;
        if (m_is_due && is_copy(state)) // a kernel may have written it by address
            all();
    }
    const bool again = block.state == state && state == D3D12_RESOURCE_STATE_COPY_DEST;
    if (again) { // copies to one buffer run in order only with a barrier between them
        transition(list.commands.get(), block.resource.get(), state, D3D12_RESOURCE_STATE_COMMON);
        transition(list.commands.get(), block.resource.get(), D3D12_RESOURCE_STATE_COMMON, state);
    } else if (block.state == D3D12_RESOURCE_STATE_COMMON) {
        // promoted to what the first use needs
    } else if (block.state != state) {
        transition(list.commands.get(), block.resource.get(), block.state, state);
    }
    if (is_copy(state) && !is_copy(block.state))
        list.copied.push_back(&block);
    block.state = state;
}

void D3D12Barriers::use(D3D12Texture& texture, D3D12_RESOURCE_STATES state)
{
    D3D12List& list = m_queue.open_list();
    const bool again = texture.state == state && state == D3D12_RESOURCE_STATE_COPY_DEST;
    if (texture.state == state && !again)
        return;
    list.textures.emplace_back(&texture, texture.state);
    if (again) {
        transition(list.commands.get(), texture.resource(), state, D3D12_RESOURCE_STATE_COMMON);
        transition(list.commands.get(), texture.resource(), D3D12_RESOURCE_STATE_COMMON, state);
    } else {
        transition(list.commands.get(), texture.resource(), texture.state, state);
    }
    texture.state = state;
}

void D3D12Barriers::prepare_dispatch()
{
    D3D12List& list = m_queue.open_list();
    for (D3D12Block* block : list.copied)
        if (is_copy(block->state)) {
            transition(list.commands.get(), block->resource.get(), block->state, D3D12_RESOURCE_STATE_UNORDERED_ACCESS);
            block->state = D3D12_RESOURCE_STATE_UNORDERED_ACCESS;
        }
    list.copied.clear();
    if (m_is_due)
        all();
}

void D3D12Barriers::all()
{
    D3D12_RESOURCE_BARRIER barrier{};
    barrier.Type = D3D12_RESOURCE_BARRIER_TYPE_UAV; // of no resource: of all
    m_queue.open_list().commands->ResourceBarrier(1, &barrier);
    m_is_due = false;
}

} // namespace spy
