"""Numbers, references, numpy arrays and what calls return."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np
import pytest
from calls_support import array, load, plain, tensor, typed

import slangpy as spy

pytestmark = [
    pytest.mark.needs_kernels,
    pytest.mark.elsewhere(
        "test_float_extremes", "test_references", "test_read_only_numpy", "test_strided_outputs", "test_inout_numpy",
        "test_every_scalar_type", "test_a_million_elements", "(0, 3)", "test_result_values",
    ),
]  # fmt: skip

DTYPES = {
    "float": np.float32, "double": np.float64, "half": np.float16, "int8_t": np.int8, "int16_t": np.int16, "int": np.int32,
    "int64_t": np.int64, "uint8_t": np.uint8, "uint16_t": np.uint16, "uint": np.uint32, "uint64_t": np.uint64, "bool": np.bool_,
}  # fmt: skip


@pytest.fixture
def m(device: Any) -> spy.Module:
    return load(device, "values")


# --- numbers


class Flags(enum.IntFlag):
    a = 1
    b = 4


class Id(int):
    pass


@pytest.mark.parametrize("value", [5, np.int8(5), np.uint64(5), 5.0, np.float16(5), Flags.a | Flags.b, Id(5)], ids=repr)
def test_number_kinds_to_int(m: spy.Module, value: Any) -> None:
    assert m.take_int(value) == 5


@pytest.mark.parametrize("value", [5, 5.0, np.float32(5), np.int64(5), spy.float16_t(5), True + 4], ids=repr)
def test_number_kinds_to_float(m: spy.Module, value: Any) -> None:
    assert m.take_float(value) == 5.0


def test_numpy_scalars_keep_their_type(m: spy.Module) -> None:
    assert m.take_any(np.int16(-3)) == -3
    assert m.take_any(2**40) == 2**40
    assert m.take_any(2**63) == 2**63
    assert m.take_any(np.float16(0.5)) == 0.5
    assert m.take_any(np.bool_(True)) is True
    with pytest.raises(OverflowError):
        m.take_any(2**64)


def test_float_extremes(m: spy.Module) -> None:
    assert m.take_float(1e300) == float("inf")
    assert m.take_half(1e6) == float("inf")
    assert m.take_double(1e300) == 1e300
    assert np.isnan(m.take_float(float("nan")))
    with pytest.raises((ValueError, OverflowError)):
        m.take_int(float("inf"))
    with pytest.raises((ValueError, OverflowError)):
        m.take_int(float("nan"))


@pytest.mark.parametrize(
    ("name", "value"), [("take_int8", 128), ("take_int8", -129), ("take_uint", -1), ("take_int", 2**31), ("take_uint64", -1), ("take_int64", 2**63)]
)  # fmt: skip
def test_out_of_range(m: spy.Module, name: str, value: int) -> None:
    with pytest.raises(OverflowError) as caught:
        m[name](value)
    assert str(value) in str(caught.value) and "argument v" in str(caught.value) and name in str(caught.value)
    assert m[name](1) == 1


def test_values_are_no_part_of_the_plan(m: spy.Module) -> None:
    plans = {id(m.take_float.debug_build_call_data(v)) for v in (1.0, 2.0, -3.5)}
    assert len(plans) == 1
    assert m.take_float.debug_build_call_data(1) is not m.take_float.debug_build_call_data(1.0)


def test_list_lengths_are_no_part_of_the_plan(m: spy.Module) -> None:
    from slangpy.plan import compile as stage

    m.take_float([1.0, 2.0, 3.0])
    m.take_float([[1.0], [2.0]])
    before = stage.builds
    for count in range(4, 20):
        assert plain(m.take_float([float(i) for i in range(count)])) == list(range(count))
    assert stage.builds == before


# --- references


def test_references(m: spy.Module) -> None:
    total = spy.floatRef(5.0)
    assert m.add_to(total, 2.0) is None and total.value == 7.0
    count = spy.intRef(4)
    m.twice_int(count, count := spy.intRef())
    assert count.value == 8
    for init in (0, 0.0, None, spy.floatRef().value):
        out = spy.ValueRef(init)
        m.twice(3.0, out)
        assert out.value == 6.0
    flag = spy.ValueRef(False)
    m.out_bool(2.0, flag)
    assert flag.value is True
    items = spy.ValueRef([])
    m.out_array(items)
    assert items.value == [1.0, 2.0, 3.0]
    matrix = spy.ValueRef(spy.float2x2())
    m.out_matrix(matrix)
    assert plain(matrix.value) == [[1, 2], [3, 4]]
    item = spy.ValueRef({"_type": "Item", "x": 1.0, "at": spy.int2(3, 4)})
    m.move(item)
    assert plain(item.value) == {"x": 2.0, "at": [4, 5]}
    vector = spy.ValueRef(spy.float3())
    m.out_vector(2.0, vector)
    assert vector.value == spy.float3(2, 3, 4)


def test_references_as_results_and_in_vectorised_calls(m: spy.Module) -> None:
    ref = spy.floatRef()
    assert m.cube(2.0, _result=ref) == 8.0 and ref.value == 8.0
    m.twice(array(4), ref)
    assert ref.value in (0.0, 2.0, 4.0, 6.0)
    assert m.take_int(spy.intRef(3)) == 3
    assert plain(m.mix2(spy.floatRef(1.0), array(3))) == [1, 3, 5]


def test_wrong_references(m: spy.Module) -> None:
    with pytest.raises(spy.ResolveException):
        m.out_bool(2.0, spy.floatRef(1.0))
    with pytest.raises(ValueError):
        m.take_int(spy.ValueRef("x"))


# --- numpy


@pytest.mark.parametrize(
    "change",
    [
        lambda a: a.T, lambda a: a[::2], lambda a: a[:, ::-1], lambda a: a[::-1, ::-1], lambda a: a[1:, 1:3],
        lambda a: np.broadcast_to(a[:1], (5, 4)), lambda a: np.asfortranarray(a), lambda a: a.astype(">f4"),
        lambda a: a[:, :0], lambda a: a[2, 3], lambda a: np.array(3.0, np.float32),
    ],
    ids=["T", "step", "reversed", "both_reversed", "sliced", "broadcast", "fortran", "swapped", "empty", "scalar", "0d"],
)  # fmt: skip
def test_numpy_layouts(m: spy.Module, change: Any) -> None:
    value = change(array(5, 4))
    expected = np.asarray(value, np.float32) ** 3
    result = m.cube(value, _result="numpy")
    assert result.shape == np.shape(value)
    np.testing.assert_array_equal(result, expected)


def test_read_only_numpy(m: spy.Module) -> None:
    frozen = array(4)
    frozen.flags.writeable = False
    assert plain(m.cube(frozen)) == [0, 1, 8, 27]
    with pytest.raises(spy.ResolveException, match="read-only"):
        m.twice(1.0, frozen)
    with pytest.raises(spy.ResolveException, match="read-only"):
        m.cube(array(4), _result=frozen)


def test_strided_outputs(m: spy.Module) -> None:
    base = np.zeros((4, 6), np.float32)
    m.cube(array(4, 3), _result=base[:, ::2])
    assert base[:, ::2].tolist() == (array(4, 3) ** 3).tolist() and not base[:, 1::2].any()
    turned = np.zeros((3, 4), np.float32)
    assert m.cube(array(4, 3), _result=turned.T).base is turned
    assert turned.tolist() == (array(4, 3) ** 3).T.tolist()
    m.out_vector(array(2), out := np.zeros((3, 2), np.float32).T)
    assert out.tolist() == [[0, 1, 2], [1, 2, 3]]


def test_arrays_of_swapped_byte_order_are_written(m: spy.Module) -> None:
    out = np.zeros(3, ">f4")
    m.twice(array(3), out)
    assert out.tolist() == [0, 2, 4]
    m.cube(out, _result=out)
    assert out.tolist() == [0, 8, 64]
    every_second = np.full(4, 7, ">f4")
    m.twice(array(2) + 1, every_second[::-2])
    assert every_second.tolist() == [7, 4, 7, 2]
    assert plain(m.cube(every_second)) == [343, 64, 343, 8]
    assert every_second.tolist() == [7, 4, 7, 2]  # what is only read is not touched
    out.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        m.twice(array(3), out)


def test_one_array_passed_twice(m: spy.Module) -> None:
    both = array(4)
    m.copy(both, both)
    assert both.tolist() == [0, 2, 4, 6]
    assert plain(m.mix2(both, both)) == [0, 6, 12, 18]


def test_zero_dimensional_numpy_is_written(m: spy.Module) -> None:
    out = np.zeros((), np.float32)
    m.twice(3.0, out)
    assert out == 6.0
    m.add_to(out, 1.0)
    assert out == 7.0


def test_inout_numpy(m: spy.Module) -> None:
    a, b = array(3), np.full(3, 9, np.float32)
    m.swap(a, b)
    assert a.tolist() == [9, 9, 9] and b.tolist() == [0, 1, 2]


def test_numpy_trailing_dimensions(m: spy.Module) -> None:
    assert m.take_matrix(array(4, 2, 3), _result="numpy").tolist() == array(4, 2, 3).tolist()
    assert m.take_floats(array(5, 4), _result="numpy").tolist() == array(5, 4).tolist()
    with pytest.raises(spy.ShapeError, match="does not match the expected shape"):
        m.take_float3(array(4, 2))
    with pytest.raises(spy.ShapeError, match="Could not resolve dimensionality"):
        m.take_matrix(array(3))


# --- dtypes and sizes


@pytest.mark.parametrize("scalar", DTYPES)
def test_every_scalar_type(m: spy.Module, device: Any, scalar: str) -> None:
    dtype = DTYPES[scalar]
    values = np.array([0, 1, 1, 0, 1] if scalar == "bool" else [0, 1, 2, 100, 7], dtype)
    take = m.take_any.map(scalar)
    for result in (take(values), take(spy.Tensor.from_numpy(device, values))):
        assert isinstance(result, spy.Tensor) and result.dtype.full_name == scalar
        assert result.to_numpy().tolist() == values.tolist()
    host = take(values, _result="numpy")
    assert host.dtype == dtype and host.tolist() == values.tolist()
    out = np.zeros(5, dtype)
    assert take(values, _result=out) is out and out.tolist() == values.tolist()
    single = take(values[3])
    assert single == values[3] and type(single) in (bool, int, float)


def test_a_million_elements(m: spy.Module, device: Any) -> None:
    count = 1_000_003
    values = np.random.default_rng(1).random(count, np.float32)
    expected = values * values * values
    np.testing.assert_allclose(m.cube(values, _result="numpy"), expected, rtol=1e-6)
    np.testing.assert_allclose(m.cube(spy.Tensor.from_numpy(device, values)).to_numpy(), expected, rtol=1e-6)
    m.cube(values[::-1], _result=(out := np.empty_like(values)))
    np.testing.assert_allclose(out, expected[::-1], rtol=1e-6)
    numbers = m.take_int(range(count), _result="numpy")
    assert np.array_equal(numbers, np.arange(count, dtype=np.int32))


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (2, 0, 4)], ids=str)
def test_zero_sizes(m: spy.Module, device: Any, shape: tuple[int, ...]) -> None:
    assert m.cube(np.zeros(shape, np.float32)).shape == shape
    assert m.cube(np.zeros(shape, np.float32), _result="numpy").shape == shape
    assert m.cube(spy.Tensor.from_numpy(device, np.zeros(shape, np.float32))).shape == shape
    out = np.zeros(shape, np.float32)
    assert m.cube(np.zeros(shape, np.float32), _result=out) is out
    assert m.take_float3(np.zeros((*shape, 3), np.float32), _result="numpy").shape == (*shape, 3)


# --- results


def test_result_values(m: spy.Module) -> None:
    assert m.take_bool(True) is True and m.take_bool(False) is False
    assert type(m.take_int(3)) is int and type(m.take_half(0.5)) is float
    assert m.take_float3(spy.float3(1, 2, 3)) == spy.float3(1, 2, 3)
    assert m.take_matrix(spy.float2x3(1, 2, 3, 4, 5, 6)) == spy.float2x3(1, 2, 3, 4, 5, 6)
    assert m.take_floats([1, 2, 3, 4]) == [1.0, 2.0, 3.0, 4.0]
    assert m.take_bool3(spy.bool3(True, False, True)) == spy.bool3(True, False, True)
    assert plain(m.make_item(0.5)) == {"x": 0.5, "at": [1, 2]}
    assert m.add_to(1.0, 2.0) is None
    assert m.make_pointer(12345) == 12345


@pytest.mark.parametrize("form", ["tensor", spy.Tensor])
def test_tensor_results(m: spy.Module, form: Any) -> None:
    single = m.cube(2.0, _result=form)
    assert isinstance(single, spy.Tensor) and single.shape == () and plain(single) == 8.0
    assert m.cube.return_type(form)(array(3)).shape == (3,)


@pytest.mark.parametrize("form", ["numpy", np.ndarray])
def test_numpy_results(m: spy.Module, form: Any) -> None:
    single = m.cube(2.0, _result=form)
    assert isinstance(single, np.ndarray) and single.shape == () and single == 8.0
    vector = m.take_float3(spy.float3(1, 2, 3), _result=form)
    assert vector.shape == (3,) and vector.tolist() == [1, 2, 3]
    assert m.take_matrix.return_type(form)(array(2, 2, 3)).shape == (2, 2, 3)
    assert m.take_bool(np.array([True, False]), _result=form).dtype == np.bool_
    assert m.take_bool3(np.array([[True, False, True]]), _result=form).tolist() == [[True, False, True]]
    items = m.make_item(array(2), _result=form)
    assert items["x"].tolist() == [0, 1] and items["at"].tolist() == [[1, 2], [1, 2]]


def test_result_instances(m: spy.Module, device: Any) -> None:
    out = tensor(device, 3)
    assert m.cube(array(3), _result=out) is out and plain(out) == [0, 1, 8]
    rows = tensor(device, 2, 3)
    m.take_float3(np.ones((2, 3), np.float32), _result=rows)
    assert plain(rows) == [[1, 1, 1], [1, 1, 1]]
    vectors = typed(device, np.zeros((2, 3)), m["float3"])
    m.take_float3(array(2, 3), _result=vectors)
    assert plain(vectors) == [[0, 1, 2], [3, 4, 5]]
    assert m.cube(array(3), _result=None).shape == (3,)
    view = tensor(device, 6)[::2]
    m.cube(array(3), _result=view)
    assert plain(view) == [0, 1, 8]


def test_an_instance_beats_return_type(m: spy.Module) -> None:
    out = np.zeros(3, np.float32)
    assert m.cube.return_type("tensor")(array(3), _result=out) is out
    assert isinstance(m.cube.return_type("tensor")(array(3), _result="numpy"), np.ndarray)


def test_wrong_results(m: spy.Module) -> None:
    with pytest.raises(ValueError, match="Unknown return type 'x'"):
        m.cube(2.0, _result="x")
    with pytest.raises(ValueError, match="Unknown return type"):
        m.cube.return_type(int)(2.0)
    with pytest.raises(spy.ResolveException, match="returns nothing"):
        m.add_to(1.0, 2.0, _result=np.zeros(1, np.float32))
    assert m.add_to(1.0, 2.0, _result="numpy") is None
    with pytest.raises(spy.ResolveException):
        m.cube(array(3), _result=3.0)


def test_stores_that_need_no_conversion(m: spy.Module) -> None:
    out = np.zeros(3, np.uint32)
    m.take_int(range(3), _result=out)
    assert out.tolist() == [0, 1, 2]
    wide = np.zeros(3, np.float64)
    m.cube(array(3), _result=wide)
    assert wide.tolist() == [0, 1, 8]


def test_results_of_another_element_type(m: spy.Module) -> None:
    """Stored as Slang converts: towards zero into integers."""
    whole = np.zeros(3, np.int32)
    m.cube(np.array([1.5, -1.5, 2.0], np.float32), _result=whole)
    assert whole.tolist() == [3, -3, 8]
    narrow = np.zeros(3, np.float32)
    m.take_double(np.array([1.5, 2.5, -3.0]), _result=narrow)
    assert narrow.tolist() == [1.5, 2.5, -3.0]
