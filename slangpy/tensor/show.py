"""Tensors as text, as HTML and as pictures."""

from __future__ import annotations

import html
import importlib
import math
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from .io import host_format, to_numpy

if TYPE_CHECKING:
    from . import Tensor

_MOST_ROWS = 20
"""Of structs shown as a table."""
_SMALLEST, _LARGEST = 8, 1024
"""Sides of pictures: smaller ones are no images, larger ones are shown with pixels left out."""


def _values(tensor: Tensor) -> np.ndarray[Any, Any]:
    """The contents; of structs, their fields."""
    return to_numpy(tensor, structured=not host_format(tensor.layout).scalar)


def _edges(tensor: Tensor, dim: int, edge: int) -> np.ndarray[Any, Any]:
    """Contents with at most `2 * edge + 1` entries per dimension: what lies between the edges is one stand-in."""
    while dim < tensor.ndim and tensor.shape[dim] <= 2 * edge:
        dim += 1
    if dim == tensor.ndim:
        return _values(tensor)
    index = (slice(None),) * dim
    first = _edges(tensor[(*index, slice(None, edge))], dim + 1, edge)
    last = _edges(tensor[(*index, slice(-edge, None))], dim + 1, edge)
    return np.concatenate([first, first[(*index, slice(0, 1))], last], axis=dim)


def _printable(tensor: Tensor, **options: Any) -> str:
    printing = np.get_printoptions()
    edge, threshold = printing["edgeitems"], printing["threshold"]
    scalars = tensor.element_count * math.prod(host_format(tensor.layout).shape)
    if scalars <= threshold:
        return np.array2string(_values(tensor), **options)
    return np.array2string(_edges(tensor.detach(), 0, edge), threshold=0, **options)


def to_text(tensor: Tensor) -> str:
    return to_repr(tensor) if tensor.device.is_closed else _printable(tensor, separator=" ")


def to_repr(tensor: Tensor) -> str:
    parts = [
        f"dtype={tensor.dtype.full_name}",
        f"shape={tensor.shape}",
        f"device={tensor.device.type.name}",
        f"has_grad_in={'false' if tensor.grad_in is None else 'true'}",
        f"has_grad_out={'false' if tensor.grad_out is None else 'true'}",
    ]
    if not tensor.device.is_closed:
        try:
            parts.insert(0, re.sub(r"\s*\n\s*", " ", _printable(tensor, separator=", ")))
        except RuntimeError:  # a lost device: repr must work all the same
            parts.append("contents not readable")
    return f"Tensor({', '.join(parts)})"


def to_html(tensor: Tensor) -> str | None:
    """For notebooks: the values, of one-dimensional structs as a table. None where they cannot be read."""
    if tensor.device.is_closed:
        return None
    facts = html.escape(f"{tensor.dtype.full_name} {tensor.shape} on {tensor.device.type.name}")
    if tensor.ndim == 1 and not host_format(tensor.layout).scalar:
        shown = tensor.detach()[:_MOST_ROWS].to_numpy(structured=True)
        names = shown.dtype.names or ()
        rows = "".join(
            f"<tr><th>{i}</th>{''.join(f'<td>{html.escape(str(row[name]))}</td>' for name in names)}</tr>"
            for i, row in enumerate(shown)
        )
        header = "".join(f"<th>{html.escape(name)}</th>" for name in names)
        more = f"<p>and {tensor.shape[0] - len(shown)} more</p>" if tensor.shape[0] > len(shown) else ""
        return f"<p>{facts}</p><table><tr><th></th>{header}</tr>{rows}</table>{more}"
    return f"<p>{facts}</p><pre>{html.escape(_printable(tensor, separator=' '))}</pre>"


def to_png(tensor: Tensor) -> bytes | None:
    """The picture of a 2-D tensor of 3 or 4 channels (float and half: 0 to 1, 8 bits as they are); None for others."""
    host = host_format(tensor.layout)
    channels = host.shape == (3,) or host.shape == (4,)
    if tensor.device.is_closed or tensor.ndim != 2 or not channels or min(tensor.shape) < _SMALLEST:
        return None
    step = math.ceil(max(tensor.shape) / _LARGEST)
    return png_of(tensor.detach()[::step, ::step].to_numpy())


def png_of(pixels: np.ndarray[Any, Any]) -> bytes | None:
    """PNG of rows of pixels with 1 to 4 channels, their numbers as they are; None for numbers that are no colours."""
    if pixels.dtype.kind == "f":
        pixels = np.nan_to_num(np.clip(pixels.astype(np.float32), 0, 1) * 255 + 0.5, nan=0).astype(np.uint8)
    if pixels.dtype not in (np.uint8, np.uint16):
        return None
    shaped = pixels[:, :, None] if pixels.ndim == 2 else pixels
    return importlib.import_module("slangpy.images.png").encode_png(shaped)


def texture_png(texture: Any) -> bytes | None:
    """The picture of a 2-D texture's first mip level, for notebooks; None for what is no picture."""
    if texture.type.name != "texture_2d" or min(texture.width, texture.height) < _SMALLEST:
        return None
    try:
        pixels = np.asarray(texture.to_bitmap())
    except (RuntimeError, ValueError, TypeError):  # not readable
        return None
    step = math.ceil(max(pixels.shape[:2]) / _LARGEST)
    pixels = pixels[::step, ::step]
    if pixels.ndim == 3 and pixels.shape[2] == 2:
        pixels = np.concatenate([pixels, np.zeros_like(pixels[:, :, :1])], axis=2)
    return png_of(pixels)
