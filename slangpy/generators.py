"""Values that are made inside the kernel: grids, ids and random numbers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from operator import index
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np

from ._native import Generator, GeneratorKind
from .base.shared import Shared

_DEFAULT_SEED = 2640457667


def _hash(seed: int) -> int:
    """Wang's 32-bit integer hash (T. Wang, "Integer Hash Function", 1997)."""
    mask = 0xFFFFFFFF
    seed = ((seed ^ 61) ^ (seed >> 16)) & mask
    seed = (seed * 9) & mask
    seed ^= seed >> 4
    seed = (seed * 0x27D4EB2D) & mask
    return seed ^ (seed >> 15)


def calc_wang_hash(seed: int) -> int:
    """The hash of one 32-bit integer, as kernels compute it."""
    return _hash(seed & 0xFFFFFFFF)


def calc_wang_hash_numpy(seeds: Any) -> np.ndarray[Any, np.dtype[np.uint32]]:
    """The hash of each integer of an array (taken modulo 2^32), as uint32 of the same shape."""
    values = np.asarray(seeds)
    if values.dtype.kind not in "iu":
        raise TypeError(f"calc_wang_hash_numpy: expected an array of integers, got dtype {values.dtype}")
    # 64-bit arithmetic wraps modulo 2^64, so the low 32 bits are right
    state = values.astype(np.uint64) & np.uint64(0xFFFFFFFF)
    mask = np.uint64(0xFFFFFFFF)
    state = (state ^ np.uint64(61)) ^ (state >> np.uint64(16))
    state = (state * np.uint64(9)) & mask
    state ^= state >> np.uint64(4)
    state = (state * np.uint64(0x27D4EB2D)) & mask
    return (state ^ (state >> np.uint64(15))).astype(np.uint32)


_MAX_DIMS = 32
_MOST_ROUNDS = 0xFFFFFFFF


def _integer(value: Any, what: str, least: int | None = None, most: int | None = None) -> int:
    try:
        number = index(value)
    except TypeError:
        raise TypeError(f"{what} must be an integer, got {value!r}") from None
    if (least is not None and number < least) or (most is not None and number > most):
        limits = f"{least} or more" if most is None else f"from {least} to {most}"
        raise ValueError(f"{what} must be {limits}, got {number}")
    return number


def _components(value: Any, what: str) -> int:
    """A demanded number of components; -1 takes the parameter's."""
    number = _integer(value, what)
    if number != -1 and not 1 <= number <= _MAX_DIMS:
        raise ValueError(f"{what} must be from 1 to {_MAX_DIMS}, or -1 for what the parameter takes, got {number}")
    return number


def _number(value: Any, what: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{what} must be a number, got {value!r}") from None


def _sizes(value: Any, what: str) -> tuple[int, ...]:
    if isinstance(value, int):
        return (value,)
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise TypeError(f"{what} must be an int or a sequence of ints, got {value!r}")
    sizes = tuple(_integer(entry, f"an entry of {what}") for entry in value)
    if not sizes:
        raise ValueError(f"{what} needs at least one entry")
    if len(sizes) > _MAX_DIMS:
        raise ValueError(f"{what} has {len(sizes)} entries; there are at most {_MAX_DIMS} dimensions")
    if any(not -(2**63) <= size < 2**63 for size in sizes):
        raise OverflowError(f"{what}: {sizes} has numbers beyond 64 bits")
    return sizes


def _seed(name: str, seed: Any, hash_seed: bool) -> int:
    start = _integer(seed, f"{name}: seed") & 0xFFFFFFFF
    return _hash(start) if hash_seed else start


class _Made(Generator, Shared):
    """A generator that knows what it was made with: for `repr`, copies and pickles."""

    def _keep(self, **given: Any) -> None:
        self._given = given

    def __repr__(self) -> str:
        names = {"CallIdArg": "call_id", "ThreadIdArg": "thread_id", "WangHashArg": "wang_hash"}
        name = {**names, "GridArg": "grid", "RandFloatArg": "rand_float"}.get(type(self).__name__, type(self).__name__)
        return f"{name}({', '.join(f'{key}={value!r}' for key, value in self._given.items())})"

    def __reduce__(self) -> Any:
        return _remake, (type(self), self._given)


def _remake(cls: Any, given: dict[str, Any]) -> Any:
    return cls(**given)


class GridArg(_Made):
    """Integer coordinates over a shape: `offset + stride * index` in each dimension.

    shape: sizes, -1 = taken from the other arguments; an int n stands for n dimensions of size -1.
    offset, stride: one entry per dimension; strides may be negative or 0.
    """

    def __init__(self, shape: Any = -1, offset: Any = None, stride: Any = None) -> None:
        if not isinstance(shape, Iterable):
            shape = _integer(shape, "grid: a number of dimensions")
        if isinstance(shape, int) and not 1 <= shape <= _MAX_DIMS:
            raise ValueError(f"grid: a number of dimensions must be from 1 to {_MAX_DIMS}, got {shape}")
        sizes = (-1,) * shape if isinstance(shape, int) else _sizes(shape, "grid shape")
        if any(size < -1 for size in sizes):
            raise ValueError(f"grid: sizes are 0 or more, or -1 for the size of the other arguments, got {sizes}")
        starts = (0,) * len(sizes) if offset is None else _sizes(offset, "grid offset")
        steps = (1,) * len(sizes) if stride is None else _sizes(stride, "grid stride")
        if len(starts) != len(sizes) or len(steps) != len(sizes):
            hint = f"; a shape is one tuple: grid(({shape}, {offset}))" if isinstance(offset, int) else ""
            raise ValueError(f"grid: offset {starts} and stride {steps} must have as many entries as shape {sizes}{hint}")
        super().__init__(GeneratorKind.grid, len(sizes), sizes, starts, steps)
        self._shape, self._offset, self._stride = sizes, starts, steps
        moved = {"offset": starts} if any(starts) else {}
        self._keep(shape=sizes, **moved, **({"stride": steps} if set(steps) != {1} else {}))

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the grid; -1 takes that of the call."""
        return self._shape

    @property
    def offset(self) -> tuple[int, ...]:
        """What is added to each coordinate."""
        return self._offset

    @property
    def stride(self) -> tuple[int, ...]:
        """What each coordinate is multiplied by."""
        return self._stride

    @property
    def dims(self) -> int:
        """Number of dimensions."""
        return len(self._shape)


class CallIdArg(_Made):
    """The position of the invocation in the call shape."""

    def __init__(self, dims: int = -1) -> None:
        super().__init__(GeneratorKind.call_id, _components(dims, "call_id: dims"))
        self._keep(dims=dims)


class ThreadIdArg(_Made):
    """The flat dispatch index, in x."""

    def __init__(self, dims: int = -1) -> None:
        super().__init__(GeneratorKind.thread_id, _components(dims, "thread_id: dims"))
        self._keep(dims=dims)


class WangHashArg(_Made):
    """Random 32-bit integers by Wang's hash of the invocation's index."""

    def __init__(self, dims: int = -1, seed: int = 0, warmup: int = 0, hash_seed: bool = True) -> None:
        start, rounds = _seed("wang_hash", seed, hash_seed), _integer(warmup, "wang_hash: warmup", 0, _MOST_ROUNDS)
        super().__init__(GeneratorKind.wang_hash, _components(dims, "wang_hash: dim"), seed=start, warmup=rounds)
        self._keep(dims=dims, seed=seed, warmup=warmup, hash_seed=hash_seed)


class RandFloatArg(_Made):
    """Uniform floats in [min, max) from Wang's hash of the invocation's index."""

    def __init__(
        self, min: float = 0, max: float = 1, dim: int = -1, seed: int = 0, warmup: int = 0, hash_seed: bool = True
    ) -> None:
        start, rounds = _seed("rand_float", seed, hash_seed), _integer(warmup, "rand_float: warmup", 0, _MOST_ROUNDS)
        low, high = _number(min, "rand_float: min"), _number(max, "rand_float: max")
        super().__init__(
            GeneratorKind.rand_float, _components(dim, "rand_float: dim"), seed=start, warmup=rounds, min=low, max=high
        )
        self._keep(min=min, max=max, dim=dim, seed=seed, warmup=warmup, hash_seed=hash_seed)


class Deferred:
    """A generator asked for inside torch.compile, which cannot follow native classes: made when the call is traced."""

    def __init__(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.name, self.args, self.kwargs = name, args, kwargs


def _is_traced() -> bool:
    guards = sys.modules.get("torch._guards")
    return guards is not None and guards.TracingContext.try_get() is not None


_is_traced._dynamo_marked_constant = True  # pyright: ignore[reportFunctionMemberAccess]

_P = ParamSpec("_P")
_R = TypeVar("_R")


def _traceable(make: Callable[_P, _R]) -> Callable[_P, _R]:
    @wraps(make)
    def made(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        return cast(Any, Deferred(make.__name__, args, kwargs)) if _is_traced() else make(*args, **kwargs)

    return made


def make_deferred(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Generator:
    """The generator that a Deferred stands for."""
    return globals()[name].__wrapped__(*args, **kwargs)


@_traceable
def grid(shape: Any, offset: Sequence[int] | None = None, stride: Sequence[int] | None = None) -> GridArg:
    """Integer coordinates over `shape`."""
    return GridArg(shape, offset, stride)


@_traceable
def call_id(dims: Any = -1) -> Generator:
    """The position of each invocation in the call shape; with a shape, a grid of it."""
    return GridArg(dims) if isinstance(dims, Iterable) else CallIdArg(dims)


@_traceable
def thread_id(dims: int = -1) -> ThreadIdArg:
    """The flat dispatch index of each invocation."""
    return ThreadIdArg(dims)


@_traceable
def wang_hash(dim: int = -1, seed: int = _DEFAULT_SEED, warmup: int = 0, hash_seed: bool = True) -> WangHashArg:
    """Random 32-bit integers, one stream per seed."""
    return WangHashArg(dim, seed, warmup, hash_seed)


@_traceable
def rand_float(
    min: float = 0, max: float = 1, dim: int = -1, seed: int = _DEFAULT_SEED, warmup: int = 0, hash_seed: bool = True
) -> RandFloatArg:
    """Uniform random floats in [min, max)."""
    return RandFloatArg(min, max, dim, seed, warmup, hash_seed)
