#include "device/texture_shape.h"

#include "core/error.h"

namespace spy {

const char* type_name(TextureType type)
{
    constexpr const char* names[] = {"texture_1d",       "texture_1d_array", "texture_2d",
                                     "texture_2d_array", "texture_2d_ms",    "texture_2d_ms_array",
                                     "texture_3d",       "texture_cube",     "texture_cube_array"};
    return names[size_t(type)];
}

const char* slang_name(ResourceShape shape)
{
    constexpr const char* names[] = {"",
                                     "Texture1D",
                                     "Texture2D",
                                     "Texture3D",
                                     "TextureCube",
                                     "Buffer",
                                     "StructuredBuffer",
                                     "ByteAddressBuffer",
                                     "unknown",
                                     "acceleration structure",
                                     "SubpassInput",
                                     "Texture1DArray",
                                     "Texture2DArray",
                                     "TextureCubeArray",
                                     "Texture2DMS",
                                     "Texture2DMSArray"};
    return names[size_t(shape)];
}

ResourceShape shape_of(TextureType type)
{
    switch (type) {
    case TextureType::texture_1d: return ResourceShape::texture_1d;
    case TextureType::texture_1d_array: return ResourceShape::texture_1d_array;
    case TextureType::texture_2d: return ResourceShape::texture_2d;
    case TextureType::texture_2d_array: return ResourceShape::texture_2d_array;
    case TextureType::texture_2d_ms: return ResourceShape::texture_2d_multisample;
    case TextureType::texture_2d_ms_array: return ResourceShape::texture_2d_multisample_array;
    case TextureType::texture_3d: return ResourceShape::texture_3d;
    case TextureType::texture_cube: return ResourceShape::texture_cube;
    case TextureType::texture_cube_array: return ResourceShape::texture_cube_array;
    }
    return ResourceShape::none;
}

void refuse_samples(const TextureDesc& texture, const char* what)
{
    if (texture.sample_count > 1)
        fail_value(what, ": multisample textures cannot be copied to or from memory (this one has ",
                   texture.sample_count,
                   " samples); read their samples in a kernel, which writes them to a texture with sample_count=1");
}

} // namespace spy
