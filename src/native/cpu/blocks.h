#pragma once
// Block-compressed texels (BC1 to BC7): 4 x 4 of them in 8 or 16 bytes.
#include "../../slangpy/slang/host_cpp.h"
#include "device/texel_format.h"

namespace spy::cpu {

/// Writes the 16 texels of a block, row by row. Channels that the format lacks are 0, alpha 1.
using BlockDecoder = void (*)(const uint8_t* block, SpyTexel* texels);

/// Null for formats that are not compressed.
BlockDecoder block_decoder(Format format);

namespace blocks {

/// BC6H and BC7, whose blocks say in which of several layouts they are.
void decode_bc6h(const uint8_t* block, bool is_signed, SpyTexel* texels);
void decode_bc7(const uint8_t* block, bool is_srgb, SpyTexel* texels);

} // namespace blocks

} // namespace spy::cpu
