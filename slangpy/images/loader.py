"""Textures made of images, and images of textures."""

from __future__ import annotations

import enum
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._native import (
    Format,
    FormatSupport,
    FormatType,
    TextureFilteringMode,
    TextureType,
    TextureUsage,
    get_format_info,
)
from ..base.own_names import own_names
from ..base.typed import typed_fields
from ..errors import NativeValueError
from .bitmap import Bitmap, PixelFormat
from .dds import DdsImage, NoFormatError, read_dds, starts_dds
from .scalars import Array
from .structs import DataType


class YAHandling(enum.IntEnum):
    """What becomes of images of luminance and alpha."""

    expand_to_rgba = 0
    preserve_as_rg = 1

    __str__ = enum.Enum.__str__


@own_names
@typed_fields
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


@own_names
class TextureLoader:
    """Makes textures of bitmaps and image files: `TextureLoader(device).load_texture("albedo.png")`.

    DDS files keep their format (block compression included), mips, layers and faces where the device has such textures;
    of the options, load_as_srgb, usage and those of mips count for them.
    """

    Options = Options
    YAHandling = YAHandling
    device: Any

    def __init__(self, device: Any) -> None:
        self.device = device

    def load_texture(self, source: Any = None, options: Any = None, *, bitmap: Any = None, path: Any = None) -> Any:
        """A texture of a Bitmap or the path of a file."""
        chosen, given = Options.of(options), _given(source, bitmap, path)
        found = self._of_dds([given], chosen, False)
        if found is not None:
            return found
        pixels, format_ = self._texels(as_bitmap(given), chosen)
        return self._create(pixels, format_, chosen, False)

    def load_textures(
        self, sources: Sequence[Any] | None = None, options: Any = None, *, bitmaps: Any = None, paths: Any = None
    ) -> list[Any]:
        """A texture of each; options: for all, or a list with one for each."""
        sources = list(_given(sources, bitmaps, paths, ()))
        each = list(options) if isinstance(options, (list, tuple)) else [options] * len(sources)
        if len(each) != len(sources):
            raise NativeValueError(f"load_textures: {len(each)} options for {len(sources)} images")
        return [self.load_texture(source, option) for source, option in zip(sources, each, strict=True)]

    def load_texture_array(
        self, sources: Sequence[Any] | None = None, options: Any = None, *, bitmaps: Any = None, paths: Any = None
    ) -> Any:
        """One texture with a layer of each; ValueError where sizes or formats differ."""
        chosen, given = Options.of(options), list(_given(sources, bitmaps, paths, ()))
        found = self._of_dds(given, chosen, True)
        if found is not None:
            return found
        parts = [self._texels(as_bitmap(source), chosen) for source in given]
        kinds = {(pixels.shape, format_.name) for pixels, format_ in parts}
        if len(kinds) != 1:
            raise NativeValueError(
                "load_texture_array: Texture array requires all bitmaps to have the same dimensions and format, got "
                f"{sorted(kinds, key=str)}"
            )
        return self._create(np.stack([pixels for pixels, _ in parts]), parts[0][1], chosen, True)

    def _of_dds(self, sources: list[Any], options: Options, is_array: bool) -> Any:
        """A texture of DDS files as they are stored; None where they must be read as bitmaps."""
        paths = [os.fspath(item) for item in sources if isinstance(item, (str, os.PathLike))]
        if not paths or len(paths) < len(sources) or not all(map(_is_dds, paths)):
            return None
        try:
            images = [read_dds(path) for path in paths]
        except NoFormatError:
            return None
        first = images[0]
        format_ = first.format if options.load_as_srgb else Format[first.format.name.removesuffix("_srgb")]
        makes_mips = options.generate_mips and first.mips == 1
        flat = first.type == TextureType.texture_2d
        if flat and (not self._serves(format_, options.usage) or (makes_mips and get_format_info(format_).is_compressed)):
            return None
        if len({image.kind() for image in images}) > 1 or (is_array and not flat):
            return None  # said of bitmaps
        texture = self._empty_for(first, format_, options, len(images) if is_array else 0)
        encoder = self.device.create_command_encoder()
        for layer, image in enumerate(images):
            for part in image.parts:
                encoder.upload_texture_data(texture, layer + part.layer, part.mip, np.frombuffer(part.data, np.uint8))
        if makes_mips:
            for layer in range(texture.layer_count):
                encoder.generate_mips(texture, layer)
        self.device.submit_command_buffer(encoder.finish())
        return texture

    def _empty_for(self, image: DdsImage, format: Format, options: Options, layers: int) -> Any:
        """layers: of an array that is made of several files; 0: as the file says."""
        makes_mips = image.mips == 1 and (options.allocate_mips or options.generate_mips)
        cubes = 6 if image.type in (TextureType.texture_cube, TextureType.texture_cube_array) else 1
        return self.device.create_texture(
            type=TextureType.texture_2d_array if layers else image.type,
            width=image.width,
            height=image.height,
            depth=image.depth,
            array_length=layers or image.layers // cubes,
            mip_count=max(image.width, image.height, image.depth).bit_length() if makes_mips else image.mips,
            format=format,
            usage=options.usage | (_MIPS if makes_mips and options.generate_mips else TextureUsage.none),
        )

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
            usage=options.usage | (_MIPS if options.generate_mips else TextureUsage.none),
        )
        for layer in range(len(pixels) if is_array else 1):
            texture.copy_from_numpy(pixels[layer] if is_array else pixels, layer=layer, mip=0)
        if options.generate_mips:
            encoder = self.device.create_command_encoder()
            for layer in range(len(pixels) if is_array else 1):
                encoder.generate_mips(texture, layer)
            self.device.submit_command_buffer(encoder.finish())
        return texture


_MIPS = TextureUsage.render_target | TextureUsage.shader_resource
"""What `generate_mips` asks for."""
_NEEDS = {
    TextureUsage.shader_resource: FormatSupport.shader_load,
    TextureUsage.unordered_access: FormatSupport.shader_uav_store,
    TextureUsage.render_target: FormatSupport.render_target,
}


def _given(*values: Any) -> Any:
    """The first that is not None: what came by position or by a name."""
    return next((value for value in values if value is not None), None)


def _is_dds(path: str) -> bool:
    return os.path.isfile(path) and starts_dds(path)


def as_bitmap(source: Any) -> Bitmap:
    if isinstance(source, Bitmap):
        return source
    if isinstance(source, (str, os.PathLike)):
        return Bitmap(source)
    raise TypeError(f"TextureLoader: expected a Bitmap or the path of an image, got {type(source).__name__}")


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
        raise NativeValueError(f"Unsupported bitmap format: {pixels.shape[2]} channels of {pixels.dtype}; {advice}")
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
    """The texels of one layer and mip as an image. Packed and compressed ones are decoded on the device, which takes a
    texture that shaders can read."""
    if texture.type not in (*_FLAT, TextureType.texture_cube, TextureType.texture_cube_array):
        raise NativeValueError(f"to_bitmap: expected a 2-D texture, got {texture.type.name}")
    info = get_format_info(texture.format)
    plain = texture
    if info.is_compressed or not info.has_equal_channel_bits():
        plain = _decoded(texture, layer, mip)
        layer, mip = 0, 0
    pixels = plain.to_numpy(layer=layer, mip=mip)
    pixels = pixels[:, :, None] if pixels.ndim == 2 else pixels
    if pixels.dtype.name not in DataType.__members__:
        raise NativeValueError(f"to_bitmap: texels of format {texture.format.name} are no numbers of one type")
    if plain.format.name.startswith("bgr"):
        pixels = pixels[:, :, [2, 1, 0, 3]]
    if info.name.startswith("bgrx"):
        pixels = pixels[:, :, :3]
    kinds = [PixelFormat.r, PixelFormat.rg, PixelFormat.rgb, PixelFormat.rgba]
    pixels = np.ascontiguousarray(pixels[:, :, : 1 if info.is_depth else info.channel_count])
    return Bitmap(pixels, kinds[pixels.shape[2] - 1], srgb_gamma=texture.format.name.endswith("_srgb"))


_FLAT = (TextureType.texture_2d, TextureType.texture_2d_array)
_DECODED = {
    FormatType.float: Format.rgba16_float,
    FormatType.unorm: Format.rgba8_unorm,
    FormatType.unorm_srgb: Format.rgba8_unorm_srgb,
    FormatType.snorm: Format.rgba8_snorm,
    FormatType.uint: Format.rgba16_uint,
}
"""Formats that hold what the packed and compressed ones of a type hold."""


def _decoded(texture: Any, layer: int, mip: int) -> Any:
    """One layer and mip in a format whose channels are alike."""
    info = get_format_info(texture.format)
    format_ = Format.rgba32_float if info.is_depth or info.name.startswith("rgb9e5") else _DECODED[info.type]
    if info.name == "rgb10a2_unorm":
        format_ = Format.rgba16_unorm
    made = texture.device.create_texture(
        width=texture.get_mip_width(mip),
        height=texture.get_mip_height(mip),
        format=format_,
        usage=TextureUsage.render_target,
    )
    encoder = texture.device.create_command_encoder()
    encoder.blit(made, texture.create_view(layer=layer, layer_count=1, mip=mip, mip_count=1), TextureFilteringMode.point)
    texture.device.submit_command_buffer(encoder.finish())
    return made
