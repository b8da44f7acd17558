#pragma once
// The states in which commands find buffers and textures, and the order between commands of the open list.
#include "d3d12/lists.h"

namespace spy {

class D3D12Queue;

/// All of these need the lock of the queue.
class D3D12Barriers {
public:
    explicit D3D12Barriers(D3D12Queue& queue) : m_queue(queue) { }
    /// Brings a resource into the state that the next command needs.
    void use(D3D12Block& block, D3D12_RESOURCE_STATES state);
    void use(D3D12Texture& texture, D3D12_RESOURCE_STATES state);
    /// Buffers that were copied become what kernels can use; the writes of kernels before become visible.
    void prepare_dispatch();
    /// Kernels may have written anything: after a dispatch, and where a list begins.
    void note_writes() { m_is_due = true; }
    void all();

private:
    D3D12Queue& m_queue;
    bool m_is_due = false;
};

} // namespace spy
