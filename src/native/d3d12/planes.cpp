#include "d3d12/planes.h"

#include "core/align.h"
#include "d3d12/queue.h"

namespace spy {

namespace {

constexpr uint64_t row_alignment = 256;

D3D12_TEXTURE_COPY_LOCATION plane_location(const D3D12Texture& texture, UINT subresource, const TexelPlane& plane)
{
    D3D12_TEXTURE_COPY_LOCATION place{};
    place.pResource = texture.resource();
    place.Type = D3D12_TEXTURE_COPY_TYPE_SUBRESOURCE_INDEX;
    place.SubresourceIndex = subresource;
#ifdef _WIN32
    place.SubresourceIndex += plane.plane * texture.desc().mip_count * texture.desc().layer_count();
#else
    (void)plane; // libvkd3d goes by the format of the memory
#endif
    return place;
}

D3D12_TEXTURE_COPY_LOCATION memory_location(const D3D12Block& block, const TexelPlane& plane, Extent3 extent,
                                            const TexelBox& box)
{
    D3D12_TEXTURE_COPY_LOCATION place{};
    place.pResource = block.resource.get();
    place.Type = D3D12_TEXTURE_COPY_TYPE_PLACED_FOOTPRINT;
    place.PlacedFootprint.Offset = box.offset;
    place.PlacedFootprint.Footprint = {plane.format, extent.width, extent.height, 1,
                                       UINT(box.row_pitch / plane.texel_bytes * plane.pitch_bytes)};
    return place;
}

} // namespace

TexelPlane texel_plane(UINT plane)
{
#ifdef _WIN32
    return plane ? TexelPlane{1, DXGI_FORMAT_R8_TYPELESS, 1, 1} : TexelPlane{0, DXGI_FORMAT_R32_TYPELESS, 4, 4};
#else // which counts both planes where it takes a pitch, and copies one
    return plane ? TexelPlane{1, DXGI_FORMAT_X32_TYPELESS_G8X24_UINT, 1, 8}
                 : TexelPlane{0, DXGI_FORMAT_R32_FLOAT_X8X24_TYPELESS, 4, 8};
#endif
}

TexelBox box_of(const TexelPlane& plane, Extent3 extent)
{
    TexelBox box;
    box.row_bytes = uint64_t(extent.width) * plane.texel_bytes;
    box.row_pitch = round_up(uint64_t(extent.width) * plane.pitch_bytes, row_alignment) / plane.pitch_bytes *
        plane.texel_bytes;
    box.rows = extent.height;
    return box;
}

void record_plane_read(D3D12Queue& queue, D3D12Texture& texture, UINT subresource, const TexelPlane& plane,
                       Extent3 extent, D3D12Block& to, const TexelBox& box)
{
    queue.barriers.use(texture, D3D12_RESOURCE_STATE_COPY_SOURCE);
    queue.barriers.use(to, D3D12_RESOURCE_STATE_COPY_DEST);
    const D3D12_TEXTURE_COPY_LOCATION target = memory_location(to, plane, extent, box);
    const D3D12_TEXTURE_COPY_LOCATION source = plane_location(texture, subresource, plane);
    queue.begin_command()->CopyTextureRegion(&target, 0, 0, 0, &source, nullptr);
}

void record_plane_write(D3D12Queue& queue, D3D12Texture& texture, UINT subresource, const TexelPlane& plane,
                        Extent3 extent, D3D12Block& from, const TexelBox& box)
{
    queue.barriers.use(from, D3D12_RESOURCE_STATE_COPY_SOURCE);
    queue.barriers.use(texture, D3D12_RESOURCE_STATE_COPY_DEST);
    const D3D12_TEXTURE_COPY_LOCATION target = plane_location(texture, subresource, plane);
    const D3D12_TEXTURE_COPY_LOCATION source = memory_location(from, plane, extent, box);
    queue.begin_command()->CopyTextureRegion(&target, 0, 0, 0, &source, nullptr);
}

} // namespace spy
