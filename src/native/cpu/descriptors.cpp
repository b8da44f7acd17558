// Textures, buffers of texels and samplers as kernels read them.
#include "cpu/descriptors.h"

#include "core/error.h"
#include "cpu/device.h"
#include "cpu/texel.h"
#include "device/resource.h"

#include <algorithm>
#include <cstddef>

namespace spy::cpu {

namespace {

uint32_t dimensions_of(TextureType type)
{
    switch (type) {
    case TextureType::texture_1d:
    case TextureType::texture_1d_array: return 1;
    case TextureType::texture_3d: return 3;
    case TextureType::texture_cube:
    case TextureType::texture_cube_array: return 4;
    default: return 2;
    }
}

/// How kernels read texels of a format themselves; 0: they ask the device.
uint32_t plain_kind(Format format)
{
    switch (format) {
    case Format::r32_float: return 1;
    case Format::rg32_float: return 2;
    case Format::rgb32_float: return 3;
    case Format::rgba32_float: return 4;
    case Format::rgba8_unorm: return spy_plain_bytes;
    default: return 0;
    }
}

} // namespace

void fill(const HostTexture& texture, const TextureView* view, SpyTexture& out)
{
    const TextureDesc& desc = texture.desc();
    SubresourceRange range{0, desc.layer_count(), 0, desc.mip_count};
    Format format = desc.format;
    if (view) {
        range = view->desc().range;
        format = view->desc().format == Format::undefined ? format : view->desc().format;
    }
    out = {texture.subresource(0, 0),
           texture.offsets().data(),
           {desc.width, desc.height, desc.sample_count > 1 ? desc.sample_count : desc.depth},
           dimensions_of(desc.type),
           range.layer,
           range.layer_count,
           range.mip,
           range.mip_count,
           desc.mip_count,
           uint32_t(format),
           texture.subresource(range.layer, range.mip),
           std::max(1u, desc.width >> range.mip),
           std::max(1u, desc.height >> range.mip),
           dimensions_of(desc.type) == 2 ? plain_kind(format) : 0};
}

/// What follows the last whole element does not count.
void fill(const Buffer& buffer, const std::string& path, bool is_writable, SpyTexture& out)
{
    static const uint64_t no_offset = 0;
    const Format format = buffer.desc().format;
    if (format == Format::undefined)
        fail_value("parameter '", path, "' takes a buffer that was created with a format, and this one has none: give ",
                   "create_buffer a format, such as Format.r32_float");
    const TexelCodec& codec = texel_codec(format);
    if (!codec.decode || (is_writable && !codec.encode))
        fail_value("parameter '", path, "': the cpu device cannot ", codec.decode ? "write" : "read",
                   " buffers of format ", format_name(format));
    const uint64_t count = std::min<uint64_t>(buffer.desc().size / codec.bytes, 0x7fffffff);
    out.data = static_cast<uint8_t*>(buffer.host_pointer());
    out.offsets = &no_offset;
    out.size[0] = uint32_t(count);
    out.size[1] = out.size[2] = count ? 1 : 0;
    out.dimensions = 1;
    out.layer_count = out.mip_count = out.mip_stride = 1;
    out.format = uint32_t(format);
}

void fill(const SamplerDesc& desc, SpySampler& out)
{
    out.linear_min = desc.min_filter == TextureFilteringMode::linear;
    out.linear_mag = desc.mag_filter == TextureFilteringMode::linear;
    out.linear_mip = desc.mip_filter == TextureFilteringMode::linear;
    out.reduction = uint8_t(desc.reduction_op);
    out.comparison = uint8_t(desc.comparison_func);
    const TextureAddressingMode modes[3] = {desc.address_u, desc.address_v, desc.address_w};
    for (int axis = 0; axis < 3; ++axis)
        out.address[axis] = uint8_t(modes[axis]);
    std::copy(desc.border_color.begin(), desc.border_color.end(), out.border);
    out.lod_bias = desc.mip_lod_bias;
    out.min_lod = desc.min_lod;
    out.max_lod = desc.max_lod;
    out.is_bilinear = out.linear_min && out.linear_mag && desc.reduction_op == TextureReductionOp::average &&
        out.lod_bias == 0 && out.min_lod <= 0;
}

Descriptors& HandleDescriptors::take()
{
    if (m_free.empty())
        return m_all.emplace_back();
    Descriptors& descriptors = *m_free.back();
    m_free.pop_back();
    return descriptors;
}

void HandleDescriptors::give_back(Descriptors& descriptors) noexcept
{
    descriptors = {};
    descriptors.texture.mip_count = 1;
    m_free.push_back(&descriptors);
}

DescriptorHandle CpuDevice::make_handle(DeviceObject* object, DescriptorHandleType type)
{
    if (auto* buffer = dynamic_cast<Buffer*>(object))
        return {type, buffer->device_address(), buffer->desc().size};
    std::lock_guard lock(m_handles_mutex);
    Descriptors& descriptors = m_handles.take();
    if (auto* sampler = dynamic_cast<Sampler*>(object)) {
        fill(sampler->desc(), descriptors.sampler);
        return {type, uint64_t(&descriptors.sampler)};
    }
    const auto* view = dynamic_cast<TextureView*>(object);
    fill(*static_cast<const HostTexture*>(view ? view->texture() : object), view, descriptors.texture);
    if (type != DescriptorHandleType::combined_texture_sampler)
        return {type, uint64_t(&descriptors.texture)};
    fill(sampler_of(object)->desc(), descriptors.sampler);
    return {type, uint64_t(&descriptors.texture), uint64_t(&descriptors.sampler)};
}

void CpuDevice::drop_handle(const DescriptorHandle& handle) noexcept
{
    if (handle.type <= DescriptorHandleType::rw_buffer)
        return;
    const uint64_t offset = handle.type == DescriptorHandleType::sampler ? offsetof(Descriptors, sampler) : 0;
    std::lock_guard lock(m_handles_mutex);
    m_handles.give_back(*reinterpret_cast<Descriptors*>(handle.value - offset));
}

} // namespace spy::cpu
