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

/// What draws read beside their shaders: vertices, indices, records of indirect draws.
constexpr int draw_states = int(D3D12_RESOURCE_STATE_VERTEX_AND_CONSTANT_BUFFER) |
    int(D3D12_RESOURCE_STATE_INDEX_BUFFER) | int(D3D12_RESOURCE_STATE_INDIRECT_ARGUMENT);

bool is_for_draws(D3D12_RESOURCE_STATES state) { return int(state) & draw_states; }

/// Kernels cannot write a buffer in this state.
bool is_fixed(D3D12_RESOURCE_STATES state) { return is_copy(state) || is_for_draws(state); }

/// A buffer may be in several of these at once.
bool is_read(D3D12_RESOURCE_STATES state) { return state && !(int(state) & ~(draw_states | int(shader_read_state))); }

} // namespace

void D3D12Barriers::use(D3D12Block& block, D3D12_RESOURCE_STATES state)
{
    if (block.type == MemoryType::upload && is_for_draws(state))
        return; // it is always in the state of all reads
    D3D12List& list = m_queue.open_list();
    if (block.list != list.serial) {
        block.list = list.serial;
        block.state = D3D12_RESOURCE_STATE_COMMON;
        if (m_is_due && is_copy(state)) // a kernel may have written it by address
            all();
        if (list.is_written && is_for_draws(state) && block.windows) {
            // What the barrier between kernels does not reach.
            transition(list.commands.get(), block.resource.get(), D3D12_RESOURCE_STATE_UNORDERED_ACCESS, state);
        }
    }
    if ((is_for_draws(block.state) || is_for_draws(state)) && is_read(block.state) && is_read(state))
        state = D3D12_RESOURCE_STATES(block.state | state);
    const bool again = block.state == state && state == D3D12_RESOURCE_STATE_COPY_DEST;
    if (again) { // copies to one buffer run in order only with a barrier between them
        transition(list.commands.get(), block.resource.get(), state, D3D12_RESOURCE_STATE_COMMON);
        transition(list.commands.get(), block.resource.get(), D3D12_RESOURCE_STATE_COMMON, state);
    } else if (block.state == D3D12_RESOURCE_STATE_COMMON) {
        // promoted to what the first use needs
    } else if (block.state != state) {
        transition(list.commands.get(), block.resource.get(), block.state, state);
    }
    if (is_fixed(state) && !is_fixed(block.state))
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

void D3D12Barriers::use(D3D12Texture& texture, const SubresourceRange& range, const PlaneStates& before,
                        const PlaneStates& after)
{
    const TextureDesc& desc = texture.desc();
    const UINT planes = format_info(desc.format).is_stencil() ? 2 : 1;
    std::vector<D3D12_RESOURCE_BARRIER> all; // at once: libvkd3d takes both planes together
    for (UINT plane = 0; plane < planes; ++plane)
        for (uint32_t layer = range.layer; layer < range.layer + range.layer_count; ++layer)
            for (uint32_t mip = range.mip; mip < range.mip + range.mip_count; ++mip) {
                const D3D12_RESOURCE_STATES from = plane ? before.stencil : before.first;
                const D3D12_RESOURCE_STATES to = plane ? after.stencil : after.first;
                if (from == to && before.first == before.stencil && after.first == after.stencil)
                    continue;
                D3D12_RESOURCE_BARRIER& barrier = all.emplace_back();
                barrier.Type = D3D12_RESOURCE_BARRIER_TYPE_TRANSITION;
                barrier.Transition.pResource = texture.resource();
                barrier.Transition.Subresource = texture.subresource(layer, mip) +
                    plane * desc.mip_count * desc.layer_count();
                barrier.Transition.StateBefore = from;
                barrier.Transition.StateAfter = to;
            }
    if (!all.empty())
        m_queue.open_list().commands->ResourceBarrier(UINT(all.size()), all.data());
}

void D3D12Barriers::note_writes()
{
    m_is_due = true;
    m_queue.open_list().is_written = true;
}

void D3D12Barriers::prepare_dispatch()
{
    D3D12List& list = m_queue.open_list();
    for (D3D12Block* block : list.copied)
        if (is_fixed(block->state)) {
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
