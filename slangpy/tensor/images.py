"""Image files as arrays. Decoding is left to an installed image library."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base.optional import find_package


def _decode_image(path: str) -> np.ndarray[Any, Any]:
    """(rows, cols, channels) as decoded."""
    pillow = find_package("PIL.Image")
    if pillow is not None:
        with pillow.open(path) as image:
            if image.mode == "P":
                image = image.convert("RGBA" if "transparency" in image.info else "RGB")
            elif image.mode in ("1", "CMYK", "YCbCr", "HSV", "LAB"):
                image = image.convert("L" if image.mode == "1" else "RGB")
            array = np.asarray(image)
        # Pillow widens 16-bit grey to 32 bits
        array = array.astype(np.uint16) if array.dtype == np.int32 else array
    else:
        imageio = find_package("imageio.v3")
        if imageio is None:
            raise ImportError("load_from_image needs an image library: install Pillow (pip install pillow) or imageio")
        array = np.asarray(imageio.imread(path))
    return array[:, :, None] if array.ndim == 2 else array


def _linear_from_srgb(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """IEC 61966-2-1."""
    return np.where(values <= 0.04045, values / 12.92, ((np.maximum(values, 0.04045) + 0.055) / 1.055) ** 2.4)


def load_image(
    path: str, flip_y: bool, linearize: bool, scale: float, offset: float, grayscale: bool
) -> np.ndarray[Any, Any]:
    """(rows, cols, channels) float32 values of an image file."""
    image = _decode_image(path)
    if image.dtype.kind == "b":
        values = image.astype(np.float64)
    elif image.dtype.kind in "ui":
        values = image.astype(np.float64) / np.iinfo(image.dtype).max
    else:
        values = image.astype(np.float64)
    colors = values.shape[2] - (values.shape[2] in (2, 4))  # the last of two or four is alpha
    if linearize:
        values[:, :, :colors] = _linear_from_srgb(values[:, :, :colors])
    if grayscale:
        weights = np.array([0.2126, 0.7152, 0.0722]) if colors == 3 else np.ones(1)
        values = values[:, :, :colors] @ weights[:, None]
    if flip_y:
        values = values[::-1]
    return np.ascontiguousarray(values * scale + offset, dtype=np.float32)
