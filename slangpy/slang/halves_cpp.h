// Halves on the CPU where the processor, or its compiler, does not make them.
#pragma once

/// The bits of the half that is nearest to a float; of two, the even one.
inline constexpr uint16_t _spy_half_of_bits(uint32_t x)
{
    const uint32_t sign = x >> 16 & 0x8000u, rest = x & 0x7fffffffu;
    if (rest >= 0x7f800000u)
        return uint16_t(sign | 0x7c00u | (rest > 0x7f800000u ? 0x200u : 0u));
    if (rest >= 0x477ff000u)
        return uint16_t(sign | 0x7c00u);
    if (rest < 0x33000001u)
        return uint16_t(sign);
    const int exponent = int(rest >> 23) - 127;
    const uint32_t mantissa = (rest & 0x7fffffu) | 0x800000u;
    const int shift = exponent < -14 ? -1 - exponent : 13;
    uint32_t value = mantissa >> shift;
    const uint32_t lost = mantissa & ((1u << shift) - 1u), half = 1u << (shift - 1);
    value += lost > half || (lost == half && (value & 1u));
    return uint16_t(sign | (exponent < -14 ? value : value + (uint32_t(exponent + 14) << 10)));
}
