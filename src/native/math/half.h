#pragma once
// 16-bit and 8-bit floats as storage: exact conversions, arithmetic is done in wider types.
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace spy {

/// IEEE 754 binary16 by its bits.
struct Float16 {
    uint16_t bits;
    friend constexpr bool operator==(Float16 a, Float16 b) = default; // bit equality: -0 != 0, a NaN equals itself
};
static_assert(sizeof(Float16) == 2);

/// Rounds once, to nearest, ties to even; overflow gives infinity, NaN stays NaN (made quiet).
constexpr Float16 float16_from_double(double value)
{
    const uint64_t bits = std::bit_cast<uint64_t>(value);
    const uint16_t sign = uint16_t((bits >> 48) & 0x8000);
    const int exponent = int((bits >> 52) & 0x7ff);
    const uint64_t fraction = bits & 0xfffffffffffffull;
    if (exponent == 0x7ff)
        return {uint16_t(sign | 0x7c00 | (fraction ? 0x200 | uint16_t(fraction >> 42) : 0))};
    const int e = exponent - 1023;
    if (e > 15)
        return {uint16_t(sign | 0x7c00)};
    // Subnormal results drop more bits; 54 and beyond is below half of the smallest one.
    const int dropped = e >= -14 ? 42 : 42 + (-14 - e);
    if (dropped > 53)
        return {sign};
    const uint64_t significand = e >= -14 ? fraction : fraction | (1ull << 52);
    uint64_t rounded = significand >> dropped;
    const uint64_t rest = significand & ((1ull << dropped) - 1);
    const uint64_t tie = 1ull << (dropped - 1);
    if (rest > tie || (rest == tie && (rounded & 1)))
        ++rounded;
    // A carry out of the fraction moves into the exponent field, up to infinity.
    const uint64_t base = e >= -14 ? uint64_t(e + 15) << 10 : 0;
    return {uint16_t(sign | (base + rounded))};
}

/// Exact.
constexpr float float16_to_float(Float16 half)
{
    const uint32_t sign = uint32_t(half.bits & 0x8000) << 16;
    const uint32_t exponent = (half.bits >> 10) & 0x1f;
    const uint32_t fraction = half.bits & 0x3ff;
    if (exponent == 0x1f)
        return std::bit_cast<float>(sign | 0x7f800000u | (fraction << 13));
    if (exponent)
        return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
    const float magnitude = float(fraction) * 0x1p-24f;
    return sign ? -magnitude : magnitude;
}

constexpr float bfloat16_to_float(uint16_t bits) { return std::bit_cast<float>(uint32_t(bits) << 16); }

/// 8-bit float with 5 exponent bits: the upper half of a binary16.
constexpr float float8_e5m2_to_float(uint8_t bits) { return float16_to_float({uint16_t(bits << 8)}); }

/// 8-bit float with 4 exponent bits (bias 7), no infinity, one NaN per sign.
constexpr float float8_e4m3_to_float(uint8_t bits)
{
    const int exponent = (bits >> 3) & 0xf;
    const int fraction = bits & 7;
    if (exponent == 0xf && fraction == 7)
        return std::numeric_limits<float>::quiet_NaN();
    const float scale = std::bit_cast<float>(uint32_t((exponent ? exponent : 1) - 7 - 3 + 127) << 23);
    const float magnitude = float(fraction + (exponent ? 8 : 0)) * scale;
    return bits & 0x80 ? -magnitude : magnitude;
}

} // namespace spy
