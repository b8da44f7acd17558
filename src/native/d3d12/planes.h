#pragma once
// Copies of textures that hold depth and stencil: one of each plane. The caller holds the device's lock.
#include "d3d12/recorder.h"

namespace spy {

/// Depth or stencil of a texture that has both, as a copy sees it.
struct TexelPlane {
    UINT plane = 0; ///< 0: depth
    DXGI_FORMAT format = DXGI_FORMAT_UNKNOWN;
    uint32_t texel_bytes = 0;
    uint32_t pitch_bytes = 0; ///< of a texel, as the pitch of rows counts them
};

/// 0: depth, 1: stencil.
TexelPlane texel_plane(UINT plane);
TexelBox box_of(const TexelPlane& plane, Extent3 extent);
void record_plane_read(D3D12Queue& queue, D3D12Texture& texture, UINT subresource, const TexelPlane& plane,
                       Extent3 extent, D3D12Block& to, const TexelBox& box);
void record_plane_write(D3D12Queue& queue, D3D12Texture& texture, UINT subresource, const TexelPlane& plane,
                        Extent3 extent, D3D12Block& from, const TexelBox& box);

} // namespace spy
