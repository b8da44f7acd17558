"""The worked cases of the documentation: one function, what is passed, the call shape and the result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from calls_support import array, load, plain, tensor, tensor_of

import slangpy as spy
from slangpy import float2, float3

pytestmark = [
    pytest.mark.needs_kernels,
    pytest.mark.elsewhere(
        "right_aligned", "size_one", "vectors_by_rows", "nested_array_rows", "tensor_rows", "fields_broadcast", "empty",
        "outer_vectors", "diagonal", "result", "whole_tensor", "test_outputs", "sizes_clash",
    ),
]  # fmt: skip


class Args:
    """T(...) and N(...) of the documentation."""

    def __init__(self, device: Any) -> None:
        self.device = device
        self.m = load(device, "worked")

    def T(self, *shape: int) -> spy.Tensor:
        return tensor(self.device, *shape)

    def scalar(self, value: float) -> spy.Tensor:
        return tensor_of(self.device, value)


def N(*shape: int) -> np.ndarray:
    return array(*shape)


Case = Callable[[Args], Any]

PLAIN: dict[str, tuple[Case, Any]] = {
    "numbers": (lambda c: c.m.add(1, 2.5), 3.5),
    "tensor_and_number": (lambda c: c.m.add(c.T(4), 2), [2, 3, 4, 5]),
    "right_aligned": (lambda c: c.m.add(c.T(2, 3), c.T(3)), [[0, 2, 4], [3, 5, 7]]),
    "both_broadcast": (lambda c: c.m.add(c.T(2, 1), c.T(1, 3)), [[0, 1, 2], [1, 2, 3]]),
    "size_one": (lambda c: c.m.add(c.T(4), c.T(1)), [0, 1, 2, 3]),
    "zero_dimensional": (lambda c: c.m.add(c.scalar(3.0), 2), 5.0),
    "components": (lambda c: c.m.add(float3(1, 2, 3), 1), [2, 3, 4]),
    "components_and_column": (lambda c: c.m.add(float3(1, 2, 3), c.T(2, 1)), [[1, 2, 3], [2, 3, 4]]),
    "matrix_elements": (
        lambda c: c.m.add(spy.float2x3(0, 1, 2, 3, 4, 5), float3(10, 20, 30)),
        [[10, 21, 32], [13, 24, 35]],
    ),
    "list": (lambda c: c.m.add([1.0, 2.0], c.T(3, 2)), [[1, 3], [3, 5], [5, 7]]),
    "nested_list": (lambda c: c.m.add([[1, 2], [3, 4]], 1), [[2, 3], [4, 5]]),
    "nested_tuple": (lambda c: c.m.add(((1, 2), (3, 4)), 1), [[2, 3], [4, 5]]),
    "numpy_and_tensor": (lambda c: c.m.add(N(2, 3), c.T(3)), [[0, 2, 4], [3, 5, 7]]),
    "range": (lambda c: c.m.cnt(range(0, 10, 3)), [0, 3, 6, 9]),
    "vectors_by_rows": (lambda c: c.m.dot3(c.T(2, 3), float3(1, 2, 3)), [8, 26]),
    "vector_whole": (lambda c: c.m.dot3(c.T(2, 3), c.T(3)), [5, 14]),
    "vectors_whole": (lambda c: c.m.dot3(c.T(3), c.T(3)), 5.0),
    "vector_result": (lambda c: c.m.scale(c.T(2, 3), c.T(2)), [[0, 0, 0], [3, 4, 5]]),
    "widened_number": (lambda c: c.m.scale(2.0, c.T(2)), [[0, 0, 0], [2, 2, 2]]),
    "array_rows": (lambda c: c.m.sum4(c.T(3, 4)), [6, 22, 38]),
    "array_whole": (lambda c: c.m.sum4(c.T(4)), 6.0),
    "nested_array_whole": (lambda c: c.m.pick(c.T(2, 3)), 3.0),
    "nested_array_rows": (lambda c: c.m.pick(c.T(5, 2, 3)), [3, 9, 15, 21, 27]),
    "tensor_rows": (lambda c: c.m.row(c.T(2, 3)), [3, 12]),
    "tensor_whole": (lambda c: c.m.row(c.T(3)), 3.0),
    "tensor_from_numpy": (lambda c: c.m.row(N(2, 3)), [3, 12]),
    "struct_result": (lambda c: c.m.mk(1.0), {"x": 1.0, "v": [1, 2, 3]}),
    "fields": (lambda c: c.m.gs({"x": c.T(3), "v": c.T(3, 3)}), [1, 5, 9]),
    "fields_broadcast": (lambda c: c.m.gs({"x": c.T(2, 3), "v": c.T(3, 3)}), [[1, 5, 9], [4, 8, 12]]),
    "list_of_dicts": (
        lambda c: c.m.gs([{"x": 1, "v": float3(1, 2, 3)}, {"x": 2, "v": float3(4, 5, 6)}]),
        [3, 7],
    ),
    "list_of_typed_dicts": (
        lambda c: c.m.gs([{"_type": "S", "x": 1, "v": float3(1, 2, 3)}, {"_type": "S", "x": 2, "v": float3(4, 5, 6)}]),
        [3, 7],
    ),
    "result_takes_part": (lambda c: c.m.add(c.T(3), 1, _result=c.T(2, 3)), [[1, 2, 3], [1, 2, 3]]),
    "empty": (lambda c: c.m.add(c.T(0), 1), []),
}  # fmt: skip


@pytest.mark.parametrize("name", PLAIN)
def test_worked_case(device: Any, name: str) -> None:
    call, expected = PLAIN[name]
    assert plain(call(Args(device))) == expected


MAPPED: dict[str, tuple[Case, Any]] = {
    "outer": (lambda c: c.m.add.map((0,), (1,))(c.T(2), c.T(3)), [[0, 1, 2], [1, 2, 3]]),
    "transposed": (lambda c: c.m.add.map((1, 0))(c.T(2, 3), 0.0), [[0, 3], [1, 4], [2, 5]]),
    "by_name": (lambda c: c.m.add.map(b=(0,))(a=c.T(2, 3), b=c.T(2)), [[0, 1, 2], [4, 5, 6]]),
    "name_for_position": (lambda c: c.m.add.map(b=(0,))(c.T(2, 3), c.T(2)), [[0, 1, 2], [4, 5, 6]]),
    "unmapped_aligns_right": (lambda c: c.m.add.map((0,))(c.T(2), c.T(2, 3)), [[0, 1, 2], [4, 5, 6]]),
    "none_is_default": (lambda c: c.m.add.map(None, (0,))(c.T(2, 3), c.T(2)), [[0, 1, 2], [4, 5, 6]]),
    "outer_vectors": (
        lambda c: c.m.dot3.map((0,), (1,))(c.T(2, 3), c.T(4, 3)),
        [[5, 14, 23, 32], [14, 50, 86, 122]],
    ),
    "diagonal": (lambda c: c.m.add.map((0, 0))(c.T(3, 3), 0.0), [0, 4, 8]),
    "unused_dims": (lambda c: c.m.add.map((2,))(c.T(3), 0.0), [[[0, 1, 2]]]),
    "result": (
        lambda c: c.m.add.map(a=(0, 1), _result=(1, 0))(a=c.T(2, 3), b=0.0, _result=c.T(3, 2)),
        [[0, 3], [1, 4], [2, 5]],
    ),
    "whole_tensor": (lambda c: c.m.row.map(())(c.T(3)), 3.0),
    "type": (lambda c: c.m.g.map("float3")(c.T(2, 3)), [[0, 1, 2], [3, 4, 5]]),
    "python_type": (lambda c: c.m.g.map(float)(c.T(2, 3)), [[0, 1, 2], [3, 4, 5]]),
    "vector_class": (lambda c: c.m.g.map(spy.float3)(c.T(2, 3)), [[0, 1, 2], [3, 4, 5]]),
    "struct_type": (lambda c: c.m.g.map(c.m["float3"])(c.T(2, 3)), [[0, 1, 2], [3, 4, 5]]),
    "fields": (
        lambda c: c.m.gs.map({"x": (0,), "v": (1,), "$type": "S"})({"x": c.T(2), "v": c.T(3, 3)}),
        [[1, 4, 7], [2, 5, 8]],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MAPPED)
def test_mapped_case(device: Any, name: str) -> None:
    call, expected = MAPPED[name]
    assert plain(call(Args(device))) == expected


def test_mapped_type_keeps_the_rank_rule(device: Any) -> None:
    c = Args(device)
    assert c.m.g.map("float3")(c.T(2, 3)).shape == (2,)
    assert c.m.g.map(float)(c.T(2, 3)).shape == (2, 3)


REFUSED: dict[str, tuple[Case, type[Exception], str]] = {
    "sizes_clash": (lambda c: c.m.add(c.T(2, 3), c.T(2)), spy.ShapeError, "Shape mismatch for b between value (2) and call (3)"),
    "components_clash": (lambda c: c.m.add(float3(1, 2, 3), float2(1, 2)), spy.ShapeError, "between value (2) and call (3)"),
    "trailing_vector": (lambda c: c.m.dot3(c.T(5, 4), float3(1)), spy.ShapeError, "does not match the expected shape"),
    "trailing_array": (lambda c: c.m.sum4(c.T(3, 5)), spy.ShapeError, "does not match the expected shape"),
    "result_clash": (lambda c: c.m.add(c.T(3), 1, _result=c.T(4)), spy.ShapeError, "_result"),
    "zero_against_three": (lambda c: c.m.add(c.T(0), c.T(3)), spy.ShapeError, "Shape mismatch"),
    "map_a_number": (lambda c: c.m.add.map((0,))(1.0, 2), spy.BoundVariableException, "Explicit vectorization raised exception"),
    "map_too_many": (lambda c: c.m.add.map((0, 1))(c.T(3), 2), spy.BoundVariableException, "Explicit vectorization"),
    "map_negative": (lambda c: c.m.add.map((-1,))(c.T(3), 2), ValueError, "negative"),
    "map_more_than_arguments": (
        lambda c: c.m.add.map((0,), (0,), (0,))(c.T(3), c.T(3)), ValueError,
        "Too many arguments supplied for explicit vectorization",
    ),
    "map_unknown_name": (lambda c: c.m.add.map(q=(0,))(c.T(3), 2), ValueError, "Unknown keyword argument"),
    "map_unknown_type": (lambda c: c.m.g.map("Nope")(c.T(3)), ValueError, "Nope"),
    "map_list": (lambda c: c.m.add.map([0])(c.T(3), 2), ValueError, "Invalid explicit type"),
    "map_number": (lambda c: c.m.add.map(1)(c.T(3), 2), ValueError, "Invalid explicit type"),
    "map_impossible_type": (lambda c: c.m.add.map("float3")(c.T(3), 2), spy.ResolveException, "float3"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused_case(device: Any, name: str) -> None:
    call, kind, text = REFUSED[name]
    c = Args(device)
    with pytest.raises(kind) as caught:
        call(c)
    assert text in str(caught.value)
    assert c.m.add(1, 2) == 3.0  # the module goes on working


def test_result_kinds(device: Any) -> None:
    c = Args(device)
    assert isinstance(c.m.add(N(2, 3), c.T(3)), spy.Tensor)
    result = c.m.add(N(2, 3), 1, _result="numpy")
    assert isinstance(result, np.ndarray) and result.dtype == np.float32
    assert result.tolist() == [[1, 2, 3], [4, 5, 6]]
    assert isinstance(c.m.add(c.scalar(3.0), 2), float)
    made = c.m.mk(c.T(2))
    assert isinstance(made, spy.Tensor) and made.shape == (2,) and made.dtype.full_name == "S"
    assert c.m.scale(c.T(2, 3), c.T(4, 1)).shape == (4, 2)
    assert c.m.add(N(0, 3), 1).shape == (0, 3)
    twice = c.m.twice(N(2, 2, 3), _result="numpy")
    assert twice.shape == (2, 2, 3) and twice.tolist() == (2 * N(2, 2, 3)).tolist()


def test_results_given_to_the_call_are_returned(device: Any) -> None:
    c = Args(device)
    out = c.T(2, 3)
    assert c.m.add(c.T(3), 1, _result=out) is out


def test_outputs(device: Any) -> None:
    c = Args(device)
    ref = spy.floatRef()
    assert c.m.split(3.0, ref) is None and ref.value == 6.0
    out = c.T(3)
    assert c.m.split(c.T(3), out) is None
    assert plain(out) == [0, 2, 4]
    ref = spy.floatRef()
    c.m.split(c.T(3), ref)
    assert ref.value in (0.0, 2.0, 4.0)
    host = np.zeros(3, np.float32)
    c.m.split(c.T(3), host)
    assert host.tolist() == [0, 2, 4]
    strided = np.zeros(6, np.float32)[::2]
    c.m.split(c.T(3), strided)
    assert strided.tolist() == [0, 2, 4]
    c.m.split(2.0, 1.0)  # what would be written to a plain number is dropped


def test_values_without_shape(device: Any) -> None:
    c = Args(device)
    assert isinstance(c.m.rand(spy.rand_float()), float)
    at = c.m.where(spy.call_id(), _result=np.zeros((4, 3, 2), np.int32))
    assert at[1, 2].tolist() == [2, 1]
