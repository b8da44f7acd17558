#include "device/texel_format.h"

#include "core/align.h"
#include "core/error.h"

#include <algorithm>

namespace spy {

namespace {

constexpr size_t format_count = size_t(Format::count_);

const FormatInfo format_table[] = {
#define X(name, type, bytes, channels, bw, bh, b0, b1, b2, b3, dxgi, vk)                                               \
    {Format::name, #name, bytes, channels, FormatType::type, bw, bh, {b0, b1, b2, b3}, dxgi, vk},
    SPY_FORMAT_TABLE(X)
#undef X
};
static_assert(std::size(format_table) == format_count);

} // namespace

bool FormatInfo::is_depth() const
{
    return format == Format::d16_unorm || format == Format::d32_float || format == Format::d32_float_s8_uint;
}

bool FormatInfo::is_stencil() const { return format == Format::d32_float_s8_uint; }

bool FormatInfo::is_normalized_format() const
{
    return type == FormatType::unorm || type == FormatType::unorm_srgb || type == FormatType::snorm;
}

uint32_t FormatInfo::channel_bits(FormatChannels channels) const
{
    uint32_t bits = 0;
    for (uint32_t i = 0; i < channel_count; ++i)
        if (uint32_t(channels) & (1u << i))
            bits += channel_bit_count[i];
    return bits;
}

bool FormatInfo::has_equal_channel_bits() const
{
    if (is_compressed() || format == Format::rgb9e5_ufloat || channel_count == 0)
        return false;
    for (uint32_t i = 1; i < channel_count; ++i)
        if (channel_bit_count[i] != channel_bit_count[0])
            return false;
    return true;
}

const FormatInfo& format_info(Format format)
{
    if (size_t(format) >= format_count)
        fail_value("unknown format number ", uint32_t(format));
    return format_table[size_t(format)];
}

ScalarType host_scalar(Format format)
{
    const FormatInfo& info = format_info(format);
    if (!info.has_equal_channel_bits())
        return ScalarType::none;
    const uint32_t bits = info.channel_bit_count[0];
    switch (info.type) {
    case FormatType::float_:
        return bits == 16 ? ScalarType::float16 : bits == 32 ? ScalarType::float32 : ScalarType::none;
    case FormatType::uint:
    case FormatType::unorm:
    case FormatType::unorm_srgb: return scalar_from_dlpack(1, uint8_t(bits));
    case FormatType::sint:
    case FormatType::snorm: return scalar_from_dlpack(0, uint8_t(bits));
    case FormatType::unknown: break;
    }
    return ScalarType::none;
}

SubresourceLayout subresource_layout(Format format, uint32_t width, uint32_t height, uint32_t depth,
                                     uint64_t row_alignment)
{
    const FormatInfo& info = format_info(format);
    if (!info.bytes_per_block)
        fail_value("Invalid texture format.");
    row_alignment = row_alignment ? row_alignment : 1;
    SubresourceLayout layout{width, height, depth};
    layout.block_width = info.block_width;
    layout.block_height = info.block_height;
    const uint64_t columns = (uint64_t(width) + info.block_width - 1) / info.block_width;
    layout.row_count = (height + info.block_height - 1) / info.block_height;
    layout.col_pitch = info.bytes_per_block;
    layout.row_pitch = round_up(columns * info.bytes_per_block, row_alignment);
    layout.slice_pitch = layout.row_pitch * layout.row_count;
    layout.size_in_bytes = layout.slice_pitch * depth;
    return layout;
}

SubresourceLayout subresource_layout(const TextureDesc& desc, uint32_t mip, uint64_t row_alignment)
{
    auto level = [mip](uint32_t size) { return std::max(1u, size >> mip); };
    return subresource_layout(desc.format, level(desc.width), level(desc.height), level(desc.depth), row_alignment);
}

} // namespace spy
