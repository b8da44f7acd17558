"""Levels of textures from other levels, by a kernel: `CommandEncoder.generate_mips` and `blit`."""

from __future__ import annotations

from typing import Any

from slangpy import _native
from slangpy._native import (
    BufferUsage,
    CommandEncoder,
    FormatChannels,
    FormatType,
    Texture,
    TextureFilteringMode,
    TextureType,
    TextureView,
)  # fmt: skip
from slangpy.compiler.kernel import create_compute_kernel
from slangpy.compiler.session import create_session

_DIMENSIONS = {
    TextureType.texture_1d: 1,
    TextureType.texture_1d_array: 1,
    TextureType.texture_3d: 3,
}
_MULTISAMPLED = (TextureType.texture_2d_ms, TextureType.texture_2d_ms_array)
_KINDS = {FormatType.float: 0, FormatType.unorm: 1, FormatType.snorm: 2, FormatType.unorm_srgb: 3}


def generate_mips(encoder: CommandEncoder, texture: Texture, layer: int = 0) -> None:
    """Fills the mips below the first of one layer, each from the one above by linear interpolation: where a size is even,
    the mean of two texels along that axis."""
    if not isinstance(texture, Texture):
        raise TypeError(f"generate_mips: expected a Texture, got {texture!r}")
    if not 0 <= layer < texture.layer_count:
        raise IndexError(f"generate_mips: 'layer' must be less than {texture.layer_count}, got {layer}")
    for mip in range(1, texture.mip_count):
        _resample(encoder, "generate_mips", (texture, layer, mip), (texture, layer, mip - 1), False)


def blit(
    encoder: CommandEncoder,
    dst: Texture | TextureView,
    src: Texture | TextureView,
    filter: TextureFilteringMode = TextureFilteringMode.linear,
) -> None:
    """Fills the first layer and mip of a texture or view with those of another, scaled to its size and converted to its
    format."""
    if not isinstance(filter, TextureFilteringMode):
        raise TypeError(f"blit: 'filter' must be a TextureFilteringMode, got {filter!r}")
    _resample(encoder, "blit", _place("dst", dst), _place("src", src), filter is TextureFilteringMode.point)


def _place(name: str, value: Any) -> tuple[Texture, int, int]:
    if isinstance(value, TextureView):
        span = value.subresource_range
        return value.texture, span.layer, span.mip
    if not isinstance(value, Texture):
        raise TypeError(f"blit: '{name}' must be a Texture or a TextureView, got {value!r}")
    return value, 0, 0


def _dimensions(what: str, texture: Texture) -> int:
    if texture.type in _MULTISAMPLED:
        raise ValueError(f"{what}: a texture of type {texture.type.name} has several samples; resolve it first")
    return _DIMENSIONS.get(texture.type, 2)


def _target(what: str, texture: Texture) -> dict[str, int]:
    info = _native.get_format_info(texture.format)
    if info.type not in _KINDS or not info.has_equal_channel_bits() or info.is_depth:
        raise ValueError(
            f"{what}: texels of format {info.name} cannot be written by interpolation; use a float, unorm or snorm format "
            "with channels of equal size"
        )
    return {
        "channels": info.channel_count,
        "bits": info.get_channel_bits(FormatChannels.r),
        "kind": _KINDS[info.type],
        "swapped": int(info.name.startswith("bgr")),
    }


def _resample(
    encoder: CommandEncoder, what: str, to: tuple[Texture, int, int], origin: tuple[Texture, int, int], nearest: bool
) -> None:
    target, target_layer, target_mip = to
    source, source_layer, source_mip = origin
    dimensions = _dimensions(what, target)
    if _dimensions(what, source) != dimensions:
        raise ValueError(f"{what}: 'src' is a {source.type.name} and 'dst' a {target.type.name}; dimensions must agree")
    if _native.get_format_info(source.format).is_integer_format():
        raise ValueError(f"{what}: 'src' is of format {source.format.name}, whose integers cannot be interpolated")
    form = _target(what, target)
    size = _sizes(target, target_mip)
    texel_bytes = form["channels"] * form["bits"] // 8
    words = -(-size[0] * size[1] * size[2] * texel_bytes // 4)
    result = encoder.device.create_buffer(
        size=4 * words, struct_size=4, usage=BufferUsage.unordered_access | BufferUsage.copy_source
    )
    values = {**form, "size": size, "source": _sizes(source, source_mip), "nearest": int(nearest), "words": words}
    _kernel(encoder.device, dimensions).dispatch(
        [words if texel_bytes < 4 else 4 * words // texel_bytes, 1, 1],
        command_encoder=encoder,
        source=source.create_view(layer=source_layer, layer_count=1, mip=source_mip, mip_count=1),
        target=values,
        result=result,
    )
    encoder.copy_buffer_to_texture(
        target, target_layer, target_mip, [0, 0, 0], result, 0, 4 * words, size[0] * texel_bytes
    )


def _sizes(texture: Texture, mip: int) -> list[int]:
    return [texture.get_mip_width(mip), texture.get_mip_height(mip), texture.get_mip_depth(mip)]


def _kernel(device: Any, dimensions: int) -> Any:
    known = device._state.resamplers.get(dimensions)
    if known is None:
        session: Any = create_session(device, held_by_device=True)
        module = session.load_module("slangpy_resample")
        program = session.link_program([module], [module.entry_point(f"resample_{dimensions}d")])
        known = device._state.resamplers[dimensions] = create_compute_kernel(device, program)
    return known
