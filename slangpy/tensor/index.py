"""Index arithmetic of tensor views: from (shape, strides, offset) and an index to the same of the view."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

View = tuple[list[int], list[int], int]


class TensorError(ValueError, RuntimeError):
    """A tensor cannot be viewed or transferred in this way: the argument is wrong for the state of the tensor."""


def row_major_strides(shape: Sequence[int]) -> list[int]:
    """Strides in elements; a size of 0 counts as 1."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return strides[::-1]


def is_row_major(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """True when the strides are row-major, sizes of 1 ignored."""
    expected = row_major_strides(shape)
    return 0 in shape or all(s == e or n == 1 for n, s, e in zip(shape, strides, expected, strict=True))


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


def _is_int(item: Any) -> bool:
    if isinstance(item, (bool, np.bool_)):
        return False
    return isinstance(item, (int, np.integer))


def _check_index(items: tuple[Any, ...], rank: int) -> None:
    used = 0
    ellipses = 0
    for position, item in enumerate(items):
        if item is Ellipsis:
            ellipses += 1
            if ellipses > 1:
                raise IndexError("An index can only have a single ellipsis ('...')")
        elif _is_int(item) or isinstance(item, slice):
            used += 1
        elif item is not None:
            raise TypeError(
                f"Illegal argument at dimension {position}: Allowed are int, slice, ..., or None; "
                f"found {type(item).__name__}{_instead(item)}"
            )
    if used > rank:
        raise IndexError(f"Too many indices for tensor of dimension {rank}")


def _instead(item: Any) -> str:
    if isinstance(item, str):
        return f"; fields of structs are read with tensor.to_numpy(structured=True)[{item!r}]"
    if isinstance(item, (list, tuple, np.ndarray)):
        return "; a Tensor has no masks and no lists of indices: index np.asarray(tensor), or read them in a Slang function"
    return ""


def apply_index(shape: Sequence[int], strides: Sequence[int], offset: int, index: Any) -> View:
    """NumPy's basic indexing. An int for every dimension gives shape [1]."""
    items = index if isinstance(index, tuple) else (index,)
    rank = len(shape)
    _check_index(items, rank)
    if not any(item is Ellipsis for item in items):
        items = (*items, Ellipsis)
    used = sum(1 for item in items if item is not None and item is not Ellipsis)
    sizes: list[int] = []
    steps: list[int] = []
    dim = 0
    for item in items:
        if item is None:
            sizes.append(1)
            steps.append(0)
        elif item is Ellipsis:
            count = rank - used
            sizes += shape[dim : dim + count]
            steps += strides[dim : dim + count]
            dim += count
        elif isinstance(item, slice):
            start, stop, step = item.indices(shape[dim])
            count = len(range(start, stop, step))
            offset += start * strides[dim] if count else 0
            sizes.append(count)
            steps.append(step * strides[dim])
            dim += 1
        else:
            position = int(item)  # pyright: ignore[reportArgumentType]
            if not -shape[dim] <= position < shape[dim]:
                raise IndexError(f"Index {position} is out of range for dimension {dim} with size {shape[dim]}")
            offset += (position % shape[dim]) * strides[dim]
            dim += 1
    if rank and not sizes:
        return [1], [1], offset
    return sizes, steps, offset


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
