"""Dimensions of a call. The functions are written by hand, too: this stage needs no compiler."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from slangpy.errors import BoundVariableException
from slangpy.plan.records import Argument, Binding, Options, Parameter, Resolved, Value, Vectorized
from slangpy.plan.vectorize import check_map_count, vectorize

FLOAT = SimpleNamespace(full_name="float", kind="scalar", scalar="float", shape=[], differentiable=True)


def parameter(name: str, dims: int, io: str = "in", kind: str = "", position: int = 0) -> Parameter:
    kind = kind or ("view" if dims else "value")
    value = Value("array" if dims else "float", "ndarray", {"scalar": "float", "shape": (2,) * dims}, position)
    binding = Binding(kind, value, "float", FLOAT, dims, stored="float")
    return Parameter(name, FLOAT, "float", io, False, binding, Argument(None, value, position))


def function(*parameters: Parameter, returns: str = "float") -> Resolved:
    return Resolved(None, "f", parameters, FLOAT, returns)


def spread(*parameters: Parameter, options: Options = Options(), strict: bool = False, mode: str = "auto") -> Vectorized:  # noqa: B008
    return vectorize(function(*parameters), options, strict, mode, False)


@pytest.mark.parametrize(
    ("dims", "rank", "maps"),
    [
        ((0, 0), 0, [(), ()]),
        ((1, 0), 1, [(0,), ()]),
        ((2, 1), 2, [(0, 1), (1,)]),
        ((1, 3), 3, [(2,), (0, 1, 2)]),
    ],
)
def test_alignment_is_at_the_right(dims: tuple[int, ...], rank: int, maps: list[Any]):
    plan = spread(*(parameter(f"p{i}", n, position=i) for i, n in enumerate(dims)))
    assert plan.call_rank == rank
    assert [p.map for p in plan.placed] == maps


def test_map_by_position_and_by_name():
    given = parameter("x", 2), parameter("y", 1, position=1)
    by_position = spread(*given, options=Options(map_args=(("dims", (1, 0)), ("dims", (0,)))))
    assert [p.map for p in by_position.placed] == [(1, 0), (0,)]
    by_name = spread(*given, options=Options(map_kwargs=(("y", ("dims", (3,))),)))
    assert by_name.call_rank == 4
    assert [p.map for p in by_name.placed] == [(2, 3), (3,)]


def test_strict_broadcasting_wants_all_dimensions():
    with pytest.raises(BoundVariableException, match="argument y has 1 dimensions and the call has 2"):
        spread(parameter("x", 2), parameter("y", 1), strict=True)
    assert spread(parameter("x", 2), parameter("y", 0), strict=True).call_rank == 2


@pytest.mark.parametrize(
    ("io", "kind", "bwds", "expected"),
    [
        ("in", "view", False, (True, False)), ("out", "view", False, (False, True)), ("inout", "view", False, (True, True)),
        ("inout", "view", True, (True, False)), ("out", "view", True, (False, False)), ("inout", "value", False, (True, False)),
    ],
)  # fmt: skip
def test_what_is_read_and_written(io: str, kind: str, bwds: bool, expected: tuple[bool, bool]):
    placed = spread(parameter("x", 1, io, kind), options=Options(bwds=bwds)).placed[0]
    assert (placed.reads, placed.writes) == expected


@pytest.mark.parametrize(
    ("dims", "mode", "expected"), [(0, "auto", "value"), (2, "auto", "tensor"), (1, "numpy", "numpy"), (0, "numpy", "numpy")]
)
def test_results(dims: int, mode: str, expected: str):
    assert spread(parameter("x", dims), mode=mode).result_mode == expected


def test_nothing_comes_back_of_backward_calls_and_void():
    assert spread(parameter("x", 1), options=Options(bwds=True)).result_mode == "none"
    assert vectorize(function(parameter("x", 1), returns="void"), Options(), False, "auto", False).result_mode == "none"


def test_map_names_what_is_unknown():
    resolved = function(parameter("x", 1))
    with pytest.raises(ValueError, match="Unknown keyword argument 'z'.*_result, x"):
        check_map_count(Options(map_kwargs=(("z", ("dims", (0,))),)), resolved, 1)
    with pytest.raises(ValueError, match="Too many arguments"):
        check_map_count(Options(map_args=(("dims", (0,)), ("dims", (0,)))), resolved, 1)
