"""Levels of textures from other levels: `CommandEncoder.generate_mips` and `blit`.

On devices that draw in software, a triangle over the level does it where the format is a common one: kernels take twenty
times as long there. Else a kernel writes texels in the
bytes of their format into a buffer, which is then copied into the level: so every format of plain texels serves on every
device, also those that kernels cannot write there (sRGB, packed ones), and one kernel serves all formats of a class (floats,
unsigned or signed integers).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from slangpy import _native
from slangpy._native import (
    BufferUsage,
    CommandEncoder,
    DeviceType,
    Feature,
    Format,
    FormatType,
    LoadOp,
    ShaderCursor,
    Texture,
    TextureAddressingMode,
    TextureFilteringMode,
    TextureType,
    TextureUsage,
    TextureView,
)  # fmt: skip
from slangpy.base.typed import named_member
from slangpy.compiler.kernel import create_compute_kernel
from slangpy.compiler.session import create_session
from slangpy.graphics.pipeline import create_render_pipeline

_DIMENSIONS = {
    TextureType.texture_1d: 1,
    TextureType.texture_1d_array: 1,
    TextureType.texture_3d: 3,
}
_MULTISAMPLED = (TextureType.texture_2d_ms, TextureType.texture_2d_ms_array)
_KINDS = {
    FormatType.float: 0,
    FormatType.unorm: 1,
    FormatType.snorm: 2,
    FormatType.unorm_srgb: 3,
    FormatType.uint: 4,
    FormatType.sint: 5,
}
_CLASSES = {FormatType.uint: "uint", FormatType.sint: "sint"}
_SHAPES = {1: "of_1d", 2: "of_2d", 3: "of_3d"}
_WRITABLE = TextureUsage.render_target | TextureUsage.unordered_access
_ROW = 64 * 16384
"""Threads along x: groups of 64, of which every device takes 65535."""


@dataclass(frozen=True)
class _Level:
    """One mip of one layer, in a format."""

    name: str
    texture: Texture
    layer: int
    mip: int
    format: Format

    @property
    def size(self) -> list[int]:
        texture = self.texture
        return [texture.get_mip_width(self.mip), texture.get_mip_height(self.mip), texture.get_mip_depth(self.mip)]

    @property
    def kind(self) -> str:
        """The class of its format."""
        return _CLASSES.get(_native.get_format_info(self.format).type, "float")


def generate_mips(encoder: CommandEncoder, texture: Texture, layer: int = 0) -> None:
    """Fills the mips below the first of one layer, each from the one above by linear interpolation: where a size is even,
    the mean of two texels along that axis."""
    if not isinstance(texture, Texture):
        raise TypeError(f"generate_mips: 'texture' must be a Texture, got {texture!r}")
    if not 0 <= layer < texture.layer_count:
        raise IndexError(f"generate_mips: 'layer' must be less than {texture.layer_count}, got {layer}")
    levels = [_Level("texture", texture, layer, mip, texture.format) for mip in range(texture.mip_count)]
    _check("generate_mips", encoder, levels[0], levels[0])
    if levels[0].kind != "float":
        raise ValueError(
            f"generate_mips: 'texture' is of format {texture.format.name}, whose integers have no means; use a float, unorm "
            "or snorm format, or blit() level by level, which takes the nearest texel"
        )
    for above, below in pairwise(levels):
        _resample(encoder, below, above, False)


def blit(
    encoder: CommandEncoder,
    dst: Texture | TextureView,
    src: Texture | TextureView,
    filter: TextureFilteringMode | str = TextureFilteringMode.linear,
) -> None:
    """Fills the first layer and mip of a texture or view with those of another, scaled to its size and converted to its
    format. Integers are the nearest ones, whatever the filter."""
    filter = named_member("blit 'filter'", TextureFilteringMode, filter)
    to, origin = _level("dst", dst), _level("src", src)
    _check("blit", encoder, to, origin)
    if to.kind != origin.kind:
        raise ValueError(
            f"blit: 'src' is of format {origin.format.name} and 'dst' of {to.format.name}; integers go to integers of the "
            "same kind, and other formats among themselves"
        )
    _resample(encoder, to, origin, filter is TextureFilteringMode.point)


def _level(name: str, value: Any) -> _Level:
    if isinstance(value, TextureView):
        span = value.subresource_range
        format_ = value.texture.format if value.format == Format.undefined else value.format
        return _Level(name, value.texture, span.layer, span.mip, format_)
    if not isinstance(value, Texture):
        raise TypeError(f"blit: '{name}' must be a Texture or a TextureView, got {value!r}")
    return _Level(name, value, 0, 0, value.format)


def _check(what: str, encoder: CommandEncoder, to: _Level, origin: _Level) -> None:
    """Raises ValueError for textures that are not fit to be written, and read."""
    for level in (to, origin):
        texture = level.texture
        if texture.device is not encoder.device:
            raise ValueError(f"{what}: '{level.name}' belongs to another device than the encoder")
        if texture.type in _MULTISAMPLED:
            raise ValueError(
                f"{what}: '{level.name}' is of type {texture.type.name}, with several samples; resolve it first"
            )
    dimensions = [_DIMENSIONS.get(level.texture.type, 2) for level in (to, origin)]
    if dimensions[0] != dimensions[1]:
        raise ValueError(
            f"{what}: 'src' is a {origin.texture.type.name} and 'dst' a {to.texture.type.name}; dimensions must agree"
        )
    _channels(what, to)
    if not to.texture.desc.usage & _WRITABLE:
        raise ValueError(_lacks(what, to, "render_target or TextureUsage.unordered_access"))
    if not origin.texture.desc.usage & TextureUsage.shader_resource:
        raise ValueError(_lacks(what, origin, "shader_resource"))


def _lacks(what: str, level: _Level, needed: str) -> str:
    has = ", ".join(item.name or "" for item in TextureUsage if item.value and level.texture.desc.usage & item)
    return f"{what}: '{level.name}' must be made with TextureUsage.{needed}; its usage is {has or 'none'}"


def _channels(what: str, level: _Level) -> dict[str, Any]:
    """Where the channels of a texel lie, and how its numbers are written."""
    info = _native.get_format_info(level.format)
    bits = list(info.channel_bit_count)
    plain = info.type in _KINDS and sum(bits) == 8 * info.bytes_per_block and level.format != Format.rgb9e5_ufloat
    if not plain or info.is_depth or max(bits) > 32:
        raise ValueError(
            f"{what}: '{level.name}' is of format {info.name}, whose texels cannot be written; use a format without "
            "compression, shared exponent, depth or channels of 64 bits"
        )
    order = [2, 1, 0, 3] if info.name.startswith("b") else [0, 1, 2, 3]
    return {
        "bits": [bits[place] for place in order],
        "shift": [sum(bits[:place]) for place in order],
        "texel_bits": sum(bits),
        "kind": _KINDS[info.type],
        "opaque": int(info.name.startswith("bgrx")),
    }


def _resample(encoder: CommandEncoder, to: _Level, origin: _Level, nearest: bool) -> None:
    form, size = _channels(to.name, to), to.size
    if _can_draw(encoder.device, to, origin, form["bits"]):
        _draw(encoder, to, origin, {"size": size, "source": origin.size, "nearest": int(nearest)})
        return
    count, texel_bytes = size[0] * size[1] * size[2], form["texel_bits"] // 8
    words = -(-count * texel_bytes // 4)
    result = encoder.device.create_buffer(
        size=4 * words, struct_size=4, usage=BufferUsage.unordered_access | BufferUsage.copy_source
    )
    threads = -(-count // max(1, 4 // texel_bytes))
    row = min(threads, _ROW)
    shape, view, layer = _source(origin)
    values = {
        **form, "size": size, "source": origin.size, "given": _given(origin.format), "layer": layer,
        "nearest": int(nearest), "words": words, "row": row,
    }  # fmt: skip
    _kernel(encoder.device, f"{shape}_{to.kind}").dispatch(
        [row, -(-threads // row), 1], command_encoder=encoder, source=view, target=values, result=result
    )
    encoder.copy_buffer_to_texture(to.texture, to.layer, to.mip, [0, 0, 0], result, 0, 4 * words, size[0] * texel_bytes)


def _can_draw(device: Any, to: _Level, origin: _Level, bits: list[int]) -> bool:
    """Whether drawing gives the texels that the kernel gives, to one step of the format."""
    kind = _native.get_format_info(to.format).type
    is_common = kind == FormatType.float and set(bits) <= {0, 16, 32}
    is_common |= kind in (FormatType.unorm, FormatType.unorm_srgb) and set(bits) <= {0, 8}
    return (
        is_common
        and device.has_feature(Feature.rasterization)
        and device.has_feature(Feature.software_device)
        and bool(to.texture.desc.usage & TextureUsage.render_target)
        and to.texture is not origin.texture
        and all(_DIMENSIONS.get(level.texture.type, 2) == 2 for level in (to, origin))
        and not any(level.format.name.startswith("bgrx") for level in (to, origin))
        and not _native.get_format_info(origin.format).is_depth
        and not (origin.layer and device.info.type is DeviceType.d3d12)  # Texture2D shows layer 0 there
    )


def _draw(encoder: CommandEncoder, to: _Level, origin: _Level, values: dict[str, Any]) -> None:
    part: dict[str, Any] = {"mip": to.mip, "mip_count": 1, "layer": to.layer, "layer_count": 1}
    if to.format != to.texture.format:
        part["format"] = to.format
    is_copy = values["size"] == values["source"]
    pipeline = _pipeline(encoder.device, "as_it_is" if is_copy else "scaled", to.format)
    attachment = {"view": to.texture.create_view(**part), "load_op": LoadOp.dont_care}
    with encoder.begin_render_pass(color_attachments=[attachment]) as render_pass:
        cursor = ShaderCursor(render_pass.bind_pipeline(pipeline)).find_entry_point(1)
        cursor["source"] = _source(origin)[1]
        if is_copy:
            cursor["nearest"] = _nearest(encoder.device)
            cursor["size"] = values["size"][:2]
        else:
            cursor["target"] = values
        render_pass.draw(vertex_count=3)


def _pipeline(device: Any, fragment: str, format: Format) -> Any:
    name = f"{fragment} {format.name}"
    known = device._state.resamplers.get(name)
    if known is None:
        session: Any = create_session(device, held_by_device=True)
        module = session.load_module("slangpy_resample")
        program = session.link_program([module], [module.entry_point("whole"), module.entry_point(fragment)])
        known = create_render_pipeline(device, program, targets=[{"format": format}])
        device._state.resamplers[name] = known
    return known


def _nearest(device: Any) -> Any:
    known = device._state.resamplers.get("nearest")
    if known is None:
        point, edge = TextureFilteringMode.point, TextureAddressingMode.clamp_to_edge
        known = device._state.resamplers["nearest"] = device.create_sampler(
            min_filter=point, mag_filter=point, mip_filter=point, address_u=edge, address_v=edge
        )
    return known


def _given(format: Format) -> int:
    """How many channels texels of a format have."""
    info = _native.get_format_info(format)
    return 1 if info.is_depth else 3 if info.name.startswith("bgrx") else info.channel_count


def _source(origin: _Level) -> tuple[str, TextureView, int]:
    """The shape in which a kernel reads a level, the view for it, and the layer within."""
    texture = origin.texture
    part: dict[str, Any] = {"mip": origin.mip, "mip_count": 1}
    if origin.format != texture.format:
        part["format"] = origin.format
    dimensions = _DIMENSIONS.get(texture.type, 2)
    if origin.layer and dimensions == 2 and texture.device.info.type is DeviceType.d3d12:
        return "of_layers", texture.create_view(**part), origin.layer  # Texture2D shows layer 0 there
    return _SHAPES[dimensions], texture.create_view(layer=origin.layer, layer_count=1, **part), 0


def _kernel(device: Any, entry_point: str) -> Any:
    known = device._state.resamplers.get(entry_point)
    if known is None:
        session: Any = create_session(device, held_by_device=True)
        module = session.load_module("slangpy_resample")
        program = session.link_program([module], [module.entry_point(entry_point)])
        known = device._state.resamplers[entry_point] = create_compute_kernel(device, program)
    return known
