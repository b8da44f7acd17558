"""What binds to which parameter: the table of legal bindings, row by row. Each case is the call as a user writes it."""

from __future__ import annotations

import array as stdlib_array
import enum
from typing import Any

import numpy as np
import pytest
from calls_support import array, load, plain, tensor, typed
from tiers import gate

import slangpy as spy

pytestmark = [pytest.mark.needs_kernels, pytest.mark.one]


class IntMode(enum.IntEnum):
    first = 3


class Mode(enum.Enum):
    second = 7
    half = 0.5


def names(device: Any) -> dict[str, Any]:
    """What the calls may mention: T and N make 0, 1, 2, ... as Tensor and as array, V a tensor of a Slang type."""
    m = load(device, "bind")

    def of_type(type_: str, *shape: int, dtype: Any = np.float32) -> spy.Tensor:
        return typed(device, array(*shape, dtype=dtype), m[type_], dtype)

    def buffer(*values: int, writable: bool = True) -> spy.Buffer:
        data = np.array(values, np.int32)
        usage = spy.BufferUsage.shader_resource
        if writable:
            usage |= spy.BufferUsage.unordered_access
        made = device.create_buffer(size=data.nbytes, struct_size=4, usage=usage)
        made.copy_from_numpy(data)
        return made

    return {
        "m": m, "T": lambda *s, dtype=np.float32: tensor(device, *s, dtype=dtype), "N": lambda *s, dtype=np.float32: array(*s, dtype=dtype),
        "V": of_type, "B": buffer, "IntMode": IntMode, "Mode": Mode, "np": np, "spy": spy, "stdlib_array": stdlib_array,
        **{name: getattr(spy, name) for name in dir(spy) if name[-1] in "234" and name[0] in "fib"},
        "float16_t": spy.float16_t, "quatf": spy.quatf,
    }  # fmt: skip


BINDS: list[tuple[str, Any]] = [
    # scalars
    ("m.f_float(1)", 1.0),
    ("m.f_float(True)", 1.0),
    ("m.f_float(np.float64(2.5))", 2.5),
    ("m.f_float(np.int16(3))", 3.0),
    ("m.f_float(IntMode.first)", 3.0),
    ("m.f_float(Mode.half)", 0.5),
    ("m.f_float(Mode.second)", 7.0),
    ("m.f_float(float16_t(1.5))", 1.5),
    ("m.f_float(float3(1, 2, 3))", [1, 2, 3]),
    ("m.f_float(spy.float2x3(1, 2, 3, 4, 5, 6))", [[1, 2, 3], [4, 5, 6]]),
    ("m.f_float([1, 2.5])", [1, 2.5]),
    ("m.f_float([True, False])", [1, 0]),
    ("m.f_float([np.float32(1), np.int64(2)])", [1, 2]),
    ("m.f_float([IntMode.first, Mode.half])", [3, 0.5]),
    ("m.f_float([])", []),
    ("m.f_float(memoryview(np.arange(3, dtype=np.float32)))", [0, 1, 2]),
    ("m.f_float(stdlib_array.array('f', [1, 2]))", [1, 2]),
    ("m.f_int(2.0)", 2),
    ("m.f_uint(2**32 - 1)", 2**32 - 1),
    ("m.f_int8(127)", 127),
    ("m.f_uint8(255)", 255),
    ("m.f_int16(-5)", -5),
    ("m.f_uint16(65535)", 65535),
    ("m.f_int64(-2**40)", -(2**40)),
    ("m.f_uint64(2**64 - 1)", 2**64 - 1),
    ("m.f_half(0.5)", 0.5),
    ("m.f_double(0.1)", 0.1),
    ("m.f_bool(True)", False),
    ("m.f_bool(0)", True),
    ("m.f_bool(7)", False),
    ("m.f_bool(np.bool_(True))", False),
    ("m.f_bool([True, False])", [False, True]),
    ("m.f_bool(np.array([True, False]))", [False, True]),
    ("m.f_bool(T(2, dtype=bool))", [True, False]),
    ("m.f_int8(np.array([1, -2], np.int8))", [1, -2]),
    ("m.f_uint8(np.array([1, 200], np.uint8))", [1, 200]),
    ("m.f_int16(np.array([1, -2], np.int16))", [1, -2]),
    ("m.f_uint16(np.array([1, 60000], np.uint16))", [1, 60000]),
    ("m.f_int64(np.array([1, -2**40]))", [1, -(2**40)]),
    ("m.f_uint64(np.array([1, 2**63], np.uint64))", [1, 2**63]),
    ("m.f_half(np.array([0.5, 2], np.float16))", [0.5, 2]),
    ("m.f_double(np.array([0.1, 2]))", [0.1, 2]),
    ("m.f_uint(range(3))", [0, 1, 2]),
    ("m.f_uint8(range(1, 4))", [1, 2, 3]),
    ("m.f_int64(range(3, 0, -1))", [3, 2, 1]),
    # generic scalars
    ("m.g_any(1)", 1),
    ("m.g_any(1.5)", 1.5),
    ("m.g_any(True)", True),
    ("m.g_any(range(3))", [0, 1, 2]),
    ("m.g_any({'_type': 'Point', 'weight': 2.0})", {"pos": [0, 0, 0], "weight": 2.0}),
    ("m.g_any.map((0,))(T(3))", [0, 1, 2]),
    ("m.g_any.map('float3')(T(2, 3))", [[0, 1, 2], [3, 4, 5]]),
    ("m.g_any.map((0,))([1, 2])", [1, 2]),
    ("m.g_any.map(())([1, 2])", [1, 2]),
    ("m.g_integer(3)", 3),
    ("m.g_integer(spy.int3(1, 2, 3))", [1, 2, 3]),
    ("m.g_integer(T(2, dtype=np.int32))", [0, 1]),
    ("m.g_floating(1.5)", 1.5),
    ("m.g_floating(1)", 1.0),
    ("m.g_floating(float3(1, 2, 3))", [1, 2, 3]),
    ("m.g_floating(T(2))", [0, 1]),
    ("m.g_floating(N(2, dtype=np.float64))", [0, 1]),
    ("m.g_ifloat(1)", 1.0),
    ("m.g_ifloat(T(2))", [0, 1]),
    ("m.g_ifloat(V('float3', 2, 3))", [[0, 1, 2], [3, 4, 5]]),
    ("m.g_arithmetic(1)", 1),
    ("m.g_arithmetic(V('float3', 2, 3))", [[0, 1, 2], [3, 4, 5]]),
    ("m.g_add(1, 2.5)", 3.5),
    ("m.g_add(1, 2)", 3),
    ("m.g_add(T(3), 2)", [2, 3, 4]),
    # vectors and matrices
    ("m.f_float3(float3(1, 2, 3))", [1, 2, 3]),
    ("m.f_float3([1, 2, 3])", [1, 2, 3]),
    ("m.f_float3((1, 2.5, 3))", [1, 2.5, 3]),
    ("m.f_float3({'x': 1, 'y': 2.0, 'z': 3})", [1, 2, 3]),
    ("m.f_float3({'r': 1, 'g': 2.0, 'b': 3})", [1, 2, 3]),
    ("m.f_float3({'x': 1.0, 'z': T(2)})", [[1, 0, 0], [1, 0, 1]]),
    ("m.f_float3(T(2, 3))", [[0, 1, 2], [3, 4, 5]]),
    ("m.f_float3(V('float3', 2, 3))", [[0, 1, 2], [3, 4, 5]]),
    ("m.f_float3(spy.float2x3(1, 2, 3, 4, 5, 6))", [[1, 2, 3], [4, 5, 6]]),
    ("m.f_float3(2)", [2, 2, 2]),
    ("m.f_float3([[1, 2, 3], [4, 5, 6]])", [[1, 2, 3], [4, 5, 6]]),
    ("m.f_float3([float3(1, 2, 3), float3(4, 5, 6)])", [[1, 2, 3], [4, 5, 6]]),
    ("m.f_int2([1.0, 2])", [1, 2]),
    ("m.f_bool2(spy.bool2(True, False))", [True, False]),
    ("m.f_bool2([True, False])", [True, False]),
    ("m.f_half2(spy.float16_t2(1, 2))", [1, 2]),
    ("m.f_float4(quatf(1, 2, 3, 4))", [1, 2, 3, 4]),
    ("m.g_vector3(float3(1, 2, 3))", [1, 2, 3]),
    ("m.g_vector3(T(2, 3))", [[0, 1, 2], [3, 4, 5]]),
    ("m.g_vector3([1, 2, 3])", [1, 2, 3]),
    ("m.g_vector(float4(1))", [1, 1, 1, 1]),
    ("m.g_vector([1.0, 2.0])", [1, 2]),
    ("m.g_vector(V('float4', 2, 4))", [[0, 1, 2, 3], [4, 5, 6, 7]]),
    ("m.g_vector_n([1, 2])", 3.0),
    ("m.g_vector_n(V('float4', 2, 4))", [6, 22]),
    ("m.f_matrix(spy.float2x3(1, 2, 3, 4, 5, 6))", [[1, 2, 3], [4, 5, 6]]),
    ("m.f_matrix(T(2, 3))", [[0, 1, 2], [3, 4, 5]]),
    ("m.f_matrix(N(2, 2, 3))", [[[0, 1, 2], [3, 4, 5]], [[6, 7, 8], [9, 10, 11]]]),
    ("m.f_matrix([[1, 2, 3], [4, 5, 6]])", [[1, 2, 3], [4, 5, 6]]),
    ("m.f_matrix(V('float2x3', 1, 2, 3))", [[[0, 1, 2], [3, 4, 5]]]),
    ("m.g_matrix(spy.float2x3(1, 2, 3, 4, 5, 6))", 232.0),
    ("m.g_matrix(V('float2x3', 2, 2, 3))", [231, 237]),
    # arrays
    ("m.f_array4([1, 2, 3, 4])", 41.0),
    ("m.f_array4(T(2, 4))", [30, 74]),
    ("m.f_array4(V('float[4]', 2, 4))", [30, 74]),
    ("m.g_array_n([1, 2, 3])", 6.0),
    ("m.g_array_n([1, 2, 3, 4])", 10.0),
    ("m.g_array_n(V('float[4]', 2, 4))", [6, 22]),
    ("m.g_array_tn([1.0, 2, 3])", 6.0),
    ("m.g_array_tn(V('float[4]', 2, 4))", [6, 22]),
    ("m.g_array_t4([1, 2, 3, 4])", 4),
    ("m.g_array_t4([1.5, 2, 3, 4])", 4.0),
    ("m.g_array_t4(T(2, 4))", [3, 7]),
    ("m.g_array_t4(V('float[8]', 4, 8))", [24, 25, 26, 27, 28, 29, 30, 31]),
    ("m.g_array_t4_float(V('float[4]', 2, 4))", [3, 7]),
    ("m.f_array58(T(2, 5, 8))", [39, 79]),
    ("m.f_array58(V('float[8]', 5, 8))", 39.0),
    ("m.f_array58(V('float[8][5]', 2, 5, 8))", [39, 79]),
    ("m.f_array58([[i * 8 + j for j in range(8)] for i in range(5)])", 39.0),
    ("m.g_array_t58(T(5, 8))", 39.0),
    ("m.g_array_t58(V('float[3]', 5, 8, 3))", [117, 118, 119]),
    ("m.g_array_r5(V('float[8][5]', 2, 5, 8))", [39, 79]),
    ("m.g_array_r5(V('float[8]', 5, 8))", 39.0),
    ("m.g_array_rc(V('float[8][5]', 2, 5, 8))", [39, 79]),
    ("m.g_array_rc([[1, 2], [3, 4], [5, 6]])", 6.0),
    ("m.f_array_float2([[1, 2], [3, 4], [5, 6], [7, 8]])", 8.0),
    ("m.f_array_float2([float2(1, 2), float2(3, 4), float2(5, 6), float2(7, 8)])", 8.0),
    ("m.f_array_float2(T(3, 4, 2))", [7, 15, 23]),
    # structs, interfaces, enums
    ("m.f_struct({'pos': float3(1, 2, 3), 'weight': 2})", 4.0),
    ("m.f_struct({})", 0.0),
    ("m.f_struct({'weight': 2})", 0.0),
    ("m.f_struct({'_type': 'Point', 'pos': float3(1, 2, 3), 'weight': 2})", 4.0),
    ("m.f_struct({'_type': m.Point, 'pos': [1, 2, 3], 'weight': T(2)})", [0, 2]),
    ("m.f_struct([{'pos': float3(1, 2, 3), 'weight': 2}, {'pos': float3(1, 3, 3), 'weight': 2}])", [4, 6]),
    ("m.f_struct(spy.ValueRef({'pos': float3(1, 2, 3), 'weight': 2.0}))", 4.0),
    ("m.f_struct_array([{'pos': float3(1, 2, 3), 'weight': 2}, {'pos': float3(1, 3, 4), 'weight': 2}])", 42.0),
    ("m.f_pair({'_type': 'Pair<int>', 'first': 5, 'second': 3})", 2),
    ("m.f_pair({'first': 5, 'second': 3})", 2),
    ("m.g_pair({'_type': 'Pair<int>', 'first': 5, 'second': 3})", 8),
    ("m.f_interface({'_type': 'Square', 'side': 3})", 9.0),
    ("m.f_interface({'_type': 'Square', 'side': T(3)})", [0, 1, 4]),
    ("m.f_interface([{'_type': 'Square', 'side': 3}, {'_type': 'Square', 'side': 4}])", [9, 16]),
    ("m.f_interface.map({'$type': 'Circle'})({'radius': 3})", 27.0),
    ("m.g_interface({'_type': 'Circle', 'radius': 3})", 27.0),
    ("m.g_interface([{'_type': 'Square', 'side': 3}, {'_type': 'Square', 'side': 4}])", [9, 16]),
    ("m.f_enum(3)", 30),
    ("m.f_enum(IntMode.first)", 30),
    ("m.f_enum(Mode.second)", 70),
    ("m.f_enum(np.array([3, 7], np.int32))", [30, 70]),
    ("m.f_enum([3, 7])", [30, 70]),
    ("m.f_to_enum(7)", 7),
    # buffers and pointers
    ("m.f_structured(B(1, 2, 3), 2)", 3),
    ("m.f_structured(B(1, 2, 3, writable=False), [0, 1, 2])", [1, 2, 3]),
    ("m.f_structured(T(3, dtype=np.int32), 2)", 2),
    ("m.f_structured(N(3, dtype=np.int32), 2)", 2),
    ("m.f_structured([5, 6, 7], 2)", 7),
    ("m.g_structured(T(3, dtype=np.int32), 2)", 2),
    ("m.g_structured(N(3), 2)", 2.0),
    ("m.f_byte_address(B(1, 2, 3), 2)", 3),
    ("m.f_byte_address(T(3, dtype=np.int32), 2)", 2),
    ("m.f_byte_address(N(3, dtype=np.int32), 2)", 2),
    ("m.f_buffers([B(1, 2, 3), B(10, 20, 30), B(100, 200, 300)], 1)", 222),
    ("m.f_buffers([B(1, 2, 3), T(3, dtype=np.int32), N(3, dtype=np.int32)], [1, 2])", [4, 7]),
    # tensors
    ("m.f_itensor(T(3))", 3.0),
    ("m.f_itensor(T(2, 3))", [3, 12]),
    ("m.f_itensor(N(2, 3))", [3, 12]),
    ("m.f_itensor([1.5, 2, 3])", 6.5),
    ("m.f_itensor([[1, 2], [3, 4]])", [3, 7]),
    ("m.g_itensor(T(3))", 13.0),
    ("m.g_itensor(T(3, 4))", 24.0),
    ("m.g_itensor(N(3, 4))", 24.0),
    ("m.g_itensor(N(3, 4, dtype=np.float64))", 24.0),
    ("m.g_itensor([[1.0, 2, 3], [1, 2, 3]])", 23.0),
    ("m.f_tensor2(T(2, 3, 4))", [5, 17]),
    ("m.f_tensors([T(2), N(2)])", 10.0),
    ("m.f_vector_tensor(V('float3', 2, 3))", 4.0),
    # overloads and defaults
    ("m.overloaded(1)", 1),
    ("m.overloaded(1.0)", 2),
    ("m.overloaded(True)", 3),
    ("m.overloaded(T(2))", [2, 2]),
    ("m.ranked(float3(1))", 2),
    ("m.ranked(1.0)", 1),
    ("m.generic_or_not(1.0)", 1),
    ("m.generic_or_not(T(2))", [1, 1]),
    ("m.generic_or_not(T(2, dtype=np.float64))", [2, 2]),
    ("m.equal(1.0, 2)", 1),
    ("m.equal(1, 2.0)", 2),
    ("m.defaulted(1)", 153.0),
    ("m.defaulted(1, 2)", 123.0),
    ("m.defaulted(1, c=4)", 154.0),
    ("m.defaulted(c=4, a=T(2))", [54, 154]),
    ("m.computed(1)", 153.0),
    ("m.computed(1, 2, 3)", 123.0),
    # names
    ("m['space::inside'](1)", 1.5),
    ("m['scaled<4>'](2.5)", 10.0),
    ("m['space::Deep'](2.0)", {"x": 2.0}),
]


REPEATED = {
    "m.f_uint8(255)", "m.f_int16(-5)", "m.f_uint16(65535)", "m.f_bool(0)", "m.f_bool(7)", "m.f_bool(np.bool_(True))",
    "m.f_int8(np.array([1, -2], np.int8))", "m.f_int16(np.array([1, -2], np.int16))", "m.f_uint16(np.array([1, 60000], np.uint16))",
    "m.f_int64(np.array([1, -2**40]))", "m.f_double(np.array([0.1, 2]))", "m.f_uint8(range(1, 4))", "m.f_int64(range(3, 0, -1))",
    "m.g_floating(1)", "m.g_floating(T(2))", "m.g_ifloat(1)", "m.g_arithmetic(V('float3', 2, 3))", "m.f_float3((1, 2.5, 3))",
    "m.f_float3({'r': 1, 'g': 2.0, 'b': 3})", "m.f_bool2([True, False])", "m.g_vector(float4(1))", "m.g_array_n([1, 2, 3, 4])",
    "m.g_array_tn([1.0, 2, 3])", "m.f_array_float2([float2(1, 2), float2(3, 4), float2(5, 6), float2(7, 8)])", "m.f_enum(3)",
    "m.g_structured(T(3, dtype=np.int32), 2)", "m.f_byte_address(N(3, dtype=np.int32), 2)", "m.g_itensor(N(3, 4))",
    "m.g_interface({'_type': 'Circle', 'radius': 3})", "m.overloaded(1)", "m.equal(1, 2.0)", "m.defaulted(1, 2)",
}  # fmt: skip
"""Rows whose way through the table others have with another type or size."""


def test_rows_left_to_the_nightly_run_are_there() -> None:
    assert {call for call, _ in BINDS} > REPEATED


@pytest.mark.parametrize(
    ("call", "expected"), gate(BINDS, lambda row: row[0] not in REPEATED), ids=[call for call, _ in BINDS]
)
def test_binds(device: Any, call: str, expected: Any) -> None:
    assert plain(eval(call, names(device))) == expected


FAILS: list[tuple[str, type[Exception], str]] = [
    ("m.f_float(spy.int3(1, 2, 3))", spy.ResolveException, "int3 does not match slang type float"),
    ("m.f_float(T(2, dtype=np.int32))", spy.ResolveException, "convert"),
    ("m.f_float(range(3))", spy.ResolveException, "range"),
    ("m.f_float(V('float3', 2, 3))", spy.ResolveException, "does not match slang type float"),
    ("m.f_float(N(3, dtype=np.float64))", spy.ResolveException, "element type double, expected float"),
    ("m.f_uint(N(3, dtype=np.int32))", spy.ResolveException, "element type int, expected uint"),
    ("m.f_int(1.5)", ValueError, "1.5 is not an integer"),
    ("m.f_int(2**31)", OverflowError, "2147483648 is out of range for int"),
    ("m.f_uint(-1)", OverflowError, "-1 is out of range for uint"),
    ("m.f_int8(300)", OverflowError, "300 is out of range for int8_t"),
    ("m.f_uint64(2**64)", OverflowError, "out of range for uint64_t"),
    ("m.f_int8([1, 300])", OverflowError, "300 is out of range for int8_t"),
    ("m.f_int([1, 2.5])", ValueError, "2.5 is not an integer"),
    ("m.f_bool(1.0)", spy.ResolveException, "does not match slang type bool"),
    ("m.g_any(float3(1, 2, 3))", spy.ResolveException, "Ambiguous call"),
    ("m.g_any([1, 2])", spy.ResolveException, "Ambiguous call"),
    ("m.g_any(T(2))", spy.ResolveException, "Ambiguous call"),
    ("m.g_integer(1.5)", spy.ResolveException, "could not match the function signature"),
    ("m.g_integer(T(2))", spy.ResolveException, "could not match the function signature"),
    ("m.g_ifloat(float3(1, 2, 3))", spy.ResolveException, "Ambiguous call"),
    ("m.g_arithmetic(float3(1, 2, 3))", spy.ResolveException, "Ambiguous call"),
    ("m.f_float3(spy.int3(1))", spy.ResolveException, "int3 does not match slang type vector<float,3>"),
    ("m.f_float3(float4(1))", spy.ResolveException, "float4 does not match slang type vector<float,3>"),
    ("m.f_float3(spy.float16_t3(1))", spy.ResolveException, "does not match slang type vector<float,3>"),
    ("m.f_float3(V('float4', 2, 4))", spy.ResolveException, "does not match slang type vector<float,3>"),
    ("m.f_float3([1, 2])", ValueError, "2"),
    ("m.g_vector(T(2, 3))", spy.ResolveException, "does not match slang type"),
    ("m.g_vector_n(T(2, 3))", spy.ResolveException, "does not match slang type"),
    ("m.f_matrix([[1, 2], [3, 4]])", ValueError, "does not match the expected shape"),
    ("m.f_matrix(T(3, 2))", spy.ShapeError, "does not match the expected shape"),
    ("m.f_matrix(T(3))", spy.ShapeError, "Could not resolve dimensionality"),
    ("m.f_matrix(spy.float3x3())", spy.ResolveException, "does not match slang type matrix<float,2,3>"),
    ("m.g_matrix(T(2, 3))", spy.ResolveException, "does not match slang type"),
    ("m.f_array4([1, 2, 3])", ValueError, "does not match the expected shape"),
    ("m.g_array_n(T(4))", spy.ResolveException, "does not match slang type"),
    ("m.g_array_tn(T(4))", spy.ResolveException, "does not match slang type"),
    ("m.g_array_t4(V('float[4]', 2, 4))", spy.ResolveException, "Ambiguous call"),
    ("m.f_array58(V('float[5]', 2, 5))", spy.ResolveException, "does not match slang type float[8][5]"),
    ("m.f_array58(V('float[5][8]', 1, 8, 5))", spy.ResolveException, "does not match slang type float[8][5]"),
    ("m.g_array_t58(V('float[8]', 5, 8))", spy.ResolveException, "Ambiguous call"),
    ("m.g_array_t58(V('float[8][5]', 1, 5, 8))", spy.ResolveException, "Ambiguous call"),
    ("m.g_array_r5(T(5, 8))", spy.ResolveException, "does not match slang type"),
    ("m.g_array_rc(V('float[8]', 5, 8))", spy.ResolveException, "does not match slang type"),
    ("m.f_array_float2([[1, 2], [3, 4]])", ValueError, "does not match the expected shape"),
    ("m.f_struct({'_type': 'Plain'})", spy.ResolveException, "its _type is Plain"),
    ("m.f_struct({'_type': 'Nope'})", spy.BoundVariableException, "Could not find type 'Nope'"),
    ("m.f_struct({'_type': 'Pont'})", spy.BoundVariableException, "Point"),
    ("m.f_struct({'w': 2})", spy.KernelGenException, "has no field 'w'; its fields are ['pos', 'weight']"),
    ("m.f_struct(3)", spy.ResolveException, "does not match slang type Point"),
    ("m.f_struct_array([{'weight': 2}])", spy.ResolveException, "1 elements"),
    ("m.g_pair({'first': 5, 'second': 3})", spy.ResolveException, "_type"),
    ("m.f_interface({'side': 3})", spy.ResolveException, "_type"),
    ("m.f_interface({'_type': 'Plain', 'radius': 3})", spy.ResolveException, "does not conform"),
    ("m.f_interface(3)", spy.ResolveException, "does not conform"),
    ("m.g_interface({'_type': 'Plain', 'radius': 3})", spy.ResolveException, "could not match the function signature"),
    ("m.f_enum(Mode.half)", spy.ResolveException, "does not match slang type Mode"),
    ("m.f_structured(T(3), 2)", spy.ResolveException, "does not match slang type StructuredBuffer<int>"),
    ("m.f_rw_structured(B(1, writable=False), 0, 5)", spy.ResolveException, "Buffer[rw=False] does not match slang type RWStructuredBuffer<int>"),
    ("m.f_rw_structured([1, 2, 3], 1, 5)", spy.ResolveException, "read-only"),
    ("m.g_structured(B(1), 0)", spy.ResolveException, "does not match slang type StructuredBuffer<T>"),
    ("m.f_rw_byte_address(B(1, writable=False), 0, 3)", spy.ResolveException, "unordered_access"),
    ("m.f_buffers([B(1), B(10)], 0)", spy.ResolveException, "2 elements, the parameter takes 3"),
    ("m.f_float(B(1))", spy.ResolveException, "use a Tensor"),
    ("m.f_itensor(T(3, dtype=np.int32))", spy.ResolveException, "element type int"),
    ("m.f_itensor(1.0)", spy.ResolveException, "does not match slang type ITensor<float, 1>"),
    ("m.f_itensor(T())", spy.ShapeError, "Could not resolve dimensionality"),
    ("m.f_tensor2(T(3))", spy.ShapeError, "1 dimensions"),
    ("m.f_rwtensor([1.0, 2], 0)", spy.ResolveException, "read-only"),
    ("m.f_tensors([T(2)])", spy.ResolveException, "1 elements, the parameter takes 2"),
    ("m.f_vector_tensor(T(2, 3))", spy.ResolveException, "vector<float,3>"),
    ("m.equal(1, 2)", spy.ResolveException, "Ambiguous call"),
    ("m.computed(1, c=4)", spy.ResolveException, "cannot be read"),
    ("m.defaulted()", spy.ResolveException, "Parameter 'a' not specified"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "text"), FAILS, ids=[row[0] for row in FAILS])
def test_fails(device: Any, call: str, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind) as caught:
        eval(call, names(device))
    assert text in str(caught.value)
    assert "calls_bind::" in str(caught.value)


def test_pointers(device: Any) -> None:
    use = names(device)
    m, buffer, ints = use["m"], use["B"](4, 5, 6), use["T"](3, dtype=np.int32)
    assert m.f_pointer(buffer.device_address, 1) == 5
    assert m.f_pointer(buffer, 1) == 5
    assert m.f_pointer_star(buffer, 2) == 6
    assert m.f_pointer(ints, 1) == 1
    assert plain(m.f_pointer(ints, [0, 1, 2])) == [0, 1, 2]
    assert plain(m.f_pointer(np.array([buffer.device_address] * 2, np.uint64), [1, 2])) == [5, 6]
    with pytest.raises(spy.ResolveException):
        m.f_pointer(use["T"](3), 1)
    with pytest.raises(ValueError, match="contiguous"):
        m.f_pointer(ints[::2], 1)


def test_writable_containers(device: Any) -> None:
    use = names(device)
    m, ints, floats = use["m"], use["T"](3, dtype=np.int32), use["T"](3)
    m.f_rw_structured(ints, 2, 5)
    m.f_rw_byte_address(ints, 1, 9)
    assert plain(ints) == [0, 9, 5]
    host = array(3, dtype=np.int32)
    m.f_rw_structured(host, 2, 7)
    assert host.tolist() == [0, 1, 7]
    m.f_rwtensor(floats, 1)
    m.f_irwtensor(floats, 0)
    assert plain(floats) == [1, 2, 2]
    m.f_wtensor(floats, 2)
    assert plain(floats) == [1, 2, 2]
    host = array(3)
    m.f_rwtensor(host, 1)
    assert host.tolist() == [0, 2, 2]
    pair = use["T"](2), use["T"](2)
    m.f_rwtensors(list(pair))
    assert plain(pair) == [[5, 1], [0, 6]]
    host.flags.writeable = False
    with pytest.raises(spy.ResolveException, match="read-only"):
        m.f_rwtensor(host, 1)
    with pytest.raises(spy.ResolveException, match="read-only"):
        usage = spy.BufferUsage.shader_resource
        m.f_rwtensor(spy.Tensor.from_numpy(device, array(3), usage=usage), 1)
