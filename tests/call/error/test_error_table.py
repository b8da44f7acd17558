"""The table of errors, row by row: class, literal text, and what every message holds."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np
import pytest
from calls_support import array, source, tensor

import slangpy as spy
from slangpy.errors import (
    BoundVariableException,
    CallError,
    KernelGenException,
    ResolveException,
    ShapeError,
    SlangCompileError,
)

pytestmark = [pytest.mark.needs_kernels, pytest.mark.one]

SOURCE = """
import slangpy;
[Differentiable] float add(float a, float b) { return a + b; }
float plain(float a) { return a; }
int whole(int a) { return a; }
float3 vec(float3 v) { return v; }
float3x3 mat(float3x3 v) { return v; }
float row(Tensor<float, 1> t) { return t[0]; }
void put(RWTensor<float, 1> t) { t[0] = 1; }
void out_one(out float x) { x = 1; }
float buf(RWStructuredBuffer<float> b) { return b[0]; }
T any<T>(T x) { return x; }
T flo<T : IFloat>(T x) { return x; }
int over(float2 a, int b) { return 1; }
int over(int2 a, float b) { return 2; }
int tied(float a, float3 b) { return 1; }
int tied(float3 a, float b) { return 2; }
vector<T, N> same<T, let N : int>(vector<T, N> a, vector<T, N> b) { return a; }
struct S { float x; float3 v; }
float gs(S s) { return s.x; }
interface IThing { float go(); }
struct One : IThing { float x; float go() { return x; } }
float thing(IThing t) { return t.go(); }
float open() { IThing t = createDynamicObject<IThing>(0, 0); return t.go(); }
[Differentiable] void grow(inout float x) { x = x * x; }
float2 at(float2 x) { return x; }
int2 where(int2 at) { return at; }
extern static const int COUNT = 3;
int counted(int x) { return x * COUNT; }
float returns(uint3 dispatchThreadID) { return 1; }
void outs(uint3 dispatchThreadID, out float x) { x = 1; }
void no_id(float x) {}
void bad_name(uint3 id) {}
void twice(uint3 dispatchThreadID) {}
void twice(uint3 dispatchThreadID, float x) {}
struct M { float x; void run(uint3 dispatchThreadID) {} }
[shader("compute")] [numthreads(4, 1, 1)] void entry(uint3 id : SV_DispatchThreadID, uniform float s) {}
"""


@pytest.fixture
def m(device: Any) -> Any:
    return source(device, "spec_errors", SOURCE)


class Text(enum.Enum):
    a = "a"


def T(m: Any, *shape: int, dtype: Any = np.float32) -> spy.Tensor:
    return tensor(m.device, *shape, dtype=dtype)


def read_only(m: Any) -> spy.Tensor:
    usage = spy.BufferUsage.shader_resource | spy.BufferUsage.copy_destination
    return spy.Tensor.zeros(m.device, (3,), dtype="float", usage=usage)


def frozen() -> np.ndarray:
    a = array(3)
    a.flags.writeable = False
    return a


ROWS: dict[str, tuple[Any, type[Exception], list[str]]] = {
    "too many": (lambda m: m.add(1, 2, 3), ResolveException, ["Too many arguments: expected 2, got 3"]),
    "unknown keyword": (lambda m: m.add(a=1, c=2), ResolveException, ["No parameter named 'c'", "a, b"]),
    "missing": (lambda m: m.add(1.0), ResolveException, ["Parameter 'b' not specified"]),
    "given twice": (lambda m: m.add(1.0, a=2.0), ResolveException, ["Parameter 'a' specified multiple times"]),
    "type": (lambda m: m.vec(spy.float4()), ResolveException, ["Argument 0 could not be resolved", "does not match slang type vector<float,3>", "float4"]),
    "buffer usage": (
        lambda m: m.buf(read_only(m).storage), ResolveException,
        ["Buffer[rw=False] does not match slang type RWStructuredBuffer", "unordered_access"],
    ),
    "element dtype": (
        lambda m: m.row(T(m, 3, dtype=np.int32)), ResolveException,
        ["Can't convert tensor with element type int to tensor with element type float (Tensor<float, 1>)", "convert"],
    ),
    "element dtype of a scalar": (lambda m: m.plain(np.zeros(3)), ResolveException, ["double", "float", "convert"]),
    "read-only tensor": (lambda m: m.put(read_only(m)), ResolveException, ["Can't pass a read-only tensor to a writable tensor (RWTensor<float, 1>)", "unordered_access"]),
    "read-only array": (lambda m: m.put(frozen()), ResolveException, ["read-only", "writeable"]),
    "read-only array as output": (lambda m: m.out_one(frozen()), ResolveException, ["read-only", "writeable"]),
    "ambiguous generic": (lambda m: m.any(T(m, 3)), ResolveException, ["Ambiguous call", ".map("]),
    "ambiguous generic vector": (lambda m: m.flo(spy.float3()), ResolveException, ["Ambiguous call"]),
    "ambiguous overloads": (
        lambda m: m.tied(T(m, 3, 3), T(m, 3, 3)), ResolveException,
        ["Ambiguous call", "tied(in float a, in vector<float,3> b)", "tied(in vector<float,3> a, in float b)"],
    ),
    "no overload": (lambda m: m.over(spy.float3(), 1), ResolveException, ["over(vector<float,2> a, int b)", "float3"]),
    "Slang refuses": (lambda m: m.same(spy.float3(), spy.float2()), ResolveException, ["could not match the function signature", "vector<float,2>"]),
    "str": (lambda m: m.plain("x"), BoundVariableException, ["Unsupported type str", "nearest supported"]),
    "enum of text": (lambda m: m.plain(Text.a), BoundVariableException, ["Unsupported type str"]),
    "complex": (lambda m: m.plain(1j), BoundVariableException, ["Unsupported type complex", "float2"]),
    "object array": (lambda m: m.plain(np.array([None])), BoundVariableException, ["Unsupported type ndarray", "object"]),
    "map of None": (
        lambda m: m.add.map((0,))(None, 1), NotImplementedError,
        ["Explicit vectorization raised exception: NotImplementedError", "argument 0 is None", "argument  value"],
    ),
    "map of None by name": (
        lambda m: m.add.map(b=(0,))(1, b=None), NotImplementedError, ["Explicit vectorization raised exception: NotImplementedError", "b is None"],
    ),
    "structured array": (
        lambda m: m.plain(np.zeros(2, [("x", "f4")])), BoundVariableException,
        ["Structured numpy dtype", "Tensor.from_numpy(device, array, target_slang_dtype="],
    ),
    "ragged": (lambda m: m.gs({"x": [[1, 2], [3]]}), BoundVariableException, ["equal lengths", "x"]),
    "_type unknown": (lambda m: m.gs({"_type": "SS"}), BoundVariableException, ["Could not find type", "SS", "did you mean S"]),
    "_type of another struct": (lambda m: m.gs({"_type": "One"}), ResolveException, ["One", "does not match slang type S"]),
    "no such field": (lambda m: m.gs({"w": 1}), KernelGenException, ["has no field 'w'", "x", "v"]),
    "interface without _type": (lambda m: m.thing({"x": 1}), ResolveException, ["_type"]),
    "interface not met": (lambda m: m.thing({"_type": "S"}), ResolveException, ["S", "does not conform"]),
    "map too deep": (lambda m: m.plain.map((0,))(1.0), BoundVariableException, ["Explicit vectorization raised exception: "]),
    "map unknown type": (lambda m: m.plain.map("Nope")(1.0), BoundVariableException, ["Explicit vectorization raised exception: ", "Nope"]),
    "rank too small": (lambda m: m.mat(T(m, 3)), ShapeError, ["Could not resolve dimensionality", "1 dimensions", "takes 2"]),
    "trailing sizes": (lambda m: m.vec(T(m, 5, 4)), ShapeError, ["does not match the expected shape", "4", "3", "dimension 1"]),
    "call sizes": (lambda m: m.add(T(m, 3), T(m, 2)), ShapeError, ["Shape mismatch for b between value (2) and call (3)", "a [3]", "b [2]"]),
    "out of range": (lambda m: m.whole(2**40), OverflowError, [str(2**40), "int", "a"]),
    "fraction": (lambda m: m.whole(1.5), ValueError, ["1.5", "int", "a"]),
    "_thread_count of a vectorised call": (lambda m: m.plain(T(m, 3), _thread_count=4), ValueError, ["_thread_count", "rank"]),
    "_thread_count zero": (lambda m: m.plain(1.0, _thread_count=0), ValueError, ["_thread_count"]),
    "_thread_count negative": (lambda m: m.plain(1.0, _thread_count=-1), ValueError, ["_thread_count"]),
    "_thread_count float": (lambda m: m.plain(1.0, _thread_count=2.0), ValueError, ["_thread_count"]),
    "generator size": (lambda m: m.where(spy.grid((2, 3, 4))), ValueError, ["Could not find suitable", "3", "vector<int,2>", "int3"]),
    "float from an integer generator": (lambda m: m.plain(spy.wang_hash()), ResolveException, ["wang_hash", "float"]),
    "not differentiable": (lambda m: m.plain.bwds(1.0, _result=T(m, 1).with_grads()), ResolveException, ["Function is not differentiable"]),
    "bwds without _result": (lambda m: m.add.bwds(1.0, 2.0), ResolveException, ["_result", "gradient"]),
    "bwds of bwds": (lambda m: m.add.bwds.bwds, ValueError, ["bwds"]),
    "inout gradients shared": (lambda m: m.grow.bwds(T(m, 3).with_grads()), RuntimeError, ["inout param"]),
    "gradient of another shape": (lambda m: T(m, 3).with_grads(T(m, 4)), ValueError, ["3", "4"]),
    "gradient of another type": (lambda m: T(m, 3).with_grads(T(m, 3, dtype=np.int32)), ValueError, ["Invalid element type"]),
    "constant of a wrong kind": (lambda m: m.counted.constants({"COUNT": "3"}), KernelGenException, ["COUNT", "must be an int, float or bool"]),
    "constant that is not declared": (lambda m: m.counted.constants({"NOPE": 3})(1), ValueError, ["NOPE", "COUNT"]),
    "constant out of range": (lambda m: m.counted.constants({"COUNT": 2**40})(1), OverflowError, ["COUNT", "int"]),
    "constant with a fraction": (lambda m: m.counted.constants({"COUNT": 1.5})(1), ValueError, ["COUNT", "1.5"]),
    "dispatch of a value": (lambda m: m.returns.dispatch(4), ValueError, ["return value"]),
    "dispatch of outputs": (lambda m: m.outs.dispatch(4, x=1.0), ValueError, ["out or inout"]),
    "dispatch without id": (lambda m: m.no_id.dispatch(4, x=1.0), ValueError, ["first parameter must be a thread id"]),
    "dispatch with another name": (lambda m: m.bad_name.dispatch(4), ValueError, ["dispatchThreadID"]),
    "dispatch of overloads": (lambda m: m.twice.dispatch(4), ValueError, ["overloaded"]),
    "dispatch of methods": (lambda m: m.M.run.dispatch(4), ValueError, ["type methods"]),
    "dispatch with a group size": (lambda m: m.entry.thread_group_size((8, 1, 1)).dispatch(4, s=1.0), ValueError, ["thread_group_size"]),
    "dispatch without a value": (lambda m: m.entry.dispatch(4), ValueError, ["'s'"]),
    "call of an entry point": (lambda m: m.entry(1), ResolveException, ["entry point", "dispatch"]),
    "packed below the top": (lambda m: m.gs({"x": spy.pack(m, 1.0)}), BoundVariableException, ["must be a top level argument"]),
    "unknown return type": (lambda m: m.plain(1.0, _result="list"), ValueError, ["Unknown return type 'list'"]),
    "_append_to": (lambda m: m.plain(1.0, _append_to=1), ValueError, ["Expected _append_to to be a CommandEncoder, got int"]),
    "unknown conformance": (lambda m: m.open.type_conformances([("IThing", "Nope")])(), ValueError, ["Nope"]),
    "no conformance": (lambda m: m.open(), RuntimeError, ["no type conformances found"]),
    "buffer to a number": (lambda m: m.plain(read_only(m).storage), ResolveException, ["Buffer", "Tensor"]),
    "buffer for a generic buffer": (lambda m: m.any(read_only(m).storage), ResolveException, ["Buffer"]),
}  # fmt: skip

_OF_CALLS = {
    "_append_to",
    "bwds of bwds",
    "gradient of another shape",
    "gradient of another type",
    "constant of a wrong kind",
}


@pytest.mark.parametrize("row", ROWS)
def test_row(m: Any, row: str) -> None:
    call, kind, texts = ROWS[row]
    with pytest.raises(kind) as raised:
        call(m)
    message = str(raised.value)
    for text in texts:
        assert text in message, message
    if row not in _OF_CALLS:
        assert "spec_errors::" in message, message
    assert m.add(1, 2) == 3.0  # the module goes on working


@pytest.mark.parametrize("row", [name for name, (_, kind, _) in ROWS.items() if kind in (ResolveException, ShapeError)])
def test_messages_show_the_table(m: Any, row: str) -> None:
    call, kind, _ = ROWS[row]
    with pytest.raises(kind, match=r"(?s)argument +value"):
        call(m)


def test_strict_broadcasting(device: Any) -> None:
    strict = source(
        device,
        "spec_errors_strict",
        "float add(float a, float b) { return a + b; }",
        options={"strict_broadcasting": True},
    )
    with pytest.raises(
        BoundVariableException, match=r"Strict broadcasting is enabled.*b has 1 dimensions and the call has 2"
    ):
        strict.add(array(2, 3), array(3))
    with pytest.raises(ValueError, match="Strict broadcasting is enabled"):
        strict.add(array(3), 1.0, _result=array(2, 3))
    assert strict.add(array(2, 3), 1.0, _result="numpy").shape == (2, 3)
    assert strict.add(array(2, 3), array(1, 3), _result="numpy").shape == (2, 3)
    assert strict.add.map(b=(1,))(array(2, 3), array(3), _result="numpy").shape == (2, 3)


def test_not_public(device: Any) -> None:
    text = "module hidden; public float seen(float x) { return hidden_one(x); } float hidden_one(float x) { return x; }"
    module = source(device, "hidden", text)
    assert module.seen(2.0) == 2.0
    with pytest.raises(ResolveException, match="is not public"):
        module.hidden_one(2.0)


def test_another_device(m: Any, device: Any) -> None:
    other = spy.create_device(spy.DeviceType.cpu, enable_hot_reload=False)
    text = rf"another device \(CPU\) than the module's {device.info.api_name} device"
    try:
        with pytest.raises(ValueError, match=text):
            m.plain(tensor(other, 3))
    finally:
        other.close()


def test_classes() -> None:
    for kind in (ResolveException, BoundVariableException, KernelGenException):
        assert issubclass(kind, CallError) and issubclass(kind, ValueError)
    assert (
        issubclass(ShapeError, CallError)
        and issubclass(ShapeError, ValueError)
        and issubclass(ShapeError, RuntimeError)
    )
    assert issubclass(SlangCompileError, RuntimeError) and issubclass(CallError, Exception)
    for name in (
        "CallError",
        "ResolveException",
        "BoundVariableException",
        "ShapeError",
        "KernelGenException",
        "SlangCompileError",
    ):
        assert hasattr(spy, name)


def test_ray_tracing_says_what_to_use(m: Any) -> None:
    if m.device.has_feature(spy.Feature.ray_tracing):
        pytest.skip("tests/graphics/test_traced_pipelines.py uses it")
    with pytest.raises(NotImplementedError, match="does not have the feature 'ray_tracing'.*slangpy.rays"):
        m.plain.ray_tracing([])(1.0)
