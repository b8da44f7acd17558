"""`save_image`: whatever holds a picture, into a file of any format."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from ..base.folders import file_path
from ..errors import NativeValueError
from .bitmap import Bitmap, PixelFormat
from .files import FileFormat, format_of
from .pictures import bitmap_of
from .structs import DataType

_STORED = {
    FileFormat.exr: (DataType.float16, DataType.float32, DataType.uint32),
    FileFormat.hdr: (DataType.float32,),
    FileFormat.png: (DataType.uint8, DataType.uint16),
}
"""Types of numbers that a format keeps; others keep bytes."""
_CONVERTED = "uint8 uint16 float16 float32 float64".split()


def save_image(path: str | os.PathLike[str], data: Any, srgb: bool | None = None, quality: int = -1) -> None:
    """Writes a picture: a `Bitmap`, a `Texture`, a `Tensor`, a torch tensor or another array of the shape (height, width)
    or (height, width, 1 to 4 channels).

    The extension says the format: png, jpg, bmp and tga keep bytes (png 16 bits, too), exr and hdr floats. Floats are
    light: 0 to 1 become bytes by the curve of sRGB, so that viewers show them right; with srgb=False byte = 255 * value,
    as for normals and masks. Bytes and 16-bit integers are stored as they are, and become light in exr and hdr by their
    own curve. quality: of jpg 0 to 100, of png the compression, 0 to 9.
    """
    name = file_path("save_image", path)
    bitmap = bitmap_of(f"save_image: {name}", data, many_channels=name.endswith(".exr"))
    kind = format_of(name)
    stored = _STORED.get(kind, (DataType.uint8,))
    channels = _channels(kind, bitmap)
    if bitmap.component_type not in stored or channels != bitmap.pixel_format:
        bitmap = _converted(name, bitmap, channels, stored, srgb)
    bitmap.write(name, kind, quality)


def _channels(kind: FileFormat, bitmap: Bitmap) -> PixelFormat:
    """What of the pixels a format takes: red and green alone are no grey and alpha."""
    if kind == FileFormat.hdr:
        return PixelFormat.rgb
    return PixelFormat.rgb if bitmap.pixel_format == PixelFormat.rg and kind != FileFormat.exr else bitmap.pixel_format


def _converted(path: str, bitmap: Bitmap, channels: PixelFormat, stored: Any, srgb: bool | None) -> Bitmap:
    """The pixels as numbers that a format stores."""
    if bitmap.component_type.name not in _CONVERTED:
        raise NativeValueError(
            f"save_image: {path}: pixels of {bitmap.component_type.name} are no colours; use floats from 0 to 1, or uint8"
        )
    if bitmap.component_type in stored:
        return bitmap.convert(channels)
    if DataType.float32 in stored:
        return bitmap.convert(channels, DataType.float32, False)
    if srgb is False:  # whatever the numbers follow, they are not changed
        plain = Bitmap(np.asarray(bitmap), bitmap.pixel_format, bitmap.channel_names, False)
        return plain.convert(channels, DataType.uint8, False)
    return bitmap.convert(channels, DataType.uint8, True)


def save_texture(
    texture: Any, path: str | os.PathLike[str], layer: int = 0, mip: int = 0, srgb: bool | None = None, quality: int = -1
) -> None:  # fmt: skip
    """`Texture.save`: one layer and mip."""
    save_image(path, texture.to_bitmap(layer, mip), srgb, quality)
