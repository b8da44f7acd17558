// The texture commands of CommandEncoder.
#include "core/error.h"
#include "device/encoder.h"
#include "device/resource.h"

#include <algorithm>

namespace spy {

namespace {

std::array<uint32_t, 3> mip_size(const TextureDesc& desc, uint32_t mip)
{
    return {std::max(1u, desc.width >> mip), std::max(1u, desc.height >> mip), std::max(1u, desc.depth >> mip)};
}

void check_location(const Device* device, const TextureLocation& place, const char* what)
{
    check_same_device(device, place.texture.get(), what);
    check_subresource(place.texture->desc(), place.layer, place.mip);
    const auto size = mip_size(place.texture->desc(), place.mip);
    const FormatInfo& info = format_info(place.texture->desc().format);
    if (place.offset.x > size[0] || place.offset.y > size[1] || place.offset.z > size[2])
        fail(ErrorKind::index, what, ": offset (", place.offset.x, ", ", place.offset.y, ", ", place.offset.z,
             ") is outside of the mip (", size[0], " x ", size[1], " x ", size[2], ")");
    if (place.offset.x % info.block_width || place.offset.y % info.block_height)
        fail_value(what, ": the offset must be a multiple of the ", info.block_width, " x ", info.block_height,
                   " blocks of ", info.name);
}

std::array<uint32_t, 3> room(const TextureLocation& place)
{
    const auto size = mip_size(place.texture->desc(), place.mip);
    return {size[0] - place.offset.x, size[1] - place.offset.y, size[2] - place.offset.z};
}

Extent3 resolve_extent(OptionalExtent wanted, std::array<uint32_t, 3> most, const char* call)
{
    std::array<uint32_t, 3> extent;
    for (size_t i = 0; i < 3; ++i) {
        extent[i] = wanted[i].value_or(most[i]);
        if (extent[i] > most[i])
            fail(ErrorKind::index, call, ": extent ", extent[i], " in ", "xyz"[i], " must be less than or equal ",
                 most[i]);
    }
    return {extent[0], extent[1], extent[2]};
}

bool is_empty(Extent3 extent) { return !extent.width || !extent.height || !extent.depth; }

/// Bytes from the first to the last texel of a box in a buffer.
uint64_t linear_size(Format format, Extent3 extent, uint64_t row_pitch, const char* call)
{
    const SubresourceLayout box = subresource_layout(format, extent.width, extent.height, extent.depth);
    if (row_pitch < box.row_pitch)
        fail_value(call, ": row pitch (", row_pitch, ") must be at least ", box.row_pitch);
    if (row_pitch % format_info(format).bytes_per_block)
        fail_value(call, ": row pitch (", row_pitch, ") must be a multiple of the texel size ",
                   format_info(format).bytes_per_block);
    return (uint64_t(extent.depth) * box.row_count - 1) * row_pitch + box.row_pitch;
}

} // namespace

void CommandEncoder::copy_texture(const TextureLocation& dst, const TextureLocation& src, OptionalExtent extent)
{
    check_recording("copy_texture");
    check_location(m_device.get(), dst, "copy_texture 'dst'");
    check_location(m_device.get(), src, "copy_texture 'src'");
    const FormatInfo& to = format_info(dst.texture->desc().format);
    const FormatInfo& from = format_info(src.texture->desc().format);
    if (to.bytes_per_block != from.bytes_per_block || to.block_width != from.block_width)
        fail_value("copy_texture: cannot copy from ", from.name, " to ", to.name, ": their texels differ in size");
    const uint32_t to_samples = dst.texture->desc().sample_count, from_samples = src.texture->desc().sample_count;
    if (to_samples != from_samples)
        fail_value("copy_texture: cannot copy from a texture of ", from_samples, " samples to one of ", to_samples,
                   "; average or pick samples in a kernel");
    std::array<uint32_t, 3> most = room(dst);
    const std::array<uint32_t, 3> available = room(src);
    for (size_t i = 0; i < 3; ++i)
        most[i] = std::min(most[i], available[i]);
    const Extent3 box = resolve_extent(extent, most, "copy_texture");
    if (dst.texture.get() == src.texture.get() && dst.layer == src.layer && dst.mip == src.mip)
        fail_value("copy_texture: source and destination are the same layer and mip of one texture");
    if (!is_empty(box))
        add(command::CopyTexture{dst.texture, dst.layer, dst.mip, dst.offset, src.texture, src.layer, src.mip,
                                 src.offset, box});
}

void CommandEncoder::copy_texture(ref<Texture> dst, SubresourceRange dst_range, Offset3 dst_offset, ref<Texture> src,
                                  SubresourceRange src_range, Offset3 src_offset, OptionalExtent extent)
{
    check_recording("copy_texture");
    check_same_device(m_device.get(), dst.get(), "copy_texture 'dst'");
    check_same_device(m_device.get(), src.get(), "copy_texture 'src'");
    dst_range = resolve_range(dst->desc(), dst_range);
    src_range = resolve_range(src->desc(), src_range);
    if (dst_range.layer_count != src_range.layer_count || dst_range.mip_count != src_range.mip_count)
        fail_value("copy_texture: the ranges differ: ", src_range.layer_count, " layers x ", src_range.mip_count,
                   " mips to ", dst_range.layer_count, " x ", dst_range.mip_count);
    for (uint32_t layer = 0; layer < dst_range.layer_count; ++layer)
        for (uint32_t mip = 0; mip < dst_range.mip_count; ++mip)
            copy_texture(TextureLocation{dst, dst_range.layer + layer, dst_range.mip + mip, dst_offset},
                         TextureLocation{src, src_range.layer + layer, src_range.mip + mip, src_offset}, extent);
}

void CommandEncoder::copy_texture_to_buffer(ref<Buffer> dst, uint64_t dst_offset, uint64_t dst_size,
                                            uint64_t dst_row_pitch, const TextureLocation& src, OptionalExtent extent)
{
    const char* call = "copy_texture_to_buffer";
    check_recording(call);
    check_same_device(m_device.get(), dst.get(), "copy_texture_to_buffer 'dst'");
    check_location(m_device.get(), src, "copy_texture_to_buffer 'src'");
    const Extent3 box = resolve_extent(extent, room(src), call);
    if (is_empty(box))
        return;
    check_buffer_range(dst.get(), dst_offset, dst_size, call);
    const uint64_t needed = linear_size(src.texture->desc().format, box, dst_row_pitch, call);
    if (needed > dst_size)
        fail_value(call, ": ", needed, " bytes do not fit 'dst_size' (", dst_size, ")");
    dst->set_content(ScalarType::none);
    add(command::CopyTextureToBuffer{std::move(dst), dst_offset, dst_row_pitch, src.texture, src.layer, src.mip,
                                     src.offset, box});
}

void CommandEncoder::copy_buffer_to_texture(const TextureLocation& dst, ref<Buffer> src, uint64_t src_offset,
                                            uint64_t src_size, uint64_t src_row_pitch, OptionalExtent extent)
{
    const char* call = "copy_buffer_to_texture";
    check_recording(call);
    check_same_device(m_device.get(), src.get(), "copy_buffer_to_texture 'src'");
    check_location(m_device.get(), dst, "copy_buffer_to_texture 'dst'");
    const Extent3 box = resolve_extent(extent, room(dst), call);
    if (is_empty(box))
        return;
    check_buffer_range(src.get(), src_offset, src_size, call);
    const uint64_t needed = linear_size(dst.texture->desc().format, box, src_row_pitch, call);
    if (needed > src_size)
        fail_value(call, ": ", needed, " bytes are needed, 'src_size' is ", src_size);
    add(command::CopyBufferToTexture{dst.texture, dst.layer, dst.mip, dst.offset, box, std::move(src), src_offset,
                                     src_row_pitch});
}

void CommandEncoder::upload_texture_data(const TextureLocation& dst, OptionalExtent extent,
                                         std::span<const uint8_t> data)
{
    check_recording("upload_texture_data");
    check_location(m_device.get(), dst, "upload_texture_data 'texture'");
    const Extent3 box = resolve_extent(extent, room(dst), "upload_texture_data");
    if (is_empty(box))
        return;
    const uint64_t needed = subresource_layout(dst.texture->desc().format, box.width, box.height, box.depth)
                                .size_in_bytes;
    if (needed != data.size())
        fail_value("upload_texture_data: got ", data.size(), " bytes, expected ", needed, " (", box.width, " x ",
                   box.height, " x ", box.depth, " texels of ", format_name(dst.texture->desc().format), ")");
    add(command::UploadTexture{dst.texture, dst.layer, dst.mip, dst.offset, box, {data.begin(), data.end()}});
}

void CommandEncoder::clear_texture(ref<Texture> texture, command::ClearTexture::Kind kind, SubresourceRange range,
                                   std::array<uint32_t, 4> bits)
{
    using Kind = command::ClearTexture::Kind;
    check_recording("clear_texture");
    check_same_device(m_device.get(), texture.get(), "clear_texture 'texture'");
    const FormatInfo& info = format_info(texture->desc().format);
    const Kind fitting = info.type == FormatType::uint ? Kind::uint_
        : info.type == FormatType::sint                ? Kind::sint
                                                       : Kind::float_;
    static const char* names[] = {"clear_texture_float", "clear_texture_uint", "clear_texture_sint"};
    if (info.is_depth_stencil())
        fail(ErrorKind::not_implemented, names[int(kind)], ": ", info.name,
             " is a depth format; upload the texels with upload_texture_data");
    if (info.is_compressed())
        fail_value(names[int(kind)], ": ", info.name, " is a compressed format; use upload_texture_data");
    if (kind != fitting)
        fail_value(names[int(kind)], ": textures of format ", info.name, " are cleared with ", names[int(fitting)]);
    range = resolve_range(texture->desc(), range);
    add(command::ClearTexture{kind, std::move(texture), range, bits});
}

} // namespace spy
