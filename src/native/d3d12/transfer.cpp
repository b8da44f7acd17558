// Recorded copies, fills, clears, queries and markers.
#include "d3d12/device.h"

#include "core/align.h"
#include "core/error.h"
#include "device/profile.h"
#include "device/texture_shape.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace spy {

namespace {

constexpr uint64_t fill_size = 1ull << 20; ///< of the memory that large fills are copied from
constexpr uint64_t pitch_alignment = 256, offset_alignment = 512;

D3D12Block& block_of(const ref<Buffer>& buffer) { return *static_cast<D3D12Buffer*>(buffer.get())->block(); }
D3D12Texture& d3d12(const ref<Texture>& texture) { return *static_cast<D3D12Texture*>(texture.get()); }

void refuse_depth_stencil(const D3D12Texture& texture, const char* what)
{
    if (format_info(texture.desc().format).is_stencil())
        fail(ErrorKind::not_implemented, what, ": textures of format ", format_name(texture.desc().format),
             " cannot be copied to or from memory; use d32_float");
    refuse_samples(texture.desc(), what);
}

D3D12_TEXTURE_COPY_LOCATION location(const D3D12Texture& texture, uint32_t layer, uint32_t mip)
{
    D3D12_TEXTURE_COPY_LOCATION place{};
    place.pResource = texture.resource();
    place.Type = D3D12_TEXTURE_COPY_TYPE_SUBRESOURCE_INDEX;
    place.SubresourceIndex = texture.subresource(layer, mip);
    return place;
}

D3D12_TEXTURE_COPY_LOCATION location(const D3D12Texture& texture, const D3D12Block& block, const TexelBox& box,
                                     Extent3 extent)
{
    const FormatInfo& format = format_info(texture.desc().format);
    D3D12_TEXTURE_COPY_LOCATION place{};
    place.pResource = block.resource.get();
    place.Type = D3D12_TEXTURE_COPY_TYPE_PLACED_FOOTPRINT;
    place.PlacedFootprint.Offset = box.offset;
    // Whole blocks, also where the last of a mip is cut off.
    place.PlacedFootprint.Footprint = {
        copy_format(texture.desc().format), UINT(round_up(extent.width, format.block_width)),
        UINT(round_up(extent.height, format.block_height)), extent.depth, UINT(box.row_pitch)};
    return place;
}

D3D12_BOX texel_box(Offset3 offset, Extent3 extent)
{
    return {offset.x, offset.y, offset.z, offset.x + extent.width, offset.y + extent.height, offset.z + extent.depth};
}

/// Where rows lie in a user's buffer. `row_pitch` 0 = tightly packed.
TexelBox user_box(const TexelBox& box, uint64_t offset, uint64_t row_pitch)
{
    return {offset, box.row_bytes, row_pitch ? row_pitch : box.row_bytes, box.rows, box.slices};
}

} // namespace

// --- life

void D3D12Recorder::open()
{
    D3D12_INDIRECT_ARGUMENT_DESC argument{};
    argument.Type = D3D12_INDIRECT_ARGUMENT_TYPE_DISPATCH;
    D3D12_COMMAND_SIGNATURE_DESC desc{};
    desc.ByteStride = sizeof(D3D12_DISPATCH_ARGUMENTS);
    desc.NumArgumentDescs = 1;
    desc.pArgumentDescs = &argument;
    d3d12_check(m_context.device->CreateCommandSignature(&desc, nullptr, iid_of<ID3D12CommandSignature>(),
                                                         m_indirect.put_void()),
                "CreateCommandSignature");
    m_zeros = m_memory.acquire(fill_size, MemoryType::device_local, false);
    const D3D12UploadSlice slice = m_uploads.slice(fill_size, 16);
    std::memset(slice.data, 0, fill_size);
    record_copy(*m_zeros, 0, *slice.block, slice.offset, fill_size);
}

void D3D12Recorder::close() noexcept
{
    for (D3D12Block* block : {std::exchange(m_zeros, nullptr), std::exchange(m_results, nullptr)})
        if (block)
            m_memory.recycle(block);
    m_indirect.reset();
}

// --- buffers

void D3D12Recorder::record_copy(D3D12Block& to, uint64_t to_offset, D3D12Block& from, uint64_t from_offset,
                                uint64_t size)
{
    if (!size)
        return;
    if (&to == &from) { // one buffer cannot be source and target at once
        D3D12Block* between = m_memory.acquire(size, MemoryType::device_local, false);
        m_queue.open_list();
        m_queue.discard(between);
        record_copy(*between, 0, from, from_offset, size);
        record_copy(to, to_offset, *between, 0, size);
        return;
    }
    m_queue.barriers.use(from, D3D12_RESOURCE_STATE_COPY_SOURCE);
    m_queue.barriers.use(to, D3D12_RESOURCE_STATE_COPY_DEST);
    m_queue.begin_command()->CopyBufferRegion(to.resource.get(), to_offset, from.resource.get(), from_offset, size);
}

void D3D12Recorder::record(const command::CopyBuffer& command)
{
    record_copy(block_of(command.dst), command.dst_offset, block_of(command.src), command.src_offset, command.size);
}

void D3D12Recorder::record(const command::FillBuffer& command)
{
    D3D12Block& target = block_of(command.buffer);
    D3D12Block* source = m_zeros;
    uint64_t source_offset = 0;
    if (command.value && command.size) {
        const uint64_t size = std::min(command.size, fill_size);
        const D3D12UploadSlice slice = m_uploads.slice(size, 16);
        for (uint64_t i = 0; i < size; ++i)
            slice.data[i] = uint8_t(command.value >> i % 4 * 8);
        source = slice.block;
        source_offset = slice.offset;
    }
    if (!command.size)
        return;
    m_queue.barriers.use(*source, D3D12_RESOURCE_STATE_COPY_SOURCE);
    m_queue.barriers.use(target, D3D12_RESOURCE_STATE_COPY_DEST);
    ID3D12GraphicsCommandList* commands = m_queue.begin_command();
    for (uint64_t done = 0; done < command.size; done += fill_size)
        commands->CopyBufferRegion(target.resource.get(), command.offset + done, source->resource.get(), source_offset,
                                   std::min(fill_size, command.size - done));
}

void D3D12Recorder::record(const command::UploadBuffer& command)
{
    if (command.data.empty())
        return;
    const D3D12UploadSlice slice = m_uploads.slice(command.data.size(), 16);
    std::memcpy(slice.data, command.data.data(), command.data.size());
    record_copy(block_of(command.buffer), command.offset, *slice.block, slice.offset, command.data.size());
}

// --- textures

TexelBox D3D12Recorder::box_of(const D3D12Texture& texture, Extent3 extent, const char* what) const
{
    refuse_depth_stencil(texture, what);
    const FormatInfo& format = format_info(texture.desc().format);
    TexelBox box;
    box.row_bytes = (extent.width + format.block_width - 1) / format.block_width * format.bytes_per_block;
    // libvkd3d counts a row in whole texels, and those of three components do not divide 256 bytes.
    box.row_pitch = round_up(box.row_bytes, format.bytes_per_block % 3 ? pitch_alignment : 3 * pitch_alignment);
    box.rows = (extent.height + format.block_height - 1) / format.block_height;
    box.slices = extent.depth;
    return box;
}

void D3D12Recorder::record_texture_read(D3D12Texture& texture, uint32_t layer, uint32_t mip, Offset3 offset,
                                        Extent3 extent, D3D12Block& to, const TexelBox& box)
{
    m_queue.barriers.use(texture, D3D12_RESOURCE_STATE_COPY_SOURCE);
    m_queue.barriers.use(to, D3D12_RESOURCE_STATE_COPY_DEST);
    const D3D12_TEXTURE_COPY_LOCATION target = location(texture, to, box, extent);
    const D3D12_TEXTURE_COPY_LOCATION source = location(texture, layer, mip);
    const D3D12_BOX texels = texel_box(offset, extent);
    m_queue.begin_command()->CopyTextureRegion(&target, 0, 0, 0, &source, &texels);
}

void D3D12Recorder::record_texture_write(D3D12Texture& texture, uint32_t layer, uint32_t mip, Offset3 offset,
                                         Extent3 extent, D3D12Block& from, const TexelBox& box)
{
    m_queue.barriers.use(from, D3D12_RESOURCE_STATE_COPY_SOURCE);
    m_queue.barriers.use(texture, D3D12_RESOURCE_STATE_COPY_DEST);
    const D3D12_TEXTURE_COPY_LOCATION target = location(texture, layer, mip);
    const D3D12_TEXTURE_COPY_LOCATION source = location(texture, from, box, extent);
    m_queue.begin_command()->CopyTextureRegion(&target, offset.x, offset.y, offset.z, &source, nullptr);
}

void D3D12Recorder::record_texture_upload(D3D12Texture& texture, uint32_t layer, uint32_t mip, Offset3 offset,
                                          Extent3 extent, const void* data)
{
    TexelBox box = box_of(texture, extent, "upload_texture_data");
    const D3D12UploadSlice slice = m_uploads.slice(box.size(), offset_alignment);
    for (uint64_t row = 0; row < box.rows * box.slices; ++row)
        std::memcpy(slice.data + row * box.row_pitch, static_cast<const uint8_t*>(data) + row * box.row_bytes,
                    box.row_bytes);
    box.offset = slice.offset;
    record_texture_write(texture, layer, mip, offset, extent, *slice.block, box);
}

void D3D12Recorder::record(const command::UploadTexture& command)
{
    record_texture_upload(d3d12(command.dst), command.layer, command.mip, command.offset, command.extent,
                          command.data.data());
}

void D3D12Recorder::record(const command::CopyTexture& command)
{
    D3D12Texture &dst = d3d12(command.dst), &src = d3d12(command.src);
    if (&dst == &src)
        fail(ErrorKind::not_implemented,
             "copy_texture: Direct3D 12 copies between two textures, not within one; copy to a "
             "second texture first");
    m_queue.barriers.use(src, D3D12_RESOURCE_STATE_COPY_SOURCE);
    m_queue.barriers.use(dst, D3D12_RESOURCE_STATE_COPY_DEST);
    const D3D12_TEXTURE_COPY_LOCATION target = location(dst, command.dst_layer, command.dst_mip);
    const D3D12_TEXTURE_COPY_LOCATION source = location(src, command.src_layer, command.src_mip);
    const D3D12_BOX texels = texel_box(command.src_offset, command.extent);
    m_queue.begin_command()->CopyTextureRegion(&target, command.dst_offset.x, command.dst_offset.y,
                                               command.dst_offset.z, &source, &texels);
}

void D3D12Recorder::record(const command::CopyTextureToBuffer& command)
{
    // Through memory with the rows that the API asks for: a user's rows may lie anywhere.
    D3D12Texture& src = d3d12(command.src);
    const TexelBox box = box_of(src, command.extent, "copy_texture_to_buffer");
    const TexelBox to = user_box(box, command.dst_offset, command.dst_row_pitch);
    m_queue.open_list();
    D3D12Block* between = m_memory.acquire(box.size(), MemoryType::device_local, false);
    m_queue.discard(between);
    record_texture_read(src, command.src_layer, command.src_mip, command.src_offset, command.extent, *between, box);
    D3D12Block& target = block_of(command.dst);
    m_queue.barriers.use(*between, D3D12_RESOURCE_STATE_COPY_SOURCE);
    m_queue.barriers.use(target, D3D12_RESOURCE_STATE_COPY_DEST);
    ID3D12GraphicsCommandList* commands = m_queue.begin_command();
    for (uint64_t row = 0; row < box.rows * box.slices; ++row)
        commands->CopyBufferRegion(target.resource.get(), to.offset + row * to.row_pitch, between->resource.get(),
                                   row * box.row_pitch, box.row_bytes);
}

void D3D12Recorder::record(const command::CopyBufferToTexture& command)
{
    D3D12Texture& dst = d3d12(command.dst);
    const TexelBox box = box_of(dst, command.extent, "copy_buffer_to_texture");
    const TexelBox from = user_box(box, command.src_offset, command.src_row_pitch);
    m_queue.open_list();
    D3D12Block* between = m_memory.acquire(box.size(), MemoryType::device_local, false);
    m_queue.discard(between);
    D3D12Block& source = block_of(command.src);
    m_queue.barriers.use(source, D3D12_RESOURCE_STATE_COPY_SOURCE);
    m_queue.barriers.use(*between, D3D12_RESOURCE_STATE_COPY_DEST);
    ID3D12GraphicsCommandList* commands = m_queue.begin_command();
    for (uint64_t row = 0; row < box.rows * box.slices; ++row)
        commands->CopyBufferRegion(between->resource.get(), row * box.row_pitch, source.resource.get(),
                                   from.offset + row * from.row_pitch, box.row_bytes);
    record_texture_write(dst, command.dst_layer, command.dst_mip, command.dst_offset, command.extent, *between, box);
}

void D3D12Recorder::record(const command::ClearTexture& command)
{
    D3D12Texture& texture = d3d12(command.texture);
    const FormatInfo& format = format_info(texture.desc().format);
    if (format.is_compressed())
        fail_value("clear_texture: textures of the compressed format ", format.name,
                   " cannot be cleared; upload blocks of zeros with upload_texture_data");
    if (!texture.can_clear())
        fail(ErrorKind::not_implemented,
             "clear_texture: the d3d12 device clears textures that kernels can write, and format ", format.name,
             " is none; write the texels with upload_texture_data");
    m_queue.open_list();
    m_queue.barriers.use(texture, D3D12_RESOURCE_STATE_UNORDERED_ACCESS);
    m_queue.barriers.all();
    for (uint32_t mip = command.range.mip; mip < command.range.mip + command.range.mip_count; ++mip) {
        const uint32_t index = m_descriptors.allocate(m_descriptors.resources, 1, m_queue, "clear_texture");
        TextureViewDesc view;
        view.range = {command.range.layer, command.range.layer_count, mip, 1};
        texture.write_view(view, texture.array_shape(), true, m_descriptors.resources.cpu(index));
        texture.write_view(view, texture.array_shape(), true, m_descriptors.host_copy(index));
        ID3D12GraphicsCommandList* commands = m_queue.begin_command();
        if (command.kind == command::ClearTexture::Kind::float_) {
            float values[4];
            std::memcpy(values, command.bits.data(), sizeof(values));
            commands->ClearUnorderedAccessViewFloat(m_descriptors.resources.gpu(index), m_descriptors.host_copy(index),
                                                    texture.resource(), values, 0, nullptr);
        } else {
            std::array<UINT, 4> values = command.bits; // the lower bits count; libvkd3d clamps what has more
            for (size_t i = 0; i < values.size(); ++i)
                if (const uint32_t bits = format.channel_bit_count[i]; bits < 32)
                    values[i] &= (1u << bits) - 1;
            commands->ClearUnorderedAccessViewUint(m_descriptors.resources.gpu(index), m_descriptors.host_copy(index),
                                                   texture.resource(), values.data(), 0, nullptr);
        }
        m_queue.barriers.note_writes();
    }
}

// --- queries, markers

void D3D12Recorder::record(const command::WriteTimestamp& command)
{
    auto* pool = static_cast<D3D12QueryPool*>(command.pool.get());
    m_queue.begin_command()->EndQuery(pool->handle(), D3D12_QUERY_TYPE_TIMESTAMP, command.index);
    pool->mark_written(command.index, m_queue.timeline.submitted() + 1);
}

void D3D12Recorder::record_timed(Device& device, const Command& command)
{
    timed(
        device, command, [&](const command::WriteTimestamp& c) { record(c); },
        [&] {
            std::visit(
                [&](const auto& c) {
                    if constexpr (requires { this->record(c); })
                        record(c);
                    else // encoders record these for devices with the feature 'rasterization' alone
                        fail(ErrorKind::not_implemented, "rasterisation is not implemented on d3d12");
                },
                command);
        });
}

void D3D12Recorder::record(const command::ResolveQuery& command)
{
    auto* pool = static_cast<D3D12QueryPool*>(command.pool.get());
    pool->require_written(command.index, command.count);
    D3D12Block& target = block_of(command.buffer);
    m_queue.barriers.use(target, D3D12_RESOURCE_STATE_COPY_DEST);
    m_queue.begin_command()->ResolveQueryData(pool->handle(), D3D12_QUERY_TYPE_TIMESTAMP, command.index, command.count,
                                              target.resource.get(), command.offset);
}

void D3D12Recorder::record(const command::Barrier&) { m_queue.barriers.all(); }

void D3D12Recorder::record(const command::DebugMarker& command)
{
    // What debuggers read; the encoding (1: ANSI text) is that of the API's own helper.
    using Kind = command::DebugMarker::Kind;
    ID3D12GraphicsCommandList* commands = m_queue.open_list().commands.get();
    const auto size = UINT(command.name.size() + 1);
    if (command.kind == Kind::push)
        commands->BeginEvent(1, command.name.c_str(), size);
    else if (command.kind == Kind::pop)
        commands->EndEvent();
    else
        commands->SetMarker(1, command.name.c_str(), size);
}

} // namespace spy
