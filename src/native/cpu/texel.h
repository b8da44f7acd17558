#pragma once
// Texels in memory and as numbers.
#include "../../slangpy/slang/host_cpp.h"
#include "cpu/blocks.h"
#include "device/texel_format.h"

namespace spy::cpu {

/// How the texels of a format are read and written; all are null for formats that kernels cannot use here.
struct TexelCodec {
    void (*decode)(const uint8_t* from, SpyTexel& to) = nullptr; ///< channels that the format lacks are 0, alpha 1
    BlockDecoder decode_block = nullptr;                         ///< of compressed formats, in place of `decode`
    void (*encode)(const SpyTexel& from, uint8_t* to) = nullptr; ///< null where kernels cannot write
    uint32_t bytes = 0, channels = 0;
    bool is_integer = false;

    bool is_readable() const { return decode || decode_block; }
};
const TexelCodec& texel_codec(uint32_t format);
inline const TexelCodec& texel_codec(Format format) { return texel_codec(uint32_t(format)); }

float srgb_to_linear(double value); ///< from 0 to 1
float srgb_to_linear(uint8_t value);

} // namespace spy::cpu
