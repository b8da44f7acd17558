"""Textures as values: texel types by format, Slang's texture types, and textures as results."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from .. import _native
from ..base.scalars import FLOATS, INTEGERS, SCALARS
from ..errors import ResolveException
from .records import Vectorized

_TYPE = re.compile(r"^(RW|W|RasterizerOrdered|Feedback|)(Texture|Sampler)(1D|2D|3D|Cube)(MS|)(Array|)(?:<(.*)>)?$")
_RESULTS = {
    "float": ("32_float", (1, 2, 3, 4)), "half": ("16_float", (1, 2, 4)), "uint": ("32_uint", (1, 2, 3, 4)),
    "int": ("32_sint", (1, 2, 3, 4)), "uint16_t": ("16_uint", (1, 2, 4)), "int16_t": ("16_sint", (1, 2, 4)),
    "uint8_t": ("8_uint", (1, 2, 4)), "int8_t": ("8_sint", (1, 2, 4)),
}  # fmt: skip


@dataclass(frozen=True)
class Texel:
    """What one texel of a format is in a kernel: float, uint or int, and how many components."""

    scalar: str
    channels: int

    @property
    def name(self) -> str:
        return self.scalar if self.channels == 1 else f"vector<{self.scalar},{self.channels}>"


@dataclass(frozen=True)
class TextureType:
    """A texture type of Slang, from its full name."""

    access: str  # "", "RW", ...
    shape: str  # "2D", "2DArray", "2DMS", ...
    element: str
    combined: bool

    @property
    def writable(self) -> bool:
        return self.access not in ("", "Feedback")

    @property
    def base(self) -> str:
        return f"{self.access}{'Sampler' if self.combined else 'Texture'}{self.shape}"


def parse(full_name: str) -> TextureType | None:
    """None for names of other types."""
    found = _TYPE.match(full_name)
    if found is None:
        return None
    access, base, dims, samples, array, element = found.groups()
    element = element or ""
    if samples:  # Texture2DMS<T, samples>
        element = re.sub(r",\s*\d+$", "", element)
    return TextureType(access, dims + samples + array, element.strip(), base == "Sampler")


def format_info(format_name: str) -> Any:
    return _native.get_format_info(_native.Format[format_name])


def texel_of(format_name: str) -> Texel:
    """The texel type of a format; of depth and stencil, kernels see the depth."""
    info = format_info(format_name)
    kind = info.type.name
    scalar = {"uint": "uint", "sint": "int"}.get(kind, "float")
    if scalar != "float" and info.channel_bit_count[0] == 64:
        scalar += "64_t"
    return Texel(scalar, 1 if info.is_depth else info.channel_count)


def kind_of(scalar: str) -> str:
    """float, int or uint: what of a scalar type must agree with a format."""
    if scalar in FLOATS:
        return "float"
    return "uint" if scalar.startswith("uint") else "int"


def shape_of(texture_type: str) -> str:
    """Slang's name of a texture's shape: texture_2d_array -> 2DArray."""
    parts = texture_type.split("_")[1:]
    names = {"1d": "1D", "2d": "2D", "3d": "3D", "cube": "Cube", "ms": "MS", "array": "Array"}
    return "".join(names[part] for part in parts)


def texel_shape(texture_type: str) -> str:
    """The shape as which texels are reached one by one: the faces of a cube are layers."""
    return {"Cube": "2DArray", "CubeArray": "2DArray"}.get(shape_of(texture_type), shape_of(texture_type))


def slang_format(format_name: str) -> str:
    """The [format("...")] of a storage image; empty where Slang has none for the format."""
    special = {"rgb10a2_unorm": "rgb10_a2", "rgb10a2_uint": "rgb10_a2ui", "r11g11b10_float": "r11f_g11f_b10f"}
    if format_name in special:
        return special[format_name]
    found = re.match(r"^(r|rg|rgba)(8|16|32|64)_(uint|sint|unorm|snorm|float)$", format_name)
    if found is None:
        return ""
    channels, bits, kind = found.groups()
    return channels + bits + {"uint": "ui", "sint": "i", "unorm": "", "snorm": "_snorm", "float": "f"}[kind]


def texels_differ(format_name: str, element: str) -> bool:
    """Whether a format does not store the components of the type `element` bit by bit."""
    found = re.match(r"^(?:vector<(\w+), ?(\d)>|(\w+))$", element)
    info = format_info(format_name)
    if found is None or info.is_normalized_format() or not info.has_equal_channel_bits():
        return True
    scalar = found.group(1) or found.group(3)
    known = SCALARS.get(scalar)
    bits = 8 * known.size if known is not None and scalar in INTEGERS + FLOATS else None
    return bits != info.channel_bit_count[0] or int(found.group(2) or 1) != info.channel_count


def storable(device: Any, format_name: str) -> bool:
    """Whether kernels of the device may write texels of a format."""
    support = _native.FormatSupport.shader_uav_store
    return (device.get_format_support(_native.Format[format_name]) & support) == support


# --- textures as results -----------------------------------------------------------------------------------------


def result_format(plan: Vectorized, device: Any) -> str:
    """Format of a texture result. Raises where the return type is no texel, or the call has no place in a texture."""
    type_ = plan.resolved.return_type
    name = plan.resolved.call_name
    if plan.call_rank not in (1, 2, 3):
        raise ResolveException(
            f"_result='texture' of '{name}': the call must be 1-D to 3-D, but it has {plan.call_rank} dimensions; "
            "use _result='tensor'"
        )
    count = 1 if type_.kind == "scalar" else type_.shape[0] if type_.kind == "vector" else 0
    suffix, counts = _RESULTS.get(type_.scalar, ("", ()))
    if count not in counts:
        raise ResolveException(
            f"_result='texture' of '{name}': {type_.full_name} can't be used as a texel type; texels have 1 to 4 "
            "components of float, int, uint, half, or 8- and 16-bit integers; use _result='tensor'"
        )
    found = "rgba"[:count] + suffix
    if not storable(device, found):
        raise ResolveException(
            f"_result='texture' of '{name}': {type_.full_name} can't be used as a texel type here, because this device "
            f"cannot store {found}; return 4 components, or use _result='tensor'"
        )
    return found


def make_texture(device: Any, format_name: str, shape: tuple[int, ...], label: str) -> Any:
    """A texture for the result of a call of this shape; its width is the last size."""
    kind = {1: "texture_1d", 2: "texture_2d", 3: "texture_3d"}[len(shape)]
    sizes = dict(zip(("width", "height", "depth"), reversed(shape), strict=False))
    usage = _native.TextureUsage.shader_resource | _native.TextureUsage.unordered_access
    return device.create_texture(
        type=_native.TextureType[kind], format=_native.Format[format_name], usage=usage, label=label, **sizes
    )


__all__ = ["Texel", "TextureType", "kind_of", "make_texture", "parse", "result_format", "slang_format", "texel_of"]
