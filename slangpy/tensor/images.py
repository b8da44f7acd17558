"""Image files as arrays, and tensors as image files."""

from __future__ import annotations

import importlib
import os
from typing import Any

import numpy as np


def _decode_image(path: str) -> np.ndarray[Any, Any]:
    """(rows, cols, channels) as decoded."""
    if not os.path.isfile(path):
        raise FileNotFoundError(f"load_from_image: {path}: no such image file")
    files = importlib.import_module("slangpy.images.files")  # which needs OpenImageIO
    return files.read_image(path, files.FileFormat.auto)[0]


def _linear_from_srgb(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """IEC 61966-2-1."""
    return np.where(values <= 0.04045, values / 12.92, ((np.maximum(values, 0.04045) + 0.055) / 1.055) ** 2.4)


def load_image(
    path: str, flip_y: bool, linearize: bool, scale: float, offset: float, grayscale: bool
) -> tuple[np.ndarray[Any, Any], str]:
    """(rows, cols, channels) float32 values of an image file, without the last axis if there is one, and their type."""
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
    result = np.ascontiguousarray(values * scale + offset, dtype=np.float32)
    channels = result.shape[2]
    return (result[:, :, 0], "float") if channels == 1 else (result, f"float{channels}")


def save(path: Any, tensor: Any, srgb: bool | None, quality: int) -> None:
    importlib.import_module("slangpy.images.save").save_image(path, tensor, srgb, quality)
