"""The numbers of whatever holds a picture: arrays, tensors of slangpy and torch, textures."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._native import TensorBase
from ..errors import NativeTypeError
from .scalars import Array


def array_of(value: Any) -> Array | None:
    """The numbers of an array or a tensor on any device; None for what is neither. Gradients are left out."""
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, TensorBase):
        return _of_tensor(value)
    if hasattr(value, "detach") and hasattr(value, "cpu"):  # of torch
        plain = value.detach().cpu()
        return (plain.float() if str(plain.dtype) == "torch.bfloat16" else plain).numpy()
    if hasattr(value, "__array__") or hasattr(value, "__dlpack__"):
        return np.asarray(value)
    return None


def _of_tensor(tensor: Any) -> Array:
    """The shape of the tensor, with one more axis where its elements are vectors."""
    numbers = np.asarray(tensor.to_numpy())
    vectors = len(tensor.dtype.shape)
    if vectors > 1 or numbers.ndim != tensor.ndim + vectors:
        raise NativeTypeError(
            f"Bitmap: a tensor of {tensor.dtype.full_name} is no picture; its elements must be numbers or vectors of them"
        )
    return numbers
