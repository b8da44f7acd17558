#pragma once
// Texel formats: the enum and the one table of their properties.
#include "core/format.h"
#include "device/types.h"

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace spy {

// name, type, bytes per block, channels, block width, block height, bits of each channel, DXGI number, Vulkan number
// (0: the API has no such format).
#define SPY_FORMAT_TABLE(X)                                                                                            \
    X(undefined, unknown, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)                                                                \
    X(r8_uint, uint, 1, 1, 1, 1, 8, 0, 0, 0, 62, 13)                                                                   \
    X(r8_sint, sint, 1, 1, 1, 1, 8, 0, 0, 0, 64, 14)                                                                   \
    X(r8_unorm, unorm, 1, 1, 1, 1, 8, 0, 0, 0, 61, 9)                                                                  \
    X(r8_snorm, snorm, 1, 1, 1, 1, 8, 0, 0, 0, 63, 10)                                                                 \
    X(rg8_uint, uint, 2, 2, 1, 1, 8, 8, 0, 0, 50, 20)                                                                  \
    X(rg8_sint, sint, 2, 2, 1, 1, 8, 8, 0, 0, 52, 21)                                                                  \
    X(rg8_unorm, unorm, 2, 2, 1, 1, 8, 8, 0, 0, 49, 16)                                                                \
    X(rg8_snorm, snorm, 2, 2, 1, 1, 8, 8, 0, 0, 51, 17)                                                                \
    X(rgba8_uint, uint, 4, 4, 1, 1, 8, 8, 8, 8, 30, 41)                                                                \
    X(rgba8_sint, sint, 4, 4, 1, 1, 8, 8, 8, 8, 32, 42)                                                                \
    X(rgba8_unorm, unorm, 4, 4, 1, 1, 8, 8, 8, 8, 28, 37)                                                              \
    X(rgba8_unorm_srgb, unorm_srgb, 4, 4, 1, 1, 8, 8, 8, 8, 29, 43)                                                    \
    X(rgba8_snorm, snorm, 4, 4, 1, 1, 8, 8, 8, 8, 31, 38)                                                              \
    X(bgra8_unorm, unorm, 4, 4, 1, 1, 8, 8, 8, 8, 87, 44)                                                              \
    X(bgra8_unorm_srgb, unorm_srgb, 4, 4, 1, 1, 8, 8, 8, 8, 91, 50)                                                    \
    X(bgrx8_unorm, unorm, 4, 4, 1, 1, 8, 8, 8, 8, 88, 44)                                                              \
    X(bgrx8_unorm_srgb, unorm_srgb, 4, 4, 1, 1, 8, 8, 8, 8, 93, 50)                                                    \
    X(r16_uint, uint, 2, 1, 1, 1, 16, 0, 0, 0, 57, 74)                                                                 \
    X(r16_sint, sint, 2, 1, 1, 1, 16, 0, 0, 0, 59, 75)                                                                 \
    X(r16_unorm, unorm, 2, 1, 1, 1, 16, 0, 0, 0, 56, 70)                                                               \
    X(r16_snorm, snorm, 2, 1, 1, 1, 16, 0, 0, 0, 58, 71)                                                               \
    X(r16_float, float_, 2, 1, 1, 1, 16, 0, 0, 0, 54, 76)                                                              \
    X(rg16_uint, uint, 4, 2, 1, 1, 16, 16, 0, 0, 36, 81)                                                               \
    X(rg16_sint, sint, 4, 2, 1, 1, 16, 16, 0, 0, 38, 82)                                                               \
    X(rg16_unorm, unorm, 4, 2, 1, 1, 16, 16, 0, 0, 35, 77)                                                             \
    X(rg16_snorm, snorm, 4, 2, 1, 1, 16, 16, 0, 0, 37, 78)                                                             \
    X(rg16_float, float_, 4, 2, 1, 1, 16, 16, 0, 0, 34, 83)                                                            \
    X(rgba16_uint, uint, 8, 4, 1, 1, 16, 16, 16, 16, 12, 95)                                                           \
    X(rgba16_sint, sint, 8, 4, 1, 1, 16, 16, 16, 16, 14, 96)                                                           \
    X(rgba16_unorm, unorm, 8, 4, 1, 1, 16, 16, 16, 16, 11, 91)                                                         \
    X(rgba16_snorm, snorm, 8, 4, 1, 1, 16, 16, 16, 16, 13, 92)                                                         \
    X(rgba16_float, float_, 8, 4, 1, 1, 16, 16, 16, 16, 10, 97)                                                        \
    X(r32_uint, uint, 4, 1, 1, 1, 32, 0, 0, 0, 42, 98)                                                                 \
    X(r32_sint, sint, 4, 1, 1, 1, 32, 0, 0, 0, 43, 99)                                                                 \
    X(r32_float, float_, 4, 1, 1, 1, 32, 0, 0, 0, 41, 100)                                                             \
    X(rg32_uint, uint, 8, 2, 1, 1, 32, 32, 0, 0, 17, 101)                                                              \
    X(rg32_sint, sint, 8, 2, 1, 1, 32, 32, 0, 0, 18, 102)                                                              \
    X(rg32_float, float_, 8, 2, 1, 1, 32, 32, 0, 0, 16, 103)                                                           \
    X(rgb32_uint, uint, 12, 3, 1, 1, 32, 32, 32, 0, 7, 104)                                                            \
    X(rgb32_sint, sint, 12, 3, 1, 1, 32, 32, 32, 0, 8, 105)                                                            \
    X(rgb32_float, float_, 12, 3, 1, 1, 32, 32, 32, 0, 6, 106)                                                         \
    X(rgba32_uint, uint, 16, 4, 1, 1, 32, 32, 32, 32, 3, 107)                                                          \
    X(rgba32_sint, sint, 16, 4, 1, 1, 32, 32, 32, 32, 4, 108)                                                          \
    X(rgba32_float, float_, 16, 4, 1, 1, 32, 32, 32, 32, 2, 109)                                                       \
    X(r64_uint, uint, 8, 1, 1, 1, 64, 0, 0, 0, 0, 110)                                                                 \
    X(r64_sint, sint, 8, 1, 1, 1, 64, 0, 0, 0, 0, 111)                                                                 \
    X(bgra4_unorm, unorm, 2, 4, 1, 1, 4, 4, 4, 4, 115, 1000340000)                                                     \
    X(b5g6r5_unorm, unorm, 2, 3, 1, 1, 5, 6, 5, 0, 85, 4)                                                              \
    X(bgr5a1_unorm, unorm, 2, 4, 1, 1, 5, 5, 5, 1, 86, 8)                                                              \
    X(rgb9e5_ufloat, float_, 4, 3, 1, 1, 9, 9, 9, 5, 67, 123)                                                          \
    X(rgb10a2_uint, uint, 4, 4, 1, 1, 10, 10, 10, 2, 25, 68)                                                           \
    X(rgb10a2_unorm, unorm, 4, 4, 1, 1, 10, 10, 10, 2, 24, 64)                                                         \
    X(r11g11b10_float, float_, 4, 3, 1, 1, 11, 11, 10, 0, 26, 122)                                                     \
    X(d16_unorm, unorm, 2, 1, 1, 1, 16, 0, 0, 0, 55, 124)                                                              \
    X(d32_float, float_, 4, 1, 1, 1, 32, 0, 0, 0, 40, 126)                                                             \
    X(d32_float_s8_uint, float_, 8, 2, 1, 1, 32, 8, 0, 0, 20, 130)                                                     \
    X(bc1_unorm, unorm, 8, 4, 4, 4, 0, 0, 0, 0, 71, 133)                                                               \
    X(bc1_unorm_srgb, unorm_srgb, 8, 4, 4, 4, 0, 0, 0, 0, 72, 134)                                                     \
    X(bc2_unorm, unorm, 16, 4, 4, 4, 0, 0, 0, 0, 74, 135)                                                              \
    X(bc2_unorm_srgb, unorm_srgb, 16, 4, 4, 4, 0, 0, 0, 0, 75, 136)                                                    \
    X(bc3_unorm, unorm, 16, 4, 4, 4, 0, 0, 0, 0, 77, 137)                                                              \
    X(bc3_unorm_srgb, unorm_srgb, 16, 4, 4, 4, 0, 0, 0, 0, 78, 138)                                                    \
    X(bc4_unorm, unorm, 8, 1, 4, 4, 0, 0, 0, 0, 80, 139)                                                               \
    X(bc4_snorm, snorm, 8, 1, 4, 4, 0, 0, 0, 0, 81, 140)                                                               \
    X(bc5_unorm, unorm, 16, 2, 4, 4, 0, 0, 0, 0, 83, 141)                                                              \
    X(bc5_snorm, snorm, 16, 2, 4, 4, 0, 0, 0, 0, 84, 142)                                                              \
    X(bc6h_ufloat, float_, 16, 3, 4, 4, 0, 0, 0, 0, 95, 143)                                                           \
    X(bc6h_sfloat, float_, 16, 3, 4, 4, 0, 0, 0, 0, 96, 144)                                                           \
    X(bc7_unorm, unorm, 16, 4, 4, 4, 0, 0, 0, 0, 98, 145)                                                              \
    X(bc7_unorm_srgb, unorm_srgb, 16, 4, 4, 4, 0, 0, 0, 0, 99, 146)                                                    \
    X(astc4x4_unorm, unorm, 16, 4, 4, 4, 0, 0, 0, 0, 0, 157)                                                           \
    X(astc4x4_unorm_srgb, unorm_srgb, 16, 4, 4, 4, 0, 0, 0, 0, 0, 158)                                                 \
    X(astc6x6_unorm, unorm, 16, 4, 6, 6, 0, 0, 0, 0, 0, 165)                                                           \
    X(astc6x6_unorm_srgb, unorm_srgb, 16, 4, 6, 6, 0, 0, 0, 0, 0, 166)                                                 \
    X(astc8x8_unorm, unorm, 16, 4, 8, 8, 0, 0, 0, 0, 0, 171)                                                           \
    X(astc8x8_unorm_srgb, unorm_srgb, 16, 4, 8, 8, 0, 0, 0, 0, 0, 172)

enum class Format : uint16_t {
#define X(name, ...) name,
    SPY_FORMAT_TABLE(X)
#undef X
        count_
};

enum class FormatType : uint8_t { unknown, float_, unorm, unorm_srgb, snorm, uint, sint };

enum class FormatChannels : uint32_t { none = 0, r = 1, g = 2, b = 4, a = 8, rg = 3, rgb = 7, rgba = 15 };

enum class FormatSupport : uint32_t {
    none = 0,
    buffer = 1,
    vertex_buffer = 2,
    index_buffer = 4,
    texture = 8,
    render_target = 16,
    depth_stencil = 32,
    blendable = 64,
    resolvable = 128,
    shader_load = 256,
    shader_sample = 512,
    shader_uav_load = 1024,
    shader_uav_store = 2048,
    shader_atomic = 4096,
    copy_source = 8192,
    copy_destination = 16384,
    multisampling = 32768, ///< targets of 4 samples
};

struct FormatInfo {
    Format format = Format::undefined;
    std::string_view name;
    uint32_t bytes_per_block = 0; ///< of one texel where blocks are 1 x 1
    uint32_t channel_count = 0;
    FormatType type = FormatType::unknown;
    uint32_t block_width = 0, block_height = 0;
    std::array<uint32_t, 4> channel_bit_count{}; ///< as stored; 0 for compressed formats
    uint32_t dxgi_format = 0, vk_format = 0;     ///< numbers of the APIs; 0 = none

    bool is_depth() const;
    bool is_stencil() const;
    bool is_depth_stencil() const { return is_depth() || is_stencil(); }
    bool is_compressed() const { return block_width > 1; }
    bool is_float_format() const { return type == FormatType::float_; }
    bool is_integer_format() const { return type == FormatType::uint || type == FormatType::sint; }
    bool is_normalized_format() const;
    bool is_srgb_format() const { return type == FormatType::unorm_srgb; }
    FormatChannels channels() const { return FormatChannels((1u << channel_count) - 1); }
    uint32_t channel_bits(FormatChannels channels) const; ///< sum over the channels named
    bool has_equal_channel_bits() const;
};

/// Throws for numbers outside the enum.
const FormatInfo& format_info(Format format);
/// Scalar of one channel as the host stores it (unorm8 -> uint8); none for packed and compressed formats.
ScalarType host_scalar(Format format);
inline std::string_view format_name(Format format) { return format_info(format).name; }

/// Bytes and shape of one layer and mip, rows in blocks. `row_alignment` 1 = tightly packed.
struct SubresourceLayout {
    uint32_t width = 1, height = 1, depth = 1;
    uint64_t col_pitch = 0, row_pitch = 0, slice_pitch = 0, size_in_bytes = 0;
    uint32_t block_width = 1, block_height = 1, row_count = 0;
};
SubresourceLayout subresource_layout(Format format, uint32_t width, uint32_t height, uint32_t depth,
                                     uint64_t row_alignment = 1);
SubresourceLayout subresource_layout(const TextureDesc& desc, uint32_t mip, uint64_t row_alignment = 1);

} // namespace spy
