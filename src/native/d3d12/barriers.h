#pragma once
// The states in which commands find buffers and textures, and the order between commands of the open list.
#include "d3d12/lists.h"

namespace spy {

class D3D12Queue;

/// The state in which shaders of every stage read textures and buffers.
inline constexpr auto shader_read_state = D3D12_RESOURCE_STATES(int(D3D12_RESOURCE_STATE_NON_PIXEL_SHADER_RESOURCE) |
                                                                int(D3D12_RESOURCE_STATE_PIXEL_SHADER_RESOURCE));

/// Of depth and stencil; other formats have the first alone.
struct PlaneStates {
    D3D12_RESOURCE_STATES first = D3D12_RESOURCE_STATE_COMMON, stencil = D3D12_RESOURCE_STATE_COMMON;
    PlaneStates(D3D12_RESOURCE_STATES both) : first(both), stencil(both) { }
    PlaneStates(D3D12_RESOURCE_STATES first, D3D12_RESOURCE_STATES stencil) : first(first), stencil(stencil) { }
};

/// All of these need the lock of the queue.
class D3D12Barriers {
public:
    explicit D3D12Barriers(D3D12Queue& queue) : m_queue(queue) { }
    /// Brings a resource into the state that the next command needs.
    void use(D3D12Block& block, D3D12_RESOURCE_STATES state);
    void use(D3D12Texture& texture, D3D12_RESOURCE_STATES state);
    /// Of a part of a texture, whose state as a whole stays what it is known to be.
    void use(D3D12Texture& texture, const SubresourceRange& range, const PlaneStates& before, const PlaneStates& after);
    /// Buffers that were copied, or that draws read, become what kernels can use; the writes of kernels before become
    /// visible.
    void prepare_dispatch();
    /// Kernels may have written anything: after a dispatch.
    void note_writes();
    /// Lists before may have done so.
    void begin_list() { m_is_due = true; }
    void all();

private:
    D3D12Queue& m_queue;
    bool m_is_due = false;
};

} // namespace spy
