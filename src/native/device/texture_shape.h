#pragma once
// What kinds of textures are called, and which of Slang's texture types each is.
#include "core/layout.h"
#include "device/types.h"

namespace spy {

/// As Python spells it: "texture_2d_array".
const char* type_name(TextureType type);
/// As Slang spells it: "Texture2DArray".
const char* slang_name(ResourceShape shape);
ResourceShape shape_of(TextureType type);

/// ValueError for textures of several samples, of which no device has a layout in memory.
void refuse_samples(const TextureDesc& texture, const char* what);

} // namespace spy
