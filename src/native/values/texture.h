#pragma once
// Textures as values: the dimensions that a call sees, and what of them decides a kernel.
#include "values/value.h"
#include "device/texel_format.h"

namespace spy {

/// What a Texture or TextureView argument shows of its texture.
struct TextureValue {
    const TextureDesc* desc;
    SubresourceRange range; ///< resolved; `mip` is the level whose texels are seen
    Format format;
    bool single_layer; ///< a view of one layer, which also fits parameters without layers
    bool stencil;      ///< a view of the stencil values
};

TextureValue texture_value(const Texture& texture);
TextureValue texture_value(const TextureView& view);

/// Slowest dimension first: (cubes, faces or layers, depth, height, width), as far as the type has them.
/// A view of a cube array that does not hold whole cubes has -1 cubes.
Shape texture_shape(const TextureValue& value);

} // namespace spy
