// Executes a command list on host memory.
#include "device/host.h"

#include "core/error.h"
#include "device/profile.h"
#include "device/texel_format.h"
#include "device/texture_shape.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace spy {

namespace {

/// A box of texels in memory: where its first block is and how far apart rows and slices are.
struct Texels {
    uint8_t* data;
    uint64_t row_pitch, slice_pitch;
};

Texels texels_of(Texture* texture, uint32_t layer, uint32_t mip, Offset3 offset)
{
    const SubresourceLayout layout = subresource_layout(texture->desc(), mip);
    uint8_t* data = static_cast<HostTexture*>(texture)->subresource(layer, mip) + offset.z * layout.slice_pitch +
        offset.y / layout.block_height * layout.row_pitch + offset.x / layout.block_width * layout.col_pitch;
    return {data, layout.row_pitch, layout.slice_pitch};
}

void copy_texels(Texels dst, Texels src, Format format, Extent3 extent)
{
    const SubresourceLayout box = subresource_layout(format, extent.width, extent.height, extent.depth);
    for (uint32_t z = 0; z < extent.depth; ++z)
        for (uint32_t y = 0; y < box.row_count; ++y)
            std::memmove(dst.data + z * dst.slice_pitch + y * dst.row_pitch,
                         src.data + z * src.slice_pitch + y * src.row_pitch, box.row_pitch);
}

Texels buffer_texels(Buffer* buffer, uint64_t offset, uint64_t row_pitch, Format format, Extent3 extent)
{
    const uint32_t rows = subresource_layout(format, extent.width, extent.height, extent.depth).row_count;
    return {static_cast<uint8_t*>(buffer->host_pointer()) + offset, row_pitch, row_pitch * rows};
}

struct Executor {
    HostDevice& device;
    const Command& command;

    void launch(const ref<Kernel>& kernel, std::array<uint32_t, 3> groups,
                const std::vector<std::vector<uint8_t>>& scope_bytes, const std::vector<ref<Object>>& slots,
                const std::vector<ref<Object>>& keep_alive, std::span<const int64_t> shape = {})
    {
        std::vector<std::span<const uint8_t>> scopes(scope_bytes.begin(), scope_bytes.end());
        LaunchDesc desc;
        desc.kernel = kernel.get();
        desc.group_count = groups;
        desc.arguments = {scopes, slots, keep_alive};
        desc.shape = shape;
        device.launch(desc);
    }

    void operator()(const command::Dispatch& c)
    {
        launch(c.kernel, c.group_count, c.scopes, c.slots, c.keep_alive, c.shape);
    }

    void operator()(const command::DispatchIndirect& c)
    {
        std::array<uint32_t, 3> groups;
        device.read_buffer(c.buffer.get(), c.offset, groups.data(), sizeof(groups));
        if (groups[0] && groups[1] && groups[2])
            launch(c.kernel, groups, c.scopes, c.slots, c.keep_alive);
    }

    void operator()(const command::CopyBuffer& c)
    {
        std::memmove(static_cast<uint8_t*>(c.dst->host_pointer()) + c.dst_offset,
                     static_cast<uint8_t*>(c.src->host_pointer()) + c.src_offset, c.size);
    }

    void operator()(const command::FillBuffer& c)
    {
        uint8_t* data = static_cast<uint8_t*>(c.buffer->host_pointer()) + c.offset;
        if (!c.value) {
            std::memset(data, 0, c.size);
            return;
        }
        for (uint64_t i = 0; i < c.size; i += 4)
            std::memcpy(data + i, &c.value, std::min<uint64_t>(4, c.size - i));
    }

    void operator()(const command::UploadBuffer& c)
    {
        device.write_buffer(c.buffer.get(), c.offset, c.data.data(), c.data.size());
    }

    void operator()(const command::CopyTexture& c)
    {
        Texels to = texels_of(c.dst.get(), c.dst_layer, c.dst_mip, c.dst_offset);
        Texels from = texels_of(c.src.get(), c.src_layer, c.src_mip, c.src_offset);
        for (uint32_t sample = 0; sample < c.dst->desc().sample_count; ++sample) {
            copy_texels(to, from, c.dst->desc().format, c.extent);
            to.data += to.slice_pitch;
            from.data += from.slice_pitch;
        }
    }

    void operator()(const command::CopyTextureToBuffer& c)
    {
        refuse_samples(c.src->desc(), "copy_texture_to_buffer");
        const Format format = c.src->desc().format;
        copy_texels(buffer_texels(c.dst.get(), c.dst_offset, c.dst_row_pitch, format, c.extent),
                    texels_of(c.src.get(), c.src_layer, c.src_mip, c.src_offset), format, c.extent);
    }

    void operator()(const command::CopyBufferToTexture& c)
    {
        refuse_samples(c.dst->desc(), "copy_buffer_to_texture");
        const Format format = c.dst->desc().format;
        copy_texels(texels_of(c.dst.get(), c.dst_layer, c.dst_mip, c.dst_offset),
                    buffer_texels(c.src.get(), c.src_offset, c.src_row_pitch, format, c.extent), format, c.extent);
    }

    void operator()(const command::UploadTexture& c)
    {
        refuse_samples(c.dst->desc(), "upload_texture_data");
        const Format format = c.dst->desc().format;
        const SubresourceLayout box = subresource_layout(format, c.extent.width, c.extent.height, c.extent.depth);
        copy_texels(texels_of(c.dst.get(), c.layer, c.mip, c.offset),
                    {const_cast<uint8_t*>(c.data.data()), box.row_pitch, box.slice_pitch}, format, c.extent);
    }

    void operator()(const command::ClearTexture& c);

    void operator()(const command::WriteTimestamp& c) { static_cast<HostQueryPool*>(c.pool.get())->write(c.index); }

    void operator()(const command::ResolveQuery& c)
    {
        auto* out = static_cast<uint8_t*>(c.buffer->host_pointer()) + c.offset;
        std::vector<uint64_t> ticks(c.count);
        c.pool->get_results(c.index, c.count, ticks.data());
        std::memcpy(out, ticks.data(), c.count * sizeof(uint64_t));
    }

    void operator()(const command::Barrier&) { }
    void operator()(const command::DebugMarker&) { }
    void operator()(const command::Callback& c) { c.function(NativeHandle{}); }
    void operator()(const command::ClearDepthStencil& c);
    void operator()(const command::RenderPass& c) { device.run_render_pass(c); }
    void operator()(const RayCommand auto&) { device.run_ray_command(command); }
    void operator()(const command::ConvertCoopVecMatrices&) { } // encoders refuse it
};

double encoded_srgb(double linear)
{
    return linear <= 0.0031308 ? 12.92 * linear : 1.055 * std::pow(linear, 1 / 2.4) - 0.055;
}

/// One texel with the four clear components converted to the format's channels.
std::vector<uint8_t> clear_texel(const command::ClearTexture& c)
{
    const FormatInfo& info = format_info(c.texture->desc().format);
    const ScalarType scalar = host_scalar(info.format);
    const uint32_t bytes = scalar_info(scalar).size;
    const bool normalized = info.is_normalized_format();
    const bool is_blue_first = info.name[0] == 'b' && info.name[1] == 'g';
    std::vector<uint8_t> texel(info.bytes_per_block);
    for (uint32_t channel = 0; channel < info.channel_count; ++channel) {
        uint64_t raw = c.bits[channel];
        float value;
        std::memcpy(&value, &c.bits[channel], 4);
        if (c.kind == command::ClearTexture::Kind::float_ && normalized) {
            const bool is_signed = info.type == FormatType::snorm;
            const double top = double((1ull << (bytes * 8 - is_signed)) - 1);
            double clamped = std::min(1.f, std::max(is_signed ? -1.f : 0.f, value));
            if (info.type == FormatType::unorm_srgb && channel < 3)
                clamped = encoded_srgb(clamped);
            raw = uint64_t(int64_t(clamped * top + (value < 0 ? -.5 : .5)));
        } else if (scalar == ScalarType::float16) {
            const _Float16 half = _Float16(value);
            std::memcpy(&raw, &half, 2);
        } else if (c.kind == command::ClearTexture::Kind::sint) {
            raw = uint64_t(int64_t(int32_t(c.bits[channel])));
        }
        const uint32_t place = is_blue_first && channel < 3 ? 2 - channel : channel;
        std::memcpy(texel.data() + place * bytes, &raw, bytes);
    }
    return texel;
}

void Executor::operator()(const command::ClearTexture& c)
{
    if (host_scalar(c.texture->desc().format) == ScalarType::none)
        fail(ErrorKind::not_implemented, "clearing a texture of format ", format_name(c.texture->desc().format),
             " on the ", device.info().api_name, " device; upload the texels with upload_texture_data");
    const std::vector<uint8_t> texel = clear_texel(c);
    for (uint32_t layer = c.range.layer; layer < c.range.layer + c.range.layer_count; ++layer)
        for (uint32_t mip = c.range.mip; mip < c.range.mip + c.range.mip_count; ++mip) {
            const auto* texture = static_cast<HostTexture*>(c.texture.get());
            uint8_t* data = texture->subresource(layer, mip);
            const uint64_t size = texture->subresource_size(mip);
            for (uint64_t i = 0; i < size; i += texel.size())
                std::memcpy(data + i, texel.data(), texel.size());
        }
}

void Executor::operator()(const command::ClearDepthStencil& c)
{
    const Format format = c.texture->desc().format;
    const auto* texture = static_cast<HostTexture*>(c.texture.get());
    const uint16_t depth16 = uint16_t(c.depth * 65535.f + .5f);
    const uint8_t stencil = uint8_t(c.stencil);
    const uint64_t step = format_info(format).bytes_per_block;
    for (uint32_t layer = c.range.layer; layer < c.range.layer + c.range.layer_count; ++layer)
        for (uint32_t mip = c.range.mip; mip < c.range.mip + c.range.mip_count; ++mip) {
            uint8_t* data = texture->subresource(layer, mip);
            for (uint64_t i = 0; i < texture->subresource_size(mip); i += step) {
                if (c.clear_depth && format == Format::d16_unorm)
                    std::memcpy(data + i, &depth16, 2);
                else if (c.clear_depth)
                    std::memcpy(data + i, &c.depth, 4);
                if (c.clear_stencil)
                    std::memcpy(data + i + 4, &stencil, 1);
            }
        }
}

void execute(HostDevice& device, const Command& command)
{
    const bool is_launch = std::holds_alternative<command::Dispatch>(command) ||
        std::holds_alternative<command::DispatchIndirect>(command);
    Profiler* const profiler = is_launch ? nullptr : device.profiler(); // launches are measured one by one
    const uint64_t begin = profiler ? host_ticks() : 0;
    std::visit(Executor{device, command}, command);
    if (profiler)
        profiler->note(work_of(command), begin, host_ticks());
}

} // namespace

void HostDevice::run_ray_command(const Command&) { require_acceleration(this, "acceleration structure"); }

void HostDevice::run_render_pass(const command::RenderPass&)
{
    require_rasterization(this, "render pass");
    fail(ErrorKind::not_implemented, "render passes are not implemented by this ", info().api_name, " device");
}

uint64_t HostDevice::submit(const SubmitDesc& desc)
{
    for (size_t i = 0; i < desc.wait_fences.size(); ++i)
        while (!desc.wait_fences[i]->wait(desc.wait_values[i], 100'000'000)) { }
    for (CommandBuffer* buffer : desc.command_buffers)
        for (const Command& command : buffer->commands())
            execute(*this, command);
    for (size_t i = 0; i < desc.signal_fences.size(); ++i)
        desc.signal_fences[i]->signal(desc.signal_values[i]);
    return ++m_submit_id;
}

} // namespace spy
