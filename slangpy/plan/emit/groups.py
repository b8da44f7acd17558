"""Calls in groups: one tile of the call shape runs in one hardware group."""

from __future__ import annotations

from ...errors import KernelGenException
from ..records import Vectorized
from ..slang_text import indent, product
from ..trampoline import Kernel


def tile_shape(given: tuple[int, ...] | None, rank: int, limit: int) -> tuple[int, ...]:
    """Sizes of a tile in all dimensions of the call; empty for calls without groups.

    Missing leading sizes are 1. Raises KernelGenException for tiles that the call or the device cannot have.
    """
    if not given:
        return ()
    if len(given) > rank:
        raise KernelGenException(
            f"call_group_shape dimensionality ({len(given)}) must be <= call_shape dimensionality ({rank}): "
            f"call_group_shape {list(given)} cannot have more dimensions than call_shape"
        )
    for index, size in enumerate(given):
        if size < 1:
            raise KernelGenException(f"call_group_shape[{index}] = {size}, but each size must be >= 1")
    if product(given) > limit:
        raise KernelGenException(
            f"call_group_shape {list(given)} has {product(given)} invocations; a group of this device has at most {limit}"
        )
    return (1,) * (rank - len(given)) + tuple(given)


def has_threads(plan: Vectorized, cpu: bool) -> bool:
    """Whether the invocations of a group are threads that run side by side. On the CPU they are where the function may
    share memory with its neighbours, or wait for them; elsewhere a loop over the tiles takes less."""
    return not cpu or bool(plan.tile and plan.sees_threads)


def within(kernel: Kernel, begin: int) -> None:
    """Leaves the lines of the body from `begin` on to the invocations of the call: whole groups have threads beyond."""
    lines = kernel.body[begin:]
    if lines:
        kernel.body[begin:] = ["if (_inside)", "{", *indent(lines), "}"]


def whole_place(kernel: Kernel) -> list[str]:
    """The index `_i` of a thread of a whole group, whose invocation `_first` is one of the call."""
    kind = kernel.facts.index
    return [
        f"const bool _inside = {kind}(_thread) < {kind}(_call._total) - {kind}(_first);",
        f"{kind} _i = _inside ? {kind}(_first) + {kind}(_thread) : {kind}(_call._total) - 1;",
    ]


class TileLoops:
    """The index code of kernels over tiles. A launch counts tiles; `_i` stays the row-major index of the invocation.

    `_d` counts invocations in the order in which groups and their threads run.
    """

    def __init__(self, tile: tuple[int, ...], kind: str) -> None:
        self.tile, self.kind = tile, kind
        self.rank = len(tile)

    def _split_tile(self) -> list[str]:
        """Coordinates `_t0`, ... of the tile `_tile`."""
        kind = self.kind
        lines = [f"{kind} _rest = _tile;"]
        for dim in range(self.rank - 1, 0, -1):
            size = self.tile[dim]
            count = (
                f"(({kind}(_call._shape[{dim}]) + {size - 1}) / {size})" if size > 1 else f"{kind}(_call._shape[{dim}])"
            )
            lines += [f"{kind} _t{dim} = _rest % {count};", f"_rest = _rest / {count};"]
        return [*lines, f"{kind} _t0 = _rest;"]

    def _flat(self) -> str:
        text = "_c0"
        for dim in range(1, self.rank):
            text = f"({text}) * {self.kind}(_call._shape[{dim}]) + _c{dim}"
        return text

    def _inside(self) -> str:
        return " && ".join(f"_c{dim} < {self.kind}(_call._shape[{dim}])" for dim in range(self.rank))

    def _place_thread(self) -> list[str]:
        kind, lines, step = self.kind, self._split_tile(), product(self.tile)
        for dim, size in enumerate(self.tile):
            step //= size
            local = f"{kind}(_thread / {step} % {size})" if step > 1 else f"{kind}(_thread % {size})"
            lines.append(f"{kind} _c{dim} = _t{dim} * {size} + {local if size > 1 else '0'};")
        return [*lines, f"{kind} _i = {self._flat()};", f"{kind} _d = _tile * {product(self.tile)} + {kind}(_thread);"]

    def gpu(self, hoisted: list[str], body: list[str], after: list[str], strides: bool) -> list[str]:
        """One tile per group; with `strides` a group takes several tiles and all its threads reach the end."""
        kind = self.kind
        first = f"{kind}(_group.x) + {kind}(_group.y) * {kind}(_call._block)"
        inside = [f"if ({self._inside()})", "{", *indent(body), "}"]
        if not strides:
            head = [f"{kind} _tile = {first};", f"if (_tile >= {kind}(_call._total)) return;"]
            return [*head, *self._place_thread(), *hoisted, *inside, *after]
        return [
            *hoisted,
            f"for ({kind} _tile = {kind}(_group.x); _tile < {kind}(_call._total); _tile += {kind}(_call._block))",
            "{",
            *indent(self._place_thread() + inside),
            "}",
            *after,
        ]

    def cpu(self, row: list[str], body: list[str]) -> list[str]:
        """The tiles of a block one after the other; the elements of each in order."""
        last = self.rank - 1
        local = "0"
        for dim, size in enumerate(self.tile):
            local = f"({local}) * {size} + (_c{dim} - _t{dim} * {size})" if dim else f"_c0 - _t0 * {size}"
        lines = [*row, self._loop(last), "{", f"    int64_t _i = {self._flat()};"]
        lines += [f"    int64_t _d = _tile * {product(self.tile)} + {local};", *indent(body), "}"]
        for dim in range(last - 1, -1, -1):
            lines = [self._loop(dim), "{", *indent(lines), "}"]
        head = "for (int64_t _tile = _first; _tile < _last; _tile++)"
        return [head, "{", *indent(self._split_tile() + lines), "}"]

    def _loop(self, dim: int) -> str:
        size = self.tile[dim]
        inside = f"_c{dim} < _t{dim} * {size} + {size} && _c{dim} < _call._shape[{dim}]"
        return f"for (int64_t _c{dim} = _t{dim} * {size}; {inside}; _c{dim}++)"


def position_lines(rank: int, tile: tuple[int, ...]) -> list[str]:
    """Tells CallShapeInfo where this invocation is."""
    if rank == 0:
        return ["_spy_clear_call_shape_info();"]
    ids = ", ".join(f"int(_c{dim})" for dim in range(rank))
    sizes = ", ".join(str(size) for size in (tile or (1,) * rank))
    return [
        f"int _at[{rank}] = {{ {ids} }};",
        f"int _tile_shape[{rank}] = {{ {sizes} }};",
        f"_spy_set_call_shape_info<{rank}>(_at, _tile_shape);",
    ]
