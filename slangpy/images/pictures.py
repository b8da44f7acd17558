"""A `Bitmap` of whatever holds a picture."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import NativeTypeError, NativeValueError
from .bitmap import Bitmap
from .sources import array_of


def bitmap_of(what: str, data: Any, many_channels: bool = False) -> Bitmap:
    """Of a Bitmap, a Texture, a Tensor, a torch tensor or an array. what: who asks, for messages; many_channels: more than 4
    are fine."""
    if isinstance(data, Bitmap):
        return data
    if hasattr(data, "to_bitmap"):
        return data.to_bitmap()
    pixels = array_of(data)
    if pixels is None:
        raise NativeTypeError(f"{what}: expected a Bitmap, a Texture, a Tensor or an array, got {type(data).__name__}")
    shape = tuple(pixels.shape)
    if pixels.ndim not in (2, 3) or 0 in shape or (pixels.ndim == 3 and shape[2] > 4 and not many_channels):
        advice = ""
        if pixels.ndim == 3 and shape[0] in (1, 3, 4):
            advice = "; channels come last: permute the axes to (1, 2, 0)"
        elif pixels.ndim == 4:
            advice = "; take the pictures of a batch one by one"
        raise NativeValueError(
            f"{what}: expected the shape (height, width) or (height, width, 1 to 4 channels), got {shape}{advice}"
        )
    if pixels.dtype == np.bool_ or pixels.dtype.kind not in "iuf":
        raise NativeValueError(f"{what}: numbers of {pixels.dtype} are no colours; use floats from 0 to 1, or uint8")
    return Bitmap(pixels)
