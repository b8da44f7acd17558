"""Values that are made inside the kernel: grids, ids and random numbers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np

from ._native import Generator, GeneratorKind, _Grid
from .base.own_names import own_names
from .base.shared import Shared
from .base.typed import integer, number

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


_MOST_ROUNDS = 0xFFFFFFFF


def _seed(name: str, seed: Any, hash_seed: bool) -> int:
    start = integer(f"{name}: seed", seed) & 0xFFFFFFFF
    return _hash(start) if hash_seed else start


@own_names
class _Made(Shared):
    """A generator that knows its arguments: for `repr`, copies and pickles."""

    _named: str

    @property
    def _given(self) -> dict[str, Any]:
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{self._named}({', '.join(f'{key}={value!r}' for key, value in self._given.items())})"

    def __reduce__(self) -> Any:
        return _remake, (type(self), self._given)


def _remake(cls: Any, given: dict[str, Any]) -> Any:
    return cls(**given)


class GridArg(_Made, _Grid):
    """Integer coordinates over a shape: `offset + stride * index` in each dimension.

    shape: sizes, -1 = taken from the other arguments; an int n stands for n dimensions of size -1.
    offset, stride: one entry per dimension; strides may be negative or 0.
    """

    _named = "grid"

    @property
    def _given(self) -> dict[str, Any]:
        moved = {"offset": self.offset} if any(self.offset) else {}
        return {"shape": self.shape, **moved, **({"stride": self.stride} if set(self.stride) != {1} else {})}


class _Identity(_Made, Generator):
    """A generator that only has a number of components."""

    @property
    def _given(self) -> dict[str, Any]:
        return {"dims": self._dims}


class CallIdArg(_Identity):
    """The position of the invocation in the call shape."""

    _named = "call_id"

    def __init__(self, dims: int = -1) -> None:
        super().__init__(GeneratorKind.call_id, dims, 0, 0, 0.0, 1.0, "call_id: dims")


class ThreadIdArg(_Identity):
    """The flat dispatch index, in x."""

    _named = "thread_id"

    def __init__(self, dims: int = -1) -> None:
        super().__init__(GeneratorKind.thread_id, dims, 0, 0, 0.0, 1.0, "thread_id: dims")


class _Random(_Made, Generator):
    """A generator with a seed."""

    _kept: dict[str, Any]

    @property
    def _given(self) -> dict[str, Any]:
        return self._kept


class WangHashArg(_Random):
    """Random 32-bit integers by Wang's hash of the invocation's index."""

    _named = "wang_hash"

    def __init__(self, dims: int = -1, seed: int = 0, warmup: int = 0, hash_seed: bool = True) -> None:
        start, rounds = _seed("wang_hash", seed, hash_seed), integer("wang_hash: warmup", warmup, 0, _MOST_ROUNDS)
        super().__init__(GeneratorKind.wang_hash, dims, start, rounds, 0.0, 1.0, "wang_hash: dim")
        self._kept = {"dims": dims, "seed": seed, "warmup": warmup, "hash_seed": hash_seed}


class RandFloatArg(_Random):
    """Uniform floats in [min, max) from Wang's hash of the invocation's index."""

    _named = "rand_float"

    def __init__(
        self, min: float = 0, max: float = 1, dim: int = -1, seed: int = 0, warmup: int = 0, hash_seed: bool = True
    ) -> None:
        start, rounds = _seed("rand_float", seed, hash_seed), integer("rand_float: warmup", warmup, 0, _MOST_ROUNDS)
        low, high = float(number("rand_float: min", min)), float(number("rand_float: max", max))
        super().__init__(GeneratorKind.rand_float, dim, start, rounds, low, high, "rand_float: dim")
        self._kept = {"min": min, "max": max, "dim": dim, "seed": seed, "warmup": warmup, "hash_seed": hash_seed}


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
