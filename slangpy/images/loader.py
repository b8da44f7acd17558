"""Textures made of images, and images of textures."""

from __future__ import annotations

import enum
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._native import Format, FormatSupport, TextureType, TextureUsage
from ..errors import NativeValueError
from .bitmap import Bitmap, PixelFormat
from .records import DataType
from .scalars import Array


class YAHandling(enum.IntEnum):
    """What becomes of images of luminance and alpha."""

    expand_to_rgba = 0
    preserve_as_rg = 1

    __str__ = enum.Enum.__str__


@dataclass(init=False)
class Options:
    """load_as_normalized: integers of 8 and 16 bits are read as 0 to 1. load_as_srgb: 8-bit images with the curve of sRGB
    are read as light, where the device has such a format, also where load_as_normalized is off. extend_alpha: rgb becomes
    rgba where the device has no rgb format for this usage, and where mips are generated. `Options(load_as_srgb=False)`, or
    a dict of the fields.
    """

    load_as_normalized: bool = True
    load_as_srgb: bool = True
    extend_alpha: bool = True
    allocate_mips: bool = False
    generate_mips: bool = False
    usage: TextureUsage = TextureUsage.shader_resource
    ya_handling: YAHandling = YAHandling.expand_to_rgba

    def __init__(self, values: Mapping[str, Any] | None = None, **named: Any) -> None:
        if values is not None and not isinstance(values, Mapping):
            raise TypeError(f"TextureLoader.Options: expected a dict or names, got {type(values).__name__}")
        for name, value in {**(values or {}), **named}.items():
            if name not in Options.__dataclass_fields__:
                raise TypeError(
                    f"TextureLoader: no option {name!r}; the options are {', '.join(Options.__dataclass_fields__)}"
                )
            setattr(self, name, value)

    @staticmethod
    def of(value: Options | Mapping[str, Any] | None) -> Options:
        """From options, a dict of their fields, or None."""
        return value if isinstance(value, Options) else Options(value)


class TextureLoader:
    """Makes textures of bitmaps and image files: `TextureLoader(device).load_texture("albedo.png")`."""

    Options = Options
    YAHandling = YAHandling

    def __init__(self, device: Any) -> None:
        self.device = device

    def load_texture(self, source: Any = None, options: Any = None, *, bitmap: Any = None, path: Any = None) -> Any:
        """A texture of a Bitmap or the path of a file."""
        chosen = Options.of(options)
        pixels, format_ = self._texels(as_bitmap(_given(source, bitmap, path)), chosen)
        return self._create(pixels, format_, chosen, False)

    def load_textures(
        self, sources: Sequence[Any] | None = None, options: Any = None, *, bitmaps: Any = None, paths: Any = None
    ) -> list[Any]:
        """A texture of each; options: for all, or a list with one for each."""
        sources = list(_given(sources, bitmaps, paths, ()))
        each = list(options) if isinstance(options, (list, tuple)) else [options] * len(sources)
        if len(each) != len(sources):
            raise NativeValueError(f"load_textures: {len(each)} options for {len(sources)} images")
        return [self.load_texture(source, option) for source, option in zip(_bitmaps(sources), each, strict=True)]

    def load_texture_array(
        self, sources: Sequence[Any] | None = None, options: Any = None, *, bitmaps: Any = None, paths: Any = None
    ) -> Any:
        """One texture with a layer of each; ValueError where sizes or formats differ."""
        chosen = Options.of(options)
        parts = [self._texels(bitmap, chosen) for bitmap in _bitmaps(_given(sources, bitmaps, paths, ()))]
        kinds = {(pixels.shape, format_.name) for pixels, format_ in parts}
        if len(kinds) != 1:
            raise NativeValueError(
                f"load_texture_array: the images must have one size and format, got {sorted(kinds, key=str)}"
            )
        return self._create(np.stack([pixels for pixels, _ in parts]), parts[0][1], chosen, True)

    def _texels(self, bitmap: Bitmap, options: Options) -> tuple[Array, Format]:
        """The pixels as a texture of this device has them, and its format."""
        plain = _find_format(np.asarray(bitmap).dtype, 3, options.load_as_normalized, False)
        serves = not options.generate_mips and self._serves(plain, options.usage)  # mips are rendered, which rgb never is
        alpha = options.extend_alpha and bitmap.channel_count == 3 and not serves
        return texels(bitmap, options, alpha)

    def _serves(self, format: Format | None, usage: TextureUsage) -> bool:
        """Whether this device has textures of a format for a usage."""
        support = FormatSupport.none if format is None else self.device.get_format_support(format)
        needs = FormatSupport.texture
        for flag, need in _NEEDS.items():
            needs |= need if usage & flag else FormatSupport.none
        return support & needs == needs

    def _usage(self, format: Format, options: Options) -> TextureUsage:
        """That of the options, and what generate_mips needs."""
        if not options.generate_mips:
            return options.usage
        stored_alone = self._serves(format, TextureUsage.unordered_access) and not self._serves(
            format, TextureUsage.render_target
        )
        written = TextureUsage.unordered_access if stored_alone else TextureUsage.render_target
        return options.usage | TextureUsage.shader_resource | written

    def _create(self, pixels: Array, format_: Format, options: Options, is_array: bool) -> Any:
        height, width = pixels.shape[1:3] if is_array else pixels.shape[:2]
        mips = max(height, width).bit_length() if options.allocate_mips or options.generate_mips else 1
        texture = self.device.create_texture(
            type=TextureType.texture_2d_array if is_array else TextureType.texture_2d,
            width=width,
            height=height,
            array_length=len(pixels) if is_array else 1,
            mip_count=mips,
            format=format_,
            usage=self._usage(format_, options),
        )
        for layer in range(len(pixels) if is_array else 1):
            texture.copy_from_numpy(pixels[layer] if is_array else pixels, layer=layer, mip=0)
        if options.generate_mips:
            encoder = self.device.create_command_encoder()
            for layer in range(len(pixels) if is_array else 1):
                encoder.generate_mips(texture, layer)
            self.device.submit_command_buffer(encoder.finish())
        return texture


_NEEDS = {
    TextureUsage.shader_resource: FormatSupport.shader_load,
    TextureUsage.unordered_access: FormatSupport.shader_uav_store,
    TextureUsage.render_target: FormatSupport.render_target,
}


def _given(*values: Any) -> Any:
    """The first that is not None: what came by position or by a name."""
    return next((value for value in values if value is not None), None)


def as_bitmap(source: Any) -> Bitmap:
    if isinstance(source, Bitmap):
        return source
    if isinstance(source, (str, os.PathLike)):
        return Bitmap(source)
    raise TypeError(f"TextureLoader: expected a Bitmap or the path of an image, got {type(source).__name__}")


def _bitmaps(sources: Sequence[Any]) -> list[Bitmap]:
    return [as_bitmap(source) for source in sources]


def texels(bitmap: Bitmap, options: Options, alpha: bool) -> tuple[Array, Format]:
    """The pixels as a texture has them, and its format. alpha: with one more channel, of ones."""
    if bitmap.pixel_format == PixelFormat.multi_channel and bitmap.channel_count > 4:
        raise NativeValueError(
            f"TextureLoader: textures have up to 4 channels, the image has {bitmap.channel_count}; split() it"
        )
    pixels = np.asarray(bitmap).reshape(bitmap.height, bitmap.width, -1)
    if bitmap.pixel_format == PixelFormat.ya and options.ya_handling == YAHandling.expand_to_rgba:
        pixels = pixels[:, :, [0, 0, 0, 1]]
    elif alpha:
        one: Any = np.iinfo(pixels.dtype).max if pixels.dtype.kind in "iu" else 1.0
        pixels = np.concatenate([pixels, np.full((*pixels.shape[:2], 1), one, pixels.dtype)], axis=2)
    srgb = options.load_as_srgb and bitmap.srgb_gamma
    format_ = _find_format(pixels.dtype, pixels.shape[2], options.load_as_normalized, srgb)
    if format_ is None:
        advice = "leave extend_alpha True" if pixels.shape[2] == 3 else "convert() the image first"
        raise NativeValueError(f"TextureLoader: no format for {pixels.shape[2]} channels of {pixels.dtype}; {advice}")
    return np.ascontiguousarray(pixels if pixels.shape[2] > 1 else pixels[:, :, 0]), format_


def _find_format(dtype: Any, count: int, normalized: bool, srgb: bool) -> Format | None:
    bits, letters = 8 * dtype.itemsize, ["r", "rg", "rgb", "rgba"][count - 1]
    kind = {"f": "float", "u": "uint", "i": "sint"}[dtype.kind]
    if dtype.kind in "iu" and normalized and bits < 32:
        kind = "unorm" if dtype.kind == "u" else "snorm"
    name = f"{letters}{bits}_{kind}"
    if srgb and name in ("rgba8_unorm", "rgba8_uint"):
        name = "rgba8_unorm_srgb"  # the curve is one of light from 0 to 1
    return Format[name] if name in Format.__members__ else None


def texture_to_bitmap(texture: Any, layer: int = 0, mip: int = 0) -> Bitmap:
    """The texels of one layer and mip as an image."""
    name = texture.format.name
    pixels = texture.to_numpy(layer=layer, mip=mip)
    if pixels.ndim not in (2, 3) or texture.type.name.startswith(("texture_1d", "texture_3d")):
        raise NativeValueError(f"to_bitmap: expected a 2-D texture, got {texture.type.name}")
    pixels = pixels[:, :, None] if pixels.ndim == 2 else pixels
    if pixels.dtype.name not in DataType.__members__:
        raise NativeValueError(f"to_bitmap: texels of format {name} are no numbers of one type")
    if name.startswith("bgra"):
        pixels = pixels[:, :, [2, 1, 0, 3]]
    kinds = [PixelFormat.r, PixelFormat.rg, PixelFormat.rgb, PixelFormat.rgba]
    return Bitmap(np.ascontiguousarray(pixels), kinds[pixels.shape[2] - 1], srgb_gamma=name.endswith("_srgb"))
