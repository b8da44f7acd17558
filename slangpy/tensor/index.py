"""Shapes and strides of tensor views (parts of tensors: src/native/python/tensor/index.cpp)."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np


class TensorError(ValueError, RuntimeError):
    """A tensor cannot be viewed or transferred in this way: the argument is wrong for the state of the tensor."""


def row_major_strides(shape: Sequence[int]) -> list[int]:
    """Strides in elements; a size of 0 counts as 1."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return strides[::-1]


def check_shape(shape: Any, where: str) -> tuple[int, ...]:
    """A shape given as tuple, list, Shape or single int."""
    items: Any = (shape,) if isinstance(shape, (int, np.integer)) else shape
    try:
        sizes = tuple(operator.index(size) for size in items)
    except TypeError:
        raise TypeError(f"{where}: 'shape' must be an int or a sequence of ints, got {shape!r}") from None
    if any(size < 0 for size in sizes):
        raise ValueError(f"{where}: 'shape' {list(sizes)} has a negative size")
    return sizes


def check_strides(strides: Any, where: str) -> tuple[int, ...]:
    """Strides given as a sequence of ints; None is the same as none."""
    try:
        return tuple(operator.index(step) for step in (() if strides is None else strides))
    except TypeError:
        raise TypeError(f"{where}: 'strides' must be a sequence of ints, got {strides!r}") from None


def resolve_reshape(shape: Sequence[Any], count: int) -> list[int]:
    """Sizes with one -1 filled in so that they hold `count` elements; ValueError when they cannot."""
    sizes = [operator.index(size) for size in shape]
    unknown = [i for i, size in enumerate(sizes) if size == -1]
    if len(unknown) > 1 or any(size < -1 for size in sizes):
        raise ValueError(f"reshape: 'shape' {sizes} may hold sizes and at most one -1")
    known = 1
    for size in sizes:
        known *= size if size != -1 else 1
    if unknown:
        if known == 0 or count % known:
            raise ValueError(f"reshape: {count} elements do not fit shape {sizes}")
        sizes[unknown[0]] = count // known
    elif known != count:
        raise ValueError(f"reshape: {count} elements do not fit shape {sizes} of {known} elements")
    return sizes


def broadcast_strides(shape: Sequence[int], strides: Sequence[int], target: Sequence[int]) -> list[int]:
    """Strides of a right-aligned broadcast to `target`: 0 for new dimensions and for those of size 1."""
    extra = len(target) - len(shape)
    if extra < 0:
        raise TensorError(
            f"Broadcast shape must be larger than tensor shape: {list(target)} has fewer dimensions than {list(shape)}"
        )
    result = [0] * extra
    for dim, (size, stride) in enumerate(zip(shape, strides, strict=True)):
        wanted = target[extra + dim]
        if size != wanted and size != 1:
            raise TensorError(f"Current dimension {size} at index {dim} must be equal to new dimension {wanted} or 1")
        result.append(stride if size == wanted else 0)
    return result


def permute_order(dims: Sequence[Any], rank: int) -> list[int]:
    """Dimensions of a permutation, negative ones counted from the end."""
    order = [operator.index(dim) + (rank if operator.index(dim) < 0 else 0) for dim in dims]
    if sorted(order) != list(range(rank)):
        raise ValueError(f"permute: {list(dims)} does not name each of the {rank} dimensions once")
    return order


def byte_runs(shape: Sequence[int], strides: Sequence[int], offset: int, item: int) -> list[tuple[int, int]]:
    """(offset, size) in bytes of the contiguous parts of a view; a part may occur twice in broadcast views."""
    if 0 in shape:
        return []
    length = 1
    outer = len(shape)
    while outer and (shape[outer - 1] == 1 or strides[outer - 1] == length):
        outer -= 1
        length *= shape[outer]
    starts = np.array([offset], np.int64)
    for size, stride in zip(shape[:outer], strides[:outer], strict=True):
        count = 1 if stride == 0 else size
        starts = (starts[:, None] + np.arange(count, dtype=np.int64) * stride).reshape(-1)
    return [(start * item, length * item) for start in starts.tolist()]
