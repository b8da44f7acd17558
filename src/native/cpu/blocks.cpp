// BC1 to BC5, as the Khronos Data Format Specification describes them (chapters "S3TC" and "RGTC"): end points are
// interpolated as they are, without rounding to 8 bits.
#include "cpu/blocks.h"

#include "cpu/texel.h"

#include <algorithm>
#include <cstring>

namespace spy::cpu {
namespace {

uint64_t bits_of(const uint8_t* from, int bytes)
{
    uint64_t bits = 0;
    std::memcpy(&bits, from, size_t(bytes));
    return bits;
}

struct Color {
    double c[3];
};

Color color_565(uint64_t word)
{
    return {{double(word >> 11 & 31) / 31, double(word >> 5 & 63) / 63, double(word & 31) / 31}};
}

Color mix(const Color& a, const Color& b, double part)
{
    Color out;
    for (int c = 0; c < 3; ++c)
        out.c[c] = a.c[c] + (b.c[c] - a.c[c]) * part;
    return out;
}

/// `has_holes`: blocks whose first end point is not the larger one have a transparent black (BC1).
void decode_colors(const uint8_t* block, bool is_srgb, bool has_holes, SpyTexel* texels)
{
    const uint64_t first = bits_of(block, 2), second = bits_of(block + 2, 2), indices = bits_of(block + 4, 4);
    const bool is_whole = !has_holes || first > second;
    const Color a = color_565(first), b = color_565(second);
    const Color palette[4] = {a, b, is_whole ? mix(a, b, 1 / 3.0) : mix(a, b, 0.5),
                              is_whole ? mix(a, b, 2 / 3.0) : Color{{0, 0, 0}}};
    SpyTexel colors[4];
    for (int i = 0; i < 4; ++i) {
        for (int c = 0; c < 3; ++c)
            colors[i].f[c] = is_srgb ? srgb_to_linear(palette[i].c[c]) : float(palette[i].c[c]);
        colors[i].f[3] = is_whole || i < 3 ? 1.f : 0.f;
    }
    for (int t = 0; t < 16; ++t)
        texels[t] = colors[indices >> (2 * t) & 3];
}

/// One channel of BC4, which is also the alpha of BC3.
void decode_channel(const uint8_t* block, bool is_signed, int channel, SpyTexel* texels)
{
    const auto end_point = [&](int i) { return is_signed ? int(int8_t(block[i])) : int(block[i]); };
    const double top = is_signed ? 127 : 255, lowest = is_signed ? -1 : 0;
    const double a = std::max(end_point(0) / top, lowest), b = std::max(end_point(1) / top, lowest);
    const int steps = end_point(0) > end_point(1) ? 7 : 5;
    float palette[8] = {float(a), float(b)};
    for (int i = 1; i < steps; ++i)
        palette[i + 1] = float((a * (steps - i) + b * i) / steps);
    if (steps == 5) {
        palette[6] = float(lowest);
        palette[7] = 1;
    }
    const uint64_t indices = bits_of(block + 2, 6);
    for (int t = 0; t < 16; ++t)
        texels[t].f[channel] = palette[indices >> (3 * t) & 7];
}

void clear(SpyTexel* texels) { std::fill_n(texels, 16, SpyTexel{{0, 0, 0, 1}}); }

template <bool is_srgb>
void bc1(const uint8_t* block, SpyTexel* texels)
{
    decode_colors(block, is_srgb, true, texels);
}

template <bool is_srgb>
void bc2(const uint8_t* block, SpyTexel* texels)
{
    decode_colors(block + 8, is_srgb, false, texels);
    const uint64_t alpha = bits_of(block, 8);
    for (int t = 0; t < 16; ++t)
        texels[t].f[3] = float(alpha >> (4 * t) & 15) / 15;
}

template <bool is_srgb>
void bc3(const uint8_t* block, SpyTexel* texels)
{
    decode_colors(block + 8, is_srgb, false, texels);
    decode_channel(block, false, 3, texels);
}

template <bool is_signed>
void bc4(const uint8_t* block, SpyTexel* texels)
{
    clear(texels);
    decode_channel(block, is_signed, 0, texels);
}

template <bool is_signed>
void bc5(const uint8_t* block, SpyTexel* texels)
{
    clear(texels);
    decode_channel(block, is_signed, 0, texels);
    decode_channel(block + 8, is_signed, 1, texels);
}

template <bool is_signed>
void bc6h(const uint8_t* block, SpyTexel* texels)
{
    blocks::decode_bc6h(block, is_signed, texels);
}

template <bool is_srgb>
void bc7(const uint8_t* block, SpyTexel* texels)
{
    blocks::decode_bc7(block, is_srgb, texels);
}

} // namespace

BlockDecoder block_decoder(Format format)
{
    switch (format) {
    case Format::bc1_unorm: return bc1<false>;
    case Format::bc1_unorm_srgb: return bc1<true>;
    case Format::bc2_unorm: return bc2<false>;
    case Format::bc2_unorm_srgb: return bc2<true>;
    case Format::bc3_unorm: return bc3<false>;
    case Format::bc3_unorm_srgb: return bc3<true>;
    case Format::bc4_unorm: return bc4<false>;
    case Format::bc4_snorm: return bc4<true>;
    case Format::bc5_unorm: return bc5<false>;
    case Format::bc5_snorm: return bc5<true>;
    case Format::bc6h_ufloat: return bc6h<false>;
    case Format::bc6h_sfloat: return bc6h<true>;
    case Format::bc7_unorm: return bc7<false>;
    case Format::bc7_unorm_srgb: return bc7<true>;
    default: return nullptr;
    }
}

} // namespace spy::cpu
