"""What the texture tests share: textures with known texels, and what formats make of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

import slangpy as spy

F = spy.Format
T = spy.TextureType
READ = spy.TextureUsage.shader_resource
WRITE = spy.TextureUsage.unordered_access


def made(device: Any, type_: Any, format_: Any, size: tuple[int, ...], usage: Any = READ | WRITE, **fields: Any) -> Any:
    """A texture of a size as NumPy has it: slowest first, without layers."""
    sizes = dict(zip(("width", "height", "depth"), reversed(size), strict=False))
    return device.create_texture(type=type_, format=format_, usage=usage, **sizes, **fields)


def layers_of(texture: Any, mip: int = 0) -> np.ndarray:
    return np.stack([texture.to_numpy(layer=k, mip=mip) for k in range(texture.layer_count)])


def filled(
    device: Any, type_: Any, size: tuple[int, ...], format_: Any = F.rgba32_float, seed: int = 0, **fields: Any
) -> Any:
    """A texture with random texels, and those: (layers, *size, channels)."""
    texture = made(device, type_, format_, size, **fields)
    info = spy.get_format_info(format_)
    channels = [info.channel_count] if info.channel_count > 1 else []
    data = random_texels(format_, (texture.layer_count, *size, *channels), seed)
    for layer in range(texture.layer_count):
        texture.copy_from_numpy(data[layer], layer=layer)
    return texture, data


def host_dtype(format_: Any) -> np.dtype:
    info = spy.get_format_info(format_)
    kind = {"float_": "f", "uint": "u", "unorm": "u", "unorm_srgb": "u", "sint": "i", "snorm": "i"}[name_of(info.type)]
    return np.dtype(f"{kind}{info.channel_bit_count[0] // 8}")


def name_of(kind: Any) -> str:
    return {"float": "float_"}.get(kind.name, kind.name)


def random_texels(format_: Any, shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    rng, dtype = np.random.default_rng(seed), host_dtype(format_)
    if dtype.kind == "f":
        return (rng.random(shape) * 8 - 4).astype(dtype)
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)


def decode(format_: Any, data: np.ndarray) -> np.ndarray:
    """What a kernel reads where the host stores `data`: float64, uint32 or int32."""
    kind = name_of(spy.get_format_info(format_).type)
    if kind in ("uint", "sint"):
        return data.astype(np.uint32 if kind == "uint" else np.int32)
    if kind == "float_":
        return data.astype(np.float64)
    value = np.maximum(data / np.iinfo(data.dtype).max, -1.0)
    if kind == "unorm_srgb":  # alpha is linear
        linear = np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)
        value = np.concatenate([linear[..., :3], value[..., 3:]], axis=-1)
    return value


def encode(format_: Any, values: np.ndarray) -> np.ndarray:
    """What the host finds where a kernel stored `values`."""
    kind, dtype = name_of(spy.get_format_info(format_).type), host_dtype(format_)
    if kind in ("unorm", "snorm", "unorm_srgb"):
        clamped = np.clip(values, 0.0 if dtype.kind == "u" else -1.0, 1.0)
        if kind == "unorm_srgb":
            curve = np.where(clamped <= 0.0031308, 12.92 * clamped, 1.055 * clamped ** (1 / 2.4) - 0.055)
            clamped = np.concatenate([curve[..., :3], clamped[..., 3:]], axis=-1)
        return np.rint(clamped * np.iinfo(dtype).max).astype(dtype)
    return values.astype(dtype)


def supports(device: Any, format_: Any, what: Any) -> bool:
    return (device.get_format_support(format_) & what) == what


def plain_formats() -> list[Any]:
    """Formats whose texels NumPy arrays hold channel by channel, in the order of the kernel's components."""
    found = []
    for format_ in F:
        if format_ is F.undefined:
            continue
        info = spy.get_format_info(format_)
        if info.is_compressed or info.is_depth or not info.has_equal_channel_bits() or info.name.startswith("b"):
            continue
        if info.channel_bit_count[0] in (8, 16, 32):
            found.append(format_)
    return found


FORMATS_IN_GATE = (
    "r8_uint", "rg8_sint", "rgba8_unorm", "rgba8_unorm_srgb", "rg8_snorm", "rg16_uint", "rgba16_sint", "r16_unorm", "r16_snorm",
    "rg16_float", "rgba16_float", "r32_uint", "r32_float", "rg32_sint", "rgb32_uint", "rgb32_float", "rgba32_float",
)  # fmt: skip
"""Each kind of number in each size, and each number of channels. tests/device/test_blit.py converts all formats."""


SIZES = {T.texture_1d: (5,), T.texture_1d_array: (5,), T.texture_2d: (3, 4), T.texture_2d_array: (3, 4),
         T.texture_3d: (2, 3, 4), T.texture_cube: (4, 4), T.texture_cube_array: (2, 2)}  # fmt: skip
LAYERS = {T.texture_1d_array: 3, T.texture_2d_array: 3, T.texture_cube_array: 2}


def seen(type_: Any, data: np.ndarray) -> np.ndarray:
    """The layers of a texture as a call sees them."""
    if type_ is T.texture_cube_array:
        return data.reshape(-1, 6, *data.shape[1:])
    return data if type_ in LAYERS or type_ is T.texture_cube else data[0]
