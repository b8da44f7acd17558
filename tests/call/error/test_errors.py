"""Bad input ends in the documented exception, names what is wrong, and leaves everything usable."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np
import pytest
from calls_support import array, load, source, tensor

import slangpy as spy

pytestmark = [pytest.mark.needs_kernels, pytest.mark.one]


class Wrong:
    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


class Loop(list):
    pass


def recursive() -> list[Any]:
    items: list[Any] = []
    items.append(items)
    return items


def nested_dict(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth):
        value = {"inner": value}
    return value


def names(device: Any) -> dict[str, Any]:
    frozen = array(3)
    frozen.flags.writeable = False
    read_only = spy.Tensor.from_numpy(device, array(3), usage=spy.BufferUsage.shader_resource)
    buffer = device.create_buffer(size=16, usage=spy.BufferUsage.shader_resource)
    return {
        "m": load(device, "errors"), "T": lambda *s, dtype=np.float32: tensor(device, *s, dtype=dtype),
        "N": lambda *s, dtype=np.float32: array(*s, dtype=dtype), "np": np, "spy": spy, "frozen": frozen,
        "read_only": read_only, "buffer": buffer, "Wrong": Wrong, "recursive": recursive, "nested_dict": nested_dict,
        "Pair": namedtuple("Pair", "a b"),
    }  # fmt: skip


Resolve, Bound, Gen, Shape = spy.ResolveException, spy.BoundVariableException, spy.KernelGenException, spy.ShapeError

CALLS: list[tuple[str, type[Exception], tuple[str, ...]]] = [
    # placement
    ("m.add(1, 2, 3)", Resolve, ("Too many arguments: expected 2, got 3",)),
    ("m.add(1, 2, c=3)", Resolve, ("No parameter named 'c'", "a, b")),
    ("m.add(1, c=3)", Resolve, ("No parameter named 'c'",)),
    ("m.add(1)", Resolve, ("Parameter 'b' not specified",)),
    ("m.add()", Resolve, ("Parameter 'a' not specified",)),
    ("m.add(1, a=2)", Resolve, ("Parameter 'a' specified multiple times",)),
    ("m.add(1, 2, _this=3)", Resolve, ("Too many arguments",)),
    # types
    ("m.vec(spy.int3(1))", Resolve, ("Argument 0 could not be resolved", "int3 does not match slang type vector<float,3>")),
    ("m.add(1, spy.int3(1))", Resolve, ("Argument 1 could not be resolved", "b")),
    ("m.add(T(3, dtype=np.int32), 1)", Resolve, ("element type int, expected float", "convert")),
    ("m.add(N(3, dtype=np.float64), 1)", Resolve, ("double", "float", "convert")),
    ("m.write_all(read_only)", Resolve, ("read-only", "unordered_access")),
    ("m.write_all(frozen)", Resolve, ("read-only", "writeable")),
    ("m.out_value(1.0, frozen)", Resolve, ("read-only", "writeable")),
    ("m.out_value(N(3), read_only)", Resolve, ("read-only", "unordered_access")),
    ("m.one(1.0, _result=frozen)", Resolve, ("read-only", "_result")),
    ("m.generic(N(3))", Resolve, ("Ambiguous call", "float", "Tensor<float, 1>", ".map")),
    ("m.over(1.0, 1.0, 2)", Resolve, ("over", "Too many arguments: expected 2, got 3")),
    ("m.over([1.5], 'x')", Bound, ("argument 1", "Unsupported type str")),
    ("m.over(spy.float2(1), spy.int2(1))", Resolve, ("int a", "float a", "does not match")),
    ("m.constrained({'_type': 'Particle'}, 1)", Resolve, ("could not match the function signature", "types tried", "must conform to")),
    ("m.one(buffer)", Resolve, ("Buffer[rw=False]", "Tensor")),
    ("m.texture_result(1)", Resolve, ("texture_result", "returns a Texture2D")),
    # values
    ("m.add('x', 1)", Bound, ("argument 0: Unsupported type str", "a number")),
    ("m.add(1, b=1j)", Bound, ("b: Unsupported type complex", "float2")),
    ("m.add(np.array([object()]), 1)", Bound, ("Unsupported type ndarray", "object")),
    ("m.add(np.array([1j]), 1)", Bound, ("Unsupported type", "complex128")),
    ("m.add(np.array(['a']), 1)", Bound, ("Unsupported type",)),
    ("m.add(np.array(['2020-01-01'], 'M8[D]'), 1)", Bound, ("Unsupported type",)),
    ("m.add(None, 1)", Bound, ("Unsupported type None",)),
    ("m.add(object(), 1)", Bound, ("Unsupported type object",)),
    ("m.add({1, 2}, 1)", Bound, ("Unsupported type set",)),
    ("m.add(m, 1)", Bound, ("Unsupported type Module",)),
    ("m.add(m.add, 1)", Bound, ("Unsupported type FunctionNode",)),
    ("m.add(int, 1)", Bound, ("Unsupported type type",)),
    ("m.add(lambda: 1, 1)", Bound, ("Unsupported type function",)),
    ("m.add(Wrong(), 1)", Bound, ("Unsupported type Wrong",)),
    ("m.add(b'abc', 1)", Bound, ("Unsupported type bytes",)),
    ("m.add(np.zeros(2, [('x', 'f4')]), 1)", Bound, ("Structured numpy dtype", "target_slang_dtype")),
    ("m.add([[1, 2], [3]], 1)", Bound, ("equal lengths", "argument 0")),
    ("m.add([1, [2]], 1)", Bound, ("equal lengths",)),
    ("m.particle({'pos': [[1, 2, 3], [1]]})", Bound, ("equal lengths", "argument 0.pos")),
    ("m.particle(p={'pos': 'x'})", Bound, ("p.pos: Unsupported type str",)),
    ("m.particle([{'pos': 1.0}, 3])", Bound, ("one kind",)),
    ("m.particle([{'pos': 1.0}, {'vel': 1.0}])", Bound, ("equal fields",)),
    ("m.add([1, spy.float2(1)], 1)", Bound, ("one kind",)),
    ("m.add([spy.float3(1), spy.float2(1)], 1)", Bound, ("one kind",)),
    ("m.add(recursive(), 1)", Bound, ("16 levels",)),
    ("m.particle(nested_dict(100))", Bound, ("64 levels",)),
    ("m.particle({1: 2})", Bound, ("keys that are not strings",)),
    ("m.particle({'_type': 'Nope'})", Bound, ("Could not find type 'Nope'",)),
    ("m.particle({'_type': 'Partcle'})", Bound, ("Could not find type 'Partcle'", "Particle")),
    ("m.particle({'w': 1})", Gen, ("has no field 'w'", "pos", "vel")),
    ("m.particle({'inner': {'q': 1}})", Gen, ("has no field 'q'", "'w'")),
    ("m.particle({'pos': spy.float2(1)})", Resolve, ("field 'pos'", "float2 does not match slang type vector<float,3>")),
    ("m.vec({'x': 1, 'q': 2})", Gen, ("has no field 'q'",)),
    # shapes
    ("m.mat(T(3))", Shape, ("Could not resolve dimensionality", "1 dimensions", "takes 2")),
    ("m.mat(T(3, 4))", Shape, ("does not match the expected shape", "size 4", "takes 3")),
    ("m.vec(N(5, 2))", Shape, ("does not match the expected shape", "size 2 of dimension 1", "v [5, 2]")),
    ("m.add(T(2, 3), T(2))", Shape, ("Shape mismatch for b between value (2) and call (3)", "a [2, 3]", "b [2]")),
    ("m.add(N(3), [1.0, 2.0])", Shape, ("Shape mismatch for b between value (2) and call (3)",)),
    ("m.add(range(3), 1)", Resolve, ("range",)),
    ("m.add(m.cnt(range(3)), 1)", Resolve, ("element type int, expected float",)),
    ("m.cnt(range(3), _result=N(4, dtype=np.int32))", Shape, ("Shape mismatch", "_result")),
    ("m.add(N(0), N(3))", Shape, ("Shape mismatch",)),
    # numbers
    ("m.cnt(2**31)", OverflowError, ("2147483648", "int", "argument i")),
    ("m.cnt(1.5)", ValueError, ("1.5", "int", "argument i")),
    ("m.cnt([1, 2**40])", OverflowError, ("1099511627776",)),
    ("m.cnt(float('nan'))", (ValueError, OverflowError), ("nan",)),
    # reserved keywords
    ("m.one(1.0, _thread_count=0)", ValueError, ("_thread_count",)),
    ("m.one(N(2), _thread_count=2)", ValueError, ("_thread_count", "rank is 1")),
    ("m.one(1.0, _append_to=1)", ValueError, ("Expected _append_to to be a CommandEncoder, got int",)),
    ("m.one(1.0, _result='x')", ValueError, ("Unknown return type 'x'",)),
    ("m.out_value(1.0, 2.0, _result=N(1))", Resolve, ("_result",)),
    # map
    ("m.add.map((0,))(1.0, 2)", Bound, ("Explicit vectorization raised exception: ", "parameter a")),
    ("m.add.map((0, 1))(T(3), 2)", Bound, ("Explicit vectorization raised exception: ", "maps 2 dimensions")),
    ("m.add.map((-1,))(T(3), 2)", Bound, ("negative",)),
    ("m.add.map((99,))(T(3), 2)", Bound, ("call dimension 99",)),
    ("m.generic.map('Nope')(T(3))", Bound, ("Explicit vectorization raised exception: ", "unknown type name 'Nope'")),
    ("m.add.map((0,), (0,), (0,))(T(3), 2)", ValueError, ("Too many arguments supplied for explicit vectorization",)),
    ("m.add.map(q=(0,))(T(3), 2)", ValueError, ("Unknown keyword argument 'q'",)),
    ("m.add.map(['x'])(T(3), 2)", ValueError, ("Invalid explicit type",)),
    ("m.add.map(('x',))(T(3), 2)", ValueError, ("Invalid explicit type",)),
    ("m.particle.map({'q': (0,)})({'pos': T(3)})", Bound, ("'q'",)),
    ("m.particle.map((0,))({'pos': T(3)})", Bound, ("map its fields with a dict",)),
    # generators
    ("m.where(spy.grid((2, 3, 4)))", Gen, ("Could not find suitable", "grid of 3 dimensions")),
    ("m.where(spy.call_id(), _result=np.zeros((2, 2, 2, 2), np.int32))", Gen, ("Could not find suitable",)),
    # modifiers
    ("m.add.constants({'NOPE': 1})(1, 2)", ValueError, ("NOPE",)),
    ("m.add.constants({'X': 'y'})", Gen, ("constant 'X' must be an int, float or bool",)),
    ("m.add.prelude('syntax error here')(1, 2)", Gen, ("syntax error here",)),
    ("m.add.bwds(1, 2)", Resolve, ("Could not call function 'add': Function is not differentiable",)),
    ("m.add.bwds('a', 2)", Resolve, ("Could not call function 'add': Function is not differentiable",)),
    ("m.add.fwds('a', 2)", Resolve, ("Could not call function 'add': Function is not differentiable",)),
    ("m.add.fwds(a=2, b=Wrong())", Resolve, ("Could not call function 'add': Function is not differentiable",)),
    ("m.add.set(nope=3)(1, 2)", ValueError, ("nope",)),
    ("m.nope", AttributeError, ("has no function or type named 'nope'",)),
    ("m.ad", AttributeError, ("did you mean add",)),
    ("m['a b c']", AttributeError, ("has no function or type named 'a b c'",)),
    ("m['generic<']", AttributeError, ("generic<",)),
    ("m['Tensor<float']", AttributeError, ("Tensor<float",)),
    ("m['']", AttributeError, ("has no function or type named ''",)),
    ("m[3]", (AttributeError, TypeError), ()),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "texts"), CALLS, ids=[row[0] for row in CALLS])
def test_bad_call(device: Any, call: str, kind: Any, texts: tuple[str, ...]) -> None:
    use = names(device)
    with pytest.raises(kind) as caught:
        eval(call, use)
    for text in texts:
        assert text in str(caught.value)
    assert use["m"].add(1, 2) == 3.0  # the module, its functions and the device go on working
    assert use["m"].add(array(2), 1.0, _result="numpy").tolist() == [1, 2]


TABLED = ["m.add(1)", "m.vec(spy.int3(1))", "m.add('x', 1)", "m.add(T(2, 3), T(2))", "m.particle({'w': 1})"]


@pytest.mark.parametrize("call", TABLED)
def test_messages_name_the_function_and_show_the_table(device: Any, call: str) -> None:
    with pytest.raises(spy.CallError) as caught:
        eval(call, names(device))
    text = str(caught.value)
    assert text.startswith("calls_errors::") and "bound type" in text


def test_exception_classes() -> None:
    assert issubclass(spy.ResolveException, (spy.CallError,)) and issubclass(spy.ResolveException, ValueError)
    assert issubclass(spy.BoundVariableException, spy.CallError) and issubclass(spy.BoundVariableException, ValueError)
    assert issubclass(spy.ShapeError, spy.CallError)
    assert issubclass(spy.ShapeError, ValueError) and issubclass(spy.ShapeError, RuntimeError)
    assert issubclass(spy.KernelGenException, spy.CallError) and issubclass(spy.KernelGenException, ValueError)
    assert issubclass(spy.SlangCompileError, RuntimeError)


# --- sources


def test_syntax_error_shows_the_users_place(device: Any, tmp_path: Any) -> None:
    path = tmp_path / "broken_source.slang"
    path.write_text("float f(float x)\n{\n    return x +;\n}\n")
    with pytest.raises(spy.SlangCompileError) as caught:
        spy.Module.load_from_file(device, path).f
    assert "broken_source.slang:3:" in str(caught.value)
    path.write_text("float f(float x)\n{\n    return x + 1;\n}\n")
    assert spy.Module.load_from_file(device, path).f(1.0) == 2.0


def test_unknown_identifier_shows_the_users_place(device: Any) -> None:
    with pytest.raises(spy.SlangCompileError) as caught:
        source(device, "calls_unknown_name", "float f(float x)\n{\n    return nonsense(x);\n}\n").f
    assert "calls_unknown_name:3:" in str(caught.value) or "calls_unknown_name.slang:3:" in str(caught.value)
    assert "nonsense" in str(caught.value)


def test_missing_file(device: Any) -> None:
    with pytest.raises(spy.SlangCompileError, match="no_such_file"):
        spy.Module.load_from_file(device, "no_such_file")


def test_missing_import(device: Any) -> None:
    with pytest.raises(spy.SlangCompileError, match="no_such_module"):
        source(device, "calls_missing_import", "import no_such_module;\nfloat f() { return 1; }").f


def test_private_function(device: Any) -> None:
    module = source(
        device, "calls_visible", "public float f(float x) { return x; }\nfloat hidden(float x) { return x; }"
    )
    assert module.f(2.0) == 2.0
    with pytest.raises(spy.ResolveException, match="is not public"):
        module.hidden(1.0)
    assert module.f(3.0) == 3.0


def test_same_name_with_new_source(device: Any) -> None:
    first = source(device, "calls_twice", "float f() { return 1; }")
    second = source(device, "calls_twice", "float f() { return 2; }")
    assert (first.f(), second.f()) == (1.0, 2.0)
    assert source(device, "calls_twice", "float f() { return 1; }").f() == 1.0


def test_values_of_another_device(device: Any, device_type: Any) -> None:
    other_type = spy.DeviceType.null if device_type != spy.DeviceType.null else spy.DeviceType.cpu
    other = spy.Device(type=other_type, compiler_options={}, enable_hot_reload=False)
    module = load(device, "errors")
    with pytest.raises(ValueError, match="device"):
        module.add(tensor(other, 3), 1.0)
    with pytest.raises(ValueError, match="device"):
        module.add(array(3), 1.0, _result=tensor(other, 3))
    other.close()
    assert module.add(1, 2) == 3.0


def test_closed_device() -> None:
    device = spy.Device(type=spy.DeviceType.cpu, compiler_options={}, enable_hot_reload=False)
    module = source(device, "calls_closing", "float f(float x) { return x; }")
    assert module.f(1.0) == 1.0
    device.close()
    with pytest.raises(RuntimeError, match="closed"):
        module.f(array(3))


def test_table_of_a_later_call_has_its_shapes(device: spy.Device) -> None:
    """The plan is that of the first call, the shapes in the table are those of the call that failed."""
    module = source(device, "shapes_of_later_calls", "float first(float3 v, float w) { return v.x * w; }")
    module.first(array(4, 3), array(4))
    for v, w in ((array(5, 2), array(5)), (array(6, 3), array(7))):
        with pytest.raises(spy.ShapeError) as caught:
            module.first(v, w)
        table = str(caught.value).split("argument ")[1]
        assert f"ndarray<float> {list(v.shape)}" in table and f"ndarray<float> {list(w.shape)}" in table
