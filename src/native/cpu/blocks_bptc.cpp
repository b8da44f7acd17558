// BC6H and BC7, as the Khronos Data Format Specification describes them (chapter "BPTC"). The tables are that
// chapter's.
#include "cpu/blocks.h"

#include "cpu/texel.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <vector>

namespace spy::cpu::blocks {
namespace {

/// Bit t: the subset of texel t.
constexpr uint16_t subsets_of_two[64] = {
    0xcccc, 0x8888, 0xeeee, 0xecc8, 0xc880, 0xfeec, 0xfec8, 0xec80, 0xc800, 0xffec, 0xfe80, 0xe800, 0xffe8,
    0xff00, 0xfff0, 0xf000, 0xf710, 0x008e, 0x7100, 0x08ce, 0x008c, 0x7310, 0x3100, 0x8cce, 0x088c, 0x3110,
    0x6666, 0x366c, 0x17e8, 0x0ff0, 0x718e, 0x399c, 0xaaaa, 0xf0f0, 0x5a5a, 0x33cc, 0x3c3c, 0x55aa, 0x9696,
    0xa55a, 0x73ce, 0x13c8, 0x324c, 0x3bdc, 0x6996, 0xc33c, 0x9966, 0x0660, 0x0272, 0x04e4, 0x4e40, 0x2720,
    0xc936, 0x936c, 0x39c6, 0x639c, 0x9336, 0x9cc6, 0x817e, 0xe718, 0xccf0, 0x0fcc, 0x7744, 0xee22,
};

/// Bits 2 t and 2 t + 1: the subset of texel t.
constexpr uint32_t subsets_of_three[64] = {
    0xaa685050, 0x6a5a5040, 0x5a5a4200, 0x5450a0a8, 0xa5a50000, 0xa0a05050, 0x5555a0a0, 0x5a5a5050,
    0xaa550000, 0xaa555500, 0xaaaa5500, 0x90909090, 0x94949494, 0xa4a4a4a4, 0xa9a59450, 0x2a0a4250,
    0xa5945040, 0x0a425054, 0xa5a5a500, 0x55a0a0a0, 0xa8a85454, 0x6a6a4040, 0xa4a45000, 0x1a1a0500,
    0x0050a4a4, 0xaaa59090, 0x14696914, 0x69691400, 0xa08585a0, 0xaa821414, 0x50a4a450, 0x6a5a0200,
    0xa9a58000, 0x5090a0a8, 0xa8a09050, 0x24242424, 0x00aa5500, 0x24924924, 0x24499224, 0x50a50a50,
    0x500aa550, 0xaaaa4444, 0x66660000, 0xa5a0a5a0, 0x50a050a0, 0x69286928, 0x44aaaa44, 0x66666600,
    0xaa444444, 0x54a854a8, 0x95809580, 0x96969600, 0xa85454a8, 0x80959580, 0xaa141414, 0x96960000,
    0xaaaa1414, 0xa05050a0, 0xa0a5a5a0, 0x96000000, 0x40804080, 0xa9a8a9a8, 0xaaaaaa44, 0x2a4a5254,
};

// The texel of a subset whose index has one bit less; in the first subset it is texel 0.
constexpr uint8_t anchor_second_of_two[64] = {
    15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 2,  8, 2,  2, 8,
    8,  15, 2,  8,  2,  2,  8,  8,  2,  2,  15, 15, 6,  8,  2,  8,  15, 15, 2, 8,  2, 2,
    2,  15, 15, 6,  6,  2,  6,  8,  15, 15, 2,  2,  15, 15, 15, 15, 15, 2,  2, 15,
};
constexpr uint8_t anchor_second_of_three[64] = {
    3, 3,  15, 15, 8, 3,  15, 15, 8,  8, 6,  6, 6,  5,  3,  3,  3, 3,  8, 15, 3, 3, 6, 10, 5, 8,  8, 6,  8,  5,  15, 15,
    8, 15, 3,  5,  6, 10, 8,  15, 15, 3, 15, 5, 15, 15, 15, 15, 3, 15, 5, 5,  5, 8, 5, 10, 5, 10, 8, 13, 15, 12, 3,  3,
};
constexpr uint8_t anchor_third[64] = {
    15, 8, 8, 3,  15, 15, 3,  8,  15, 15, 15, 15, 15, 15, 15, 8,  15, 8,  15, 3,  15, 8,
    15, 8, 3, 15, 6,  10, 15, 15, 10, 8,  15, 3,  15, 10, 10, 8,  9,  10, 6,  15, 8,  15,
    3,  6, 6, 8,  15, 3,  15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 3,  15, 15, 8,
};

uint32_t subset_of(uint32_t subsets, uint32_t partition, int texel)
{
    if (subsets == 2)
        return subsets_of_two[partition] >> texel & 1;
    return subsets == 3 ? subsets_of_three[partition] >> (2 * texel) & 3 : 0;
}

bool is_anchor(uint32_t subsets, uint32_t partition, int texel)
{
    if (texel == 0)
        return true;
    if (subsets == 2)
        return texel == anchor_second_of_two[partition];
    return subsets == 3 && (texel == anchor_second_of_three[partition] || texel == anchor_third[partition]);
}

/// Of 64: how much of the second end point there is.
uint32_t weight(uint32_t index, uint32_t bits)
{
    constexpr uint8_t two[] = {0, 21, 43, 64}, three[] = {0, 9, 18, 27, 37, 46, 55, 64};
    constexpr uint8_t four[] = {0, 4, 9, 13, 17, 21, 26, 30, 34, 38, 43, 47, 51, 55, 60, 64};
    return bits == 2 ? two[index] : bits == 3 ? three[index] : four[index];
}

class BitReader {
public:
    explicit BitReader(const uint8_t* block) { std::memcpy(m_words, block, 16); }
    uint32_t take(uint32_t count)
    {
        uint32_t value = 0;
        for (uint32_t i = 0; i < count; ++i, ++m_at)
            value |= uint32_t(m_words[m_at / 64] >> (m_at % 64) & 1) << i;
        return value;
    }

private:
    uint64_t m_words[2];
    uint32_t m_at = 0;
};

// --- BC7

struct Bc7Mode {
    uint8_t subsets, partition_bits, rotation_bits, selector_bits, color_bits, alpha_bits;
    uint8_t own_p_bits, shared_p_bits; ///< a lowest bit for each end point, or for each subset
    uint8_t index_bits, second_index_bits;
};

constexpr Bc7Mode bc7_modes[8] = {
    {3, 4, 0, 0, 4, 0, 1, 0, 3, 0}, {2, 6, 0, 0, 6, 0, 0, 1, 3, 0}, {3, 6, 0, 0, 5, 0, 0, 0, 2, 0},
    {2, 6, 0, 0, 7, 0, 1, 0, 2, 0}, {1, 0, 2, 1, 5, 6, 0, 0, 2, 3}, {1, 0, 2, 0, 7, 8, 0, 0, 2, 2},
    {1, 0, 0, 0, 7, 7, 1, 0, 4, 0}, {2, 6, 0, 0, 5, 5, 1, 0, 2, 0},
};

/// Two for each subset, of 8 bits.
using EndPoints = std::array<std::array<uint32_t, 4>, 6>;

EndPoints bc7_end_points(const Bc7Mode& mode, BitReader& bits)
{
    EndPoints ends{};
    const uint32_t count = mode.subsets * 2u;
    for (uint32_t c = 0; c < 4; ++c)
        for (uint32_t e = 0; e < count; ++e)
            ends[e][c] = bits.take(c < 3 ? mode.color_bits : mode.alpha_bits);
    const bool has_p = mode.own_p_bits || mode.shared_p_bits;
    uint32_t p = 0;
    for (uint32_t e = 0; e < count; ++e) {
        if (mode.own_p_bits || (mode.shared_p_bits && e % 2 == 0))
            p = bits.take(1);
        for (uint32_t c = 0; c < 4; ++c) {
            const uint32_t given = c < 3 ? mode.color_bits : mode.alpha_bits, size = given + has_p;
            if (!given) {
                ends[e][c] = 255;
                continue;
            }
            const uint32_t value = (has_p ? ends[e][c] << 1 | p : ends[e][c]) << (8 - size);
            ends[e][c] = value | value >> size;
        }
    }
    return ends;
}

void take_indices(BitReader& bits, uint32_t size, uint32_t subsets, uint32_t partition, std::array<uint8_t, 16>& out)
{
    for (int t = 0; t < 16; ++t)
        out[size_t(t)] = uint8_t(bits.take(size - is_anchor(subsets, partition, t)));
}

} // namespace

void decode_bc7(const uint8_t* block, bool is_srgb, SpyTexel* texels)
{
    BitReader bits(block);
    uint32_t number = 0;
    while (number < 8 && !bits.take(1))
        ++number;
    if (number == 8) { // reserved: all channels are 0
        std::fill_n(texels, 16, SpyTexel{{0, 0, 0, 0}});
        return;
    }
    const Bc7Mode& mode = bc7_modes[number];
    const uint32_t partition = bits.take(mode.partition_bits), rotation = bits.take(mode.rotation_bits);
    const bool swaps_indices = bits.take(mode.selector_bits);
    const EndPoints ends = bc7_end_points(mode, bits);
    std::array<uint8_t, 16> first{}, second{};
    take_indices(bits, mode.index_bits, mode.subsets, partition, first);
    if (mode.second_index_bits)
        take_indices(bits, mode.second_index_bits, 1, 0, second);
    for (int t = 0; t < 16; ++t) {
        const uint32_t subset = subset_of(mode.subsets, partition, t);
        uint32_t color = weight(first[size_t(t)], mode.index_bits), alpha = color;
        if (mode.second_index_bits)
            alpha = weight(second[size_t(t)], mode.second_index_bits);
        if (swaps_indices)
            std::swap(color, alpha);
        uint32_t value[4];
        for (uint32_t c = 0; c < 4; ++c) {
            const uint32_t w = c < 3 ? color : alpha;
            value[c] = ((64 - w) * ends[2 * subset][c] + w * ends[2 * subset + 1][c] + 32) >> 6;
        }
        if (rotation)
            std::swap(value[3], value[rotation - 1]);
        for (int c = 0; c < 4; ++c)
            texels[t].f[c] = is_srgb && c < 3 ? srgb_to_linear(uint8_t(value[c])) : float(value[c]) / 255;
    }
}

// --- BC6H

namespace {

struct Bc6hMode {
    uint8_t value; ///< of its first bits
    uint8_t subsets;
    uint8_t end_bits; ///< of the first end point
    uint8_t delta_bits[3];
    bool is_transformed; ///< the other end points are differences to the first
    /// After the bits of the mode, lowest first: a channel, an end point from 0 to 3, then "high bit:low bit" of what
    /// is there; where the lower bit comes first, it is the highest bit that comes first in the block.
    std::string_view fields;
};

constexpr Bc6hMode bc6h_modes[] = {
    {0x00,
     2,
     10,
     {5, 5, 5},
     true,
     "g2 4 b2 4 b3 4 r0 9:0 g0 9:0 b0 9:0 r1 4:0 g3 4 g2 3:0 g1 4:0 b3 0 g3 3:0 b1 4:0 b3 1 b2 3:0 r2 4:0 b3 2 r3 4:0 "
     "b3 3"},
    {0x01,
     2,
     7,
     {6, 6, 6},
     true,
     "g2 5 g3 4 g3 5 r0 6:0 b3 0 b3 1 b2 4 g0 6:0 b2 5 b3 2 g2 4 b0 6:0 b3 3 b3 5 b3 4 r1 5:0 g2 3:0 g1 5:0 g3 3:0 b1 "
     "5:0 "
     "b2 3:0 r2 5:0 r3 5:0"},
    {0x02,
     2,
     11,
     {5, 4, 4},
     true,
     "r0 9:0 g0 9:0 b0 9:0 r1 4:0 r0 10 g2 3:0 g1 3:0 g0 10 b3 0 g3 3:0 b1 3:0 b0 10 b3 1 b2 3:0 r2 4:0 b3 2 r3 4:0 b3 "
     "3"},
    {0x06,
     2,
     11,
     {4, 5, 4},
     true,
     "r0 9:0 g0 9:0 b0 9:0 r1 3:0 r0 10 g3 4 g2 3:0 g1 4:0 g0 10 g3 3:0 b1 3:0 b0 10 b3 1 b2 3:0 r2 3:0 b3 0 b3 2 r3 "
     "3:0 "
     "g2 4 b3 3"},
    {0x0a,
     2,
     11,
     {4, 4, 5},
     true,
     "r0 9:0 g0 9:0 b0 9:0 r1 3:0 r0 10 b2 4 g2 3:0 g1 3:0 g0 10 b3 0 g3 3:0 b1 4:0 b0 10 b2 3:0 r2 3:0 b3 1 b3 2 r3 "
     "3:0 "
     "b3 4 b3 3"},
    {0x0e,
     2,
     9,
     {5, 5, 5},
     true,
     "r0 8:0 b2 4 g0 8:0 g2 4 b0 8:0 b3 4 r1 4:0 g3 4 g2 3:0 g1 4:0 b3 0 g3 3:0 b1 4:0 b3 1 b2 3:0 r2 4:0 b3 2 r3 4:0 "
     "b3 3"},
    {0x12,
     2,
     8,
     {6, 5, 5},
     true,
     "r0 7:0 g3 4 b2 4 g0 7:0 b3 2 g2 4 b0 7:0 b3 3 b3 4 r1 5:0 g2 3:0 g1 4:0 b3 0 g3 3:0 b1 4:0 b3 1 b2 3:0 r2 5:0 r3 "
     "5:0"},
    {0x16,
     2,
     8,
     {5, 6, 5},
     true,
     "r0 7:0 b3 0 b2 4 g0 7:0 g2 5 g2 4 b0 7:0 g3 5 b3 4 r1 4:0 g3 4 g2 3:0 g1 5:0 g3 3:0 b1 4:0 b3 1 b2 3:0 r2 4:0 b3 "
     "2 "
     "r3 4:0 b3 3"},
    {0x1a,
     2,
     8,
     {5, 5, 6},
     true,
     "r0 7:0 b3 1 b2 4 g0 7:0 b2 5 g2 4 b0 7:0 b3 5 b3 4 r1 4:0 g3 4 g2 3:0 g1 4:0 b3 0 g3 3:0 b1 5:0 b2 3:0 r2 4:0 b3 "
     "2 "
     "r3 4:0 b3 3"},
    {0x1e,
     2,
     6,
     {6, 6, 6},
     false,
     "r0 5:0 g3 4 b3 0 b3 1 b2 4 g0 5:0 g2 5 b2 5 b3 2 g2 4 b0 5:0 g3 5 b3 3 b3 5 b3 4 r1 5:0 g2 3:0 g1 5:0 g3 3:0 b1 "
     "5:0 "
     "b2 3:0 r2 5:0 r3 5:0"},
    {0x03, 1, 10, {10, 10, 10}, false, "r0 9:0 g0 9:0 b0 9:0 r1 9:0 g1 9:0 b1 9:0"},
    {0x07, 1, 11, {9, 9, 9}, true, "r0 9:0 g0 9:0 b0 9:0 r1 8:0 r0 10 g1 8:0 g0 10 b1 8:0 b0 10"},
    {0x0b, 1, 12, {8, 8, 8}, true, "r0 9:0 g0 9:0 b0 9:0 r1 7:0 r0 10:11 g1 7:0 g0 10:11 b1 7:0 b0 10:11"},
    {0x0f, 1, 16, {4, 4, 4}, true, "r0 9:0 g0 9:0 b0 9:0 r1 3:0 r0 10:15 g1 3:0 g0 10:15 b1 3:0 b0 10:15"},
};

/// Where one bit of a block goes.
struct Bit {
    uint8_t channel, end, shift;
};

std::vector<Bit> parse(std::string_view fields)
{
    std::vector<Bit> bits;
    size_t at = 0;
    const auto number = [&] {
        int value = 0;
        for (; at < fields.size() && fields[at] >= '0' && fields[at] <= '9'; ++at)
            value = value * 10 + (fields[at] - '0');
        return value;
    };
    while (at < fields.size()) {
        const uint8_t channel = fields[at] == 'r' ? 0 : fields[at] == 'g' ? 1 : 2;
        ++at;
        const auto end = uint8_t(number());
        ++at; // the space
        const int high = number();
        int low = high;
        if (at < fields.size() && fields[at] == ':') {
            ++at;
            low = number();
        }
        if (low <= high)
            for (int shift = low; shift <= high; ++shift)
                bits.push_back({channel, end, uint8_t(shift)});
        else
            for (int shift = low; shift >= high; --shift)
                bits.push_back({channel, end, uint8_t(shift)});
        ++at; // the space
    }
    return bits;
}

/// The fields of all modes, taken apart once.
const std::vector<Bit>& bits_of(size_t mode)
{
    static const auto table = [] {
        std::array<std::vector<Bit>, std::size(bc6h_modes)> all;
        for (size_t i = 0; i < all.size(); ++i)
            all[i] = parse(bc6h_modes[i].fields);
        return all;
    }();
    return table[mode];
}

int32_t sign_extended(int32_t value, uint32_t bits)
{
    const int32_t sign = 1 << (bits - 1);
    return ((value & ((1 << bits) - 1)) ^ sign) - sign;
}

/// An end point as a number of 16 bits (17 with sign).
int32_t unquantized(int32_t value, uint32_t bits, bool is_signed)
{
    if (!is_signed) {
        if (bits >= 15 || value == 0)
            return value;
        return value == (1 << bits) - 1 ? 0xffff : ((value << 16) + 0x8000) >> bits;
    }
    if (bits >= 16)
        return value;
    const int32_t size = value < 0 ? -value : value;
    int32_t out = 0;
    if (size)
        out = size >= (1 << (bits - 1)) - 1 ? 0x7fff : ((size << 15) + 0x4000) >> (bits - 1);
    return value < 0 ? -out : out;
}

/// Interpolated numbers are bits of halves, of 31/64 (31/32 with sign) their size.
float as_float(int32_t value, bool is_signed)
{
    const int32_t size = value < 0 ? -value : value;
    const uint32_t scaled = uint32_t(is_signed ? size * 31 / 32 : size * 31 / 64);
    const auto bits = uint16_t(scaled | (value < 0 ? 0x8000 : 0));
    _Float16 half;
    std::memcpy(&half, &bits, 2);
    return float(half);
}

/// By end point and channel.
using HalfEnds = std::array<std::array<int32_t, 3>, 4>;

HalfEnds bc6h_end_points(const Bc6hMode& mode, const std::vector<Bit>& fields, bool is_signed, BitReader& bits)
{
    HalfEnds ends{};
    for (const Bit& bit : fields)
        ends[bit.end][bit.channel] |= int32_t(bits.take(1)) << bit.shift;
    for (size_t c = 0; c < 3; ++c) {
        if (is_signed)
            ends[0][c] = sign_extended(ends[0][c], mode.end_bits);
        for (size_t e = 1; e < mode.subsets * 2u; ++e) {
            if (mode.is_transformed || is_signed)
                ends[e][c] = sign_extended(ends[e][c], mode.delta_bits[c]);
            if (mode.is_transformed) {
                ends[e][c] = (ends[e][c] + ends[0][c]) & ((1 << mode.end_bits) - 1);
                if (is_signed)
                    ends[e][c] = sign_extended(ends[e][c], mode.end_bits);
            }
        }
        for (size_t e = 0; e < mode.subsets * 2u; ++e)
            ends[e][c] = unquantized(ends[e][c], mode.end_bits, is_signed);
    }
    return ends;
}

} // namespace

void decode_bc6h(const uint8_t* block, bool is_signed, SpyTexel* texels)
{
    BitReader bits(block);
    uint32_t value = bits.take(2);
    if (value > 1)
        value |= bits.take(3) << 2;
    size_t number = 0;
    while (number < std::size(bc6h_modes) && bc6h_modes[number].value != value)
        ++number;
    if (number == std::size(bc6h_modes)) { // reserved: black
        std::fill_n(texels, 16, SpyTexel{{0, 0, 0, 1}});
        return;
    }
    const Bc6hMode& mode = bc6h_modes[number];
    const HalfEnds ends = bc6h_end_points(mode, bits_of(number), is_signed, bits);
    const uint32_t partition = mode.subsets == 2 ? bits.take(5) : 0, index_bits = mode.subsets == 2 ? 3 : 4;
    for (int t = 0; t < 16; ++t) {
        const auto w = int32_t(weight(bits.take(index_bits - is_anchor(mode.subsets, partition, t)), index_bits));
        const size_t first = 2 * size_t(subset_of(mode.subsets, partition, t));
        for (size_t c = 0; c < 3; ++c)
            texels[t].f[c] = as_float((ends[first][c] * (64 - w) + ends[first + 1][c] * w + 32) >> 6, is_signed);
        texels[t].f[3] = 1;
    }
}

} // namespace spy::cpu::blocks
