"""Shapes: of calls and of textures."""

from __future__ import annotations

from .._native import (
    Shape as Shape,
    Texture,
    TextureType,
    TextureView,
)

__all__ = ["Shape", "get_texture_shape"]


def get_texture_shape(texture: Texture | TextureView, mip: int = 0) -> Shape:
    """The dimensions that a texture has as an argument: layers and faces, then texels, slowest first.

    A texture of W x H texels has shape (H, W); `mip` halves the texels, and counts from the first mip of a view.
    ValueError for a mip that the texture does not have.
    """
    if isinstance(texture, TextureView):
        first = texture.subresource_range
        base, owner, layers = first.mip, texture.texture, first.layer_count
    elif isinstance(texture, Texture):
        base, owner, layers = 0, texture, None
    else:
        raise TypeError(f"get_texture_shape: expected a Texture or TextureView, got {type(texture).__name__}")
    level = base + mip
    if mip < 0 or level >= owner.mip_count:
        raise ValueError(f"get_texture_shape: mip {mip} is out of range; the texture has {owner.mip_count} mips")
    kind = owner.type.name
    sizes = [max(1, size >> level) for size in (owner.depth, owner.height, owner.width)]
    texels = sizes[{"1d": 2, "3d": 0}.get(kind.split("_")[1], 1) :]
    faces = [6] if owner.type in (TextureType.texture_cube, TextureType.texture_cube_array) else []
    if owner.type is TextureType.texture_cube and layers is not None:
        faces = [layers]
    count = owner.array_length if layers is None else layers
    outer = [count] if kind.endswith("_array") and not faces else []
    if faces and kind.endswith("_array"):
        outer = [owner.array_length if layers is None else max(1, layers // 6)]
    return Shape([*outer, *faces, *texels])
