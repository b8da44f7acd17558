"""`save_image`: whatever holds a picture, into a file of any format."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from ..errors import NativeTypeError, NativeValueError
from .bitmap import Bitmap, PixelFormat
from .files import FileFormat, format_of
from .records import DataType
from .sources import array_of

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
    name = os.fspath(path)
    bitmap = _bitmap(name, data)
    kind = format_of(name)
    stored = _STORED.get(kind, (DataType.uint8,))
    channels = _channels(kind, bitmap)
    if bitmap.component_type not in stored or channels != bitmap.pixel_format:
        bitmap = _converted(name, bitmap, channels, stored, srgb)
    bitmap.write(name, kind, quality)


def _bitmap(path: str, data: Any) -> Bitmap:
    if isinstance(data, Bitmap):
        return data
    if hasattr(data, "to_bitmap"):
        return data.to_bitmap()
    pixels = array_of(data)
    if pixels is None:
        raise NativeTypeError(
            f"save_image: {path}: expected a Bitmap, a Texture, a Tensor or an array, got {type(data).__name__}"
        )
    shape = tuple(pixels.shape)
    if pixels.ndim not in (2, 3) or 0 in shape or (pixels.ndim == 3 and shape[2] > 4 and not path.endswith(".exr")):
        advice = ""
        if pixels.ndim == 3 and shape[0] in (1, 3, 4):
            advice = "; channels come last: permute the axes to (1, 2, 0)"
        elif pixels.ndim == 4:
            advice = "; save the pictures of a batch one by one"
        raise NativeValueError(
            f"save_image: {path}: expected the shape (height, width) or (height, width, 1 to 4 channels), got {shape}{advice}"
        )
    if pixels.dtype == np.bool_ or pixels.dtype.kind not in "iuf":
        raise NativeValueError(
            f"save_image: {path}: numbers of {pixels.dtype} are no colours; use floats from 0 to 1, or uint8"
        )
    return Bitmap(pixels)


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
