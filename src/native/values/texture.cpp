#include "values/texture.h"

#include <algorithm>

namespace spy {

TextureValue texture_value(const Texture& texture)
{
    const TextureDesc& desc = texture.desc();
    return {&desc, {0, desc.layer_count(), 0, desc.mip_count}, desc.format, false, false};
}

TextureValue texture_value(const TextureView& view)
{
    const TextureDesc& desc = view.texture()->desc();
    const Format format = view.desc().format == Format::undefined ? desc.format : view.desc().format;
    const bool stencil = view.desc().aspect == TextureAspect::stencil_only;
    return {&desc, view.desc().range, format, view.desc().range.layer_count == 1, stencil};
}

Shape texture_shape(const TextureValue& value)
{
    using T = TextureType;
    const TextureDesc& desc = *value.desc;
    auto level = [&](uint32_t size) { return int64_t(std::max(1u, size >> value.range.mip)); };
    const int64_t layers = value.range.layer_count;
    Shape shape;
    if (desc.type == T::texture_cube_array) {
        shape.push_back(layers % 6 ? -1 : layers / 6);
        shape.push_back(6);
    } else if (desc.type == T::texture_1d_array || desc.type == T::texture_2d_array || desc.type == T::texture_cube ||
               desc.type == T::texture_2d_ms_array) {
        shape.push_back(layers);
    }
    if (desc.type == T::texture_3d)
        shape.push_back(level(desc.depth));
    if (desc.type != T::texture_1d && desc.type != T::texture_1d_array)
        shape.push_back(level(desc.height));
    shape.push_back(level(desc.width));
    return shape;
}

} // namespace spy
