#include "cpu/texel.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

namespace spy::cpu {

float srgb_to_linear(double value)
{
    return float(value <= 0.04045 ? value / 12.92 : std::pow((value + 0.055) / 1.055, 2.4));
}

float srgb_to_linear(uint8_t value)
{
    static const std::array<float, 256> table = [] {
        std::array<float, 256> values{};
        for (int i = 0; i < 256; ++i)
            values[size_t(i)] = srgb_to_linear(i / 255.0);
        return values;
    }();
    return table[value];
}

namespace {

constexpr int identity[4] = {0, 1, 2, 3}, swapped[4] = {2, 1, 0, 3};

template <typename T>
T load(const uint8_t* from)
{
    T value;
    std::memcpy(&value, from, sizeof(T));
    return value;
}

template <typename T>
void store(uint8_t* to, T value)
{
    std::memcpy(to, &value, sizeof(T));
}

/// Within [low, high]; NaN is 0.
float within(float v, float low, float high) { return std::isnan(v) ? 0.f : std::min(std::max(v, low), high); }

uint32_t to_unorm(float v, uint32_t top) { return uint32_t(double(within(v, 0.f, 1.f)) * top + 0.5); }

uint8_t linear_to_srgb(float v)
{
    const double c = within(v, 0.f, 1.f);
    return uint8_t((c <= 0.0031308 ? 12.92 * c : 1.055 * std::pow(c, 1 / 2.4) - 0.055) * 255 + 0.5);
}

template <typename T, FormatType type>
float to_float(T v)
{
    if constexpr (type == FormatType::float_)
        return float(v);
    else if constexpr (type == FormatType::unorm)
        return float(v) / float(std::numeric_limits<T>::max());
    else
        return std::max(float(v) / float(std::numeric_limits<T>::max()), -1.f);
}

template <typename T, FormatType type>
T from_float(float v)
{
    if constexpr (type == FormatType::float_) {
        return T(v);
    } else if constexpr (type == FormatType::unorm) {
        return T(to_unorm(v, std::numeric_limits<T>::max()));
    } else {
        const double scaled = double(within(v, -1.f, 1.f)) * std::numeric_limits<T>::max();
        return T(int32_t(scaled + (scaled < 0 ? -0.5 : 0.5)));
    }
}

// --- channels of one type, one after the other

template <typename T, FormatType type, int N, bool swaps>
struct Plain {
    static constexpr bool is_integer = type == FormatType::uint || type == FormatType::sint;
    static constexpr const int* at = swaps ? swapped : identity;

    static void decode(const uint8_t* from, SpyTexel& to)
    {
        for (int c = 0; c < 4; ++c) {
            if constexpr (is_integer)
                to.i[c] = c < N ? int64_t(load<T>(from + c * sizeof(T))) : c == 3;
            else if constexpr (type == FormatType::unorm_srgb)
                to.f[at[c]] = c < N ? (c < 3 ? srgb_to_linear(from[c]) : from[c] / 255.f) : float(c == 3);
            else
                to.f[at[c]] = c < N ? to_float<T, type>(load<T>(from + c * sizeof(T))) : float(c == 3);
        }
    }
    static void encode(const SpyTexel& from, uint8_t* to)
    {
        for (int c = 0; c < N; ++c) {
            if constexpr (is_integer && sizeof(T) == 8)
                store<T>(to + c * 8, T(from.i[c]));
            else if constexpr (is_integer)
                store<T>(
                    to + c * sizeof(T),
                    T(std::clamp<int64_t>(from.i[c], std::numeric_limits<T>::min(), std::numeric_limits<T>::max())));
            else if constexpr (type == FormatType::unorm_srgb)
                to[c] = c < 3 ? linear_to_srgb(from.f[at[c]]) : uint8_t(to_unorm(from.f[c], 255));
            else
                store<T>(to + c * sizeof(T), from_float<T, type>(from.f[at[c]]));
        }
    }
};

/// Blue, green, red and a byte that is not used: alpha reads as 1.
template <FormatType type>
struct PlainX {
    static void decode(const uint8_t* from, SpyTexel& to)
    {
        Plain<uint8_t, type, 4, true>::decode(from, to);
        to.f[3] = 1;
    }
};

// --- channels of some bits, the first in the lowest

template <typename Word, bool swaps, bool is_integer, int... bits>
struct Packed {
    static constexpr int sizes[] = {bits...}, count = sizeof...(bits);
    static constexpr const int* at = swaps ? swapped : identity;

    static void decode(const uint8_t* from, SpyTexel& to)
    {
        const Word word = load<Word>(from);
        if constexpr (!is_integer)
            to.f[3] = 1;
        for (int c = 0, shift = 0; c < count; shift += sizes[c++]) {
            const uint32_t top = (1u << sizes[c]) - 1, value = uint32_t(word >> shift) & top;
            if constexpr (is_integer)
                to.i[at[c]] = value;
            else
                to.f[at[c]] = float(value) / float(top);
        }
    }
    static void encode(const SpyTexel& from, uint8_t* to)
    {
        uint32_t word = 0;
        for (int c = 0, shift = 0; c < count; shift += sizes[c++]) {
            const uint32_t top = (1u << sizes[c]) - 1;
            uint32_t value;
            if constexpr (is_integer)
                value = uint32_t(std::clamp<int64_t>(from.i[at[c]], 0, top));
            else
                value = to_unorm(from.f[at[c]], top);
            word |= value << shift;
        }
        store<Word>(to, Word(word));
    }
};

// --- floats without sign, with 5 bits of exponent

float small_float(uint32_t bits, int mantissa_bits)
{
    const uint32_t exponent = bits >> mantissa_bits, mantissa = bits & ((1u << mantissa_bits) - 1);
    if (exponent == 31)
        return mantissa ? std::numeric_limits<float>::quiet_NaN() : std::numeric_limits<float>::infinity();
    const float fraction = std::ldexp(float(mantissa), -mantissa_bits);
    return exponent ? std::ldexp(1 + fraction, int(exponent) - 15) : std::ldexp(fraction, -14);
}

/// Rounded towards zero, as Vulkan and D3D allow and hardware does; negative numbers are 0.
uint32_t to_small_float(float v, int mantissa_bits)
{
    const uint32_t infinity = 31u << mantissa_bits;
    if (std::isnan(v))
        return infinity | 1u << (mantissa_bits - 1);
    if (v <= 0)
        return 0;
    if (std::isinf(v))
        return infinity;
    int exponent;
    std::frexp(v, &exponent); // v = f * 2^exponent, f in [0.5, 1)
    exponent = std::max(exponent - 1, -14);
    const uint32_t mantissa = uint32_t(std::ldexp(double(v), mantissa_bits - exponent));
    const uint32_t bits = (uint32_t(exponent + 14) << mantissa_bits) + mantissa;
    return std::min(bits, infinity - 1);
}

struct Float11 {
    static void decode(const uint8_t* from, SpyTexel& to)
    {
        const uint32_t word = load<uint32_t>(from);
        to = {{small_float(word & 0x7ff, 6), small_float(word >> 11 & 0x7ff, 6), small_float(word >> 22, 5), 1}};
    }
    static void encode(const SpyTexel& from, uint8_t* to)
    {
        store(to,
              to_small_float(from.f[0], 6) | to_small_float(from.f[1], 6) << 11 | to_small_float(from.f[2], 5) << 22);
    }
};

struct SharedExponent {
    static void decode(const uint8_t* from, SpyTexel& to)
    {
        const uint32_t word = load<uint32_t>(from);
        const int exponent = int(word >> 27) - 24;
        for (int c = 0; c < 3; ++c)
            to.f[c] = std::ldexp(float(word >> (9 * c) & 0x1ff), exponent);
        to.f[3] = 1;
    }
};

template <typename Codec>
TexelCodec codec_of(bool is_integer)
{
    TexelCodec codec;
    codec.decode = Codec::decode;
    codec.is_integer = is_integer;
    if constexpr (requires { Codec::encode; })
        codec.encode = Codec::encode;
    return codec;
}

template <typename T, FormatType type, bool swaps>
TexelCodec plain_codec(uint32_t channels)
{
    constexpr bool is_integer = type == FormatType::uint || type == FormatType::sint;
    switch (channels) {
    case 1: return codec_of<Plain<T, type, 1, swaps>>(is_integer);
    case 2: return codec_of<Plain<T, type, 2, swaps>>(is_integer);
    case 3: return codec_of<Plain<T, type, 3, swaps>>(is_integer);
    default: return codec_of<Plain<T, type, 4, swaps>>(is_integer);
    }
}

TexelCodec equal_codec(const FormatInfo& info)
{
    const uint32_t bits = info.channel_bit_count[0], n = info.channel_count;
    switch (info.type) {
    case FormatType::uint:
        return bits == 8 ? plain_codec<uint8_t, FormatType::uint, false>(n)
            : bits == 16 ? plain_codec<uint16_t, FormatType::uint, false>(n)
            : bits == 32 ? plain_codec<uint32_t, FormatType::uint, false>(n)
                         : plain_codec<uint64_t, FormatType::uint, false>(n);
    case FormatType::sint:
        return bits == 8 ? plain_codec<int8_t, FormatType::sint, false>(n)
            : bits == 16 ? plain_codec<int16_t, FormatType::sint, false>(n)
            : bits == 32 ? plain_codec<int32_t, FormatType::sint, false>(n)
                         : plain_codec<int64_t, FormatType::sint, false>(n);
    case FormatType::unorm:
        return bits == 8 ? plain_codec<uint8_t, FormatType::unorm, false>(n)
                         : plain_codec<uint16_t, FormatType::unorm, false>(n);
    case FormatType::unorm_srgb: return plain_codec<uint8_t, FormatType::unorm_srgb, false>(n);
    case FormatType::snorm:
        return bits == 8 ? plain_codec<int8_t, FormatType::snorm, false>(n)
                         : plain_codec<int16_t, FormatType::snorm, false>(n);
    case FormatType::float_:
        return bits == 16 ? plain_codec<_Float16, FormatType::float_, false>(n)
                          : plain_codec<float, FormatType::float_, false>(n);
    case FormatType::unknown: break;
    }
    return {};
}

TexelCodec make_codec(const FormatInfo& info)
{
    using F = Format;
    switch (info.format) {
    case F::bgra8_unorm: return plain_codec<uint8_t, FormatType::unorm, true>(4);
    case F::bgra8_unorm_srgb: return plain_codec<uint8_t, FormatType::unorm_srgb, true>(4);
    case F::bgrx8_unorm: return codec_of<PlainX<FormatType::unorm>>(false);
    case F::bgrx8_unorm_srgb: return codec_of<PlainX<FormatType::unorm_srgb>>(false);
    case F::bgra4_unorm: return codec_of<Packed<uint16_t, true, false, 4, 4, 4, 4>>(false);
    case F::b5g6r5_unorm: return codec_of<Packed<uint16_t, true, false, 5, 6, 5>>(false);
    case F::bgr5a1_unorm: return codec_of<Packed<uint16_t, true, false, 5, 5, 5, 1>>(false);
    case F::rgb10a2_unorm: return codec_of<Packed<uint32_t, false, false, 10, 10, 10, 2>>(false);
    case F::rgb10a2_uint: return codec_of<Packed<uint32_t, false, true, 10, 10, 10, 2>>(true);
    case F::rgb9e5_ufloat: return codec_of<SharedExponent>(false);
    case F::r11g11b10_float: return codec_of<Float11>(false);
    case F::d16_unorm: return plain_codec<uint16_t, FormatType::unorm, false>(1);
    case F::d32_float:
    case F::d32_float_s8_uint: return plain_codec<float, FormatType::float_, false>(1);
    default: return info.is_compressed() || info.format == F::undefined ? TexelCodec{} : equal_codec(info);
    }
}

} // namespace

const TexelCodec& texel_codec(uint32_t format)
{
    static const auto table = [] {
        std::array<TexelCodec, size_t(Format::count_)> codecs;
        for (size_t i = 0; i < codecs.size(); ++i) {
            const FormatInfo& info = format_info(Format(i));
            codecs[i] = make_codec(info);
            codecs[i].decode_block = block_decoder(info.format);
            codecs[i].bytes = info.bytes_per_block;
            codecs[i].channels = info.is_depth() ? 1 : info.channel_count;
            if (info.is_depth())
                codecs[i].encode = nullptr;
        }
        return codecs;
    }();
    return table[format < table.size() ? format : 0];
}

} // namespace spy::cpu
