"""Fifty mistakes of a first day, one row each: the message names the function, the parameter, what came, what is expected and
what to write. What was taken for a mistake and is none stands at the end."""

from __future__ import annotations

import dataclasses
import enum
import os
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from mistake import Mistake

import slangpy as spy
from slangpy import _native

pytestmark = [pytest.mark.needs_kernels, pytest.mark.one]

CODE = """
enum Mode { fast, slow };
struct S { float x; float3 v; };
struct Pair { float a; float b; };
struct Setting { Mode mode; float x; };
[Differentiable] float add(float a, float b) { return a + b; }
[Differentiable] float square(float x) { return x * x; }
float plain(float x) { return x; }
int whole(int a) { return a; }
uint natural(uint a) { return a; }
float3 vec(float3 v) { return v; }
float use(S s) { return s.x; }
float use_pair(Pair p) { return p.a; }
float chosen(Mode mode) { return mode == Mode::slow ? 1 : 0; }
float chosen_in(Setting s) { return s.mode == Mode::slow ? s.x : 0; }
float texel(int2 at, Texture2D<float4> image) { return image[at].y; }
float sampled(float2 uv, Texture2D<float4> image, SamplerState s) { return image.SampleLevel(s, uv, 0).x; }
float row(Tensor<float, 1> t, int i) { return t[i]; }
float buf(StructuredBuffer<float> b, int i) { return b[i]; }
T make<T : __BuiltinFloatingPointType>(float x) { return T(x); }
float maybe(float y, Optional<float> x) { return x.hasValue ? x.value + y : -1; }
float many(float a) { return a; }
float many(float2 a) { return a.x; }
float many(float3 a) { return a.x; }
void kern(uint3 dispatchThreadID, Tensor<float, 1> t) {}
void grouped(uint3 dispatchThreadID, uint3 groupID) {}
float again(int n) { return n <= 0 ? 0 : 1 + other(n - 1); }
float other(int n)
{
    return again(n) + 1;
}
void halve(float x, out float h) { h = x / 2; }
bool flag(bool b) { return b; }
struct Outer { Pair p; float w; };
float nested(Outer o) { return o.p.a; }
float at(float* p) { return p[0]; }
namespace inner_names { float hidden(float x) { return x; } }
static const int K = 3;
float scale;
[shader("compute")] [numthreads(4, 1, 1)]
void entry(uint3 id : SV_DispatchThreadID, uint3 group : SV_GroupID, uniform float s, RWStructuredBuffer<float> b) { b[id.x] = s; }
"""
X = np.arange(4, dtype=np.float32)


class Subject(NamedTuple):
    """What the mistakes are made with."""

    device: Any
    module: Any
    tensor: spy.Tensor

    def load(self, source: str, name: str = "mistaken") -> Any:
        return spy.Module.load_from_source(self.device, name, source)


@pytest.fixture(scope="module")
def subjects() -> dict[int, Subject]:
    return {}


@pytest.fixture
def s(device: Any, subjects: dict[int, Subject]) -> Subject:
    """One for each device: the mistakes share it."""
    if id(device) not in subjects:
        module = spy.Module.load_from_source(device, "mistakes", CODE)
        subjects[id(device)] = Subject(device, module, spy.Tensor.from_numpy(device, X))
    return subjects[id(device)]


def _image(s: Subject) -> Any:
    return s.device.create_texture(format=spy.Format.rgba32_float, width=2, height=2, usage=spy.TextureUsage.shader_resource)


def _whole_image(s: Subject) -> Any:
    return s.device.create_texture(format=spy.Format.rgba8_uint, width=2, height=2, usage=spy.TextureUsage.shader_resource)


def _buffer(s: Subject, data: Any) -> spy.Buffer:
    return s.device.create_buffer(data=data, usage=spy.BufferUsage.shader_resource)


def _device_with_folder() -> Any:
    return spy.create_device("cpu", include_paths=["/is/not/there"])


NO_FIT, UNSUPPORTED = spy.ResolveException, spy.BoundVariableException
MISTAKES: dict[str, Mistake] = {
    # arguments
    "too few": Mistake(lambda s: s.module.add(1.0), NO_FIT, ("mistakes::add", "Parameter 'b' not specified", "in float a")),
    "too many": Mistake(lambda s: s.module.add(1, 2, 3), NO_FIT, ("mistakes::add", "expected 2, got 3")),
    "keyword misspelt": Mistake(lambda s: s.module.add(a=1, bb=2), NO_FIT, ("No parameter named 'bb'", "are a, b")),
    "text for a number": Mistake(lambda s: s.module.add("1", 2), UNSUPPORTED, ("add: argument 0", "type str", "a number", "in float a")),
    "text for overloads": Mistake(lambda s: s.module.many("x"), UNSUPPORTED, ("many: argument 0", "type str", "vector<float,3> a")),
    "None for a number": Mistake(lambda s: s.module.add(None, 1.0), UNSUPPORTED, ("argument 0", "type None", "pass a value")),
    "a function": Mistake(lambda s: s.module.add(s.module.square, 1.0), UNSUPPORTED, ("type FunctionNode", "when it is called")),
    "a type": Mistake(lambda s: s.module.use(s.module.S), UNSUPPORTED, ("type Struct", "by calling it", "dict of its fields")),
    "a generator": Mistake(lambda s: s.module.add((i for i in range(3)), 1.0), UNSUPPORTED, ("type generator", "list(values)")),
    "a set": Mistake(lambda s: s.module.add({1, 2}, 1.0), UNSUPPORTED, ("type set", "a list")),
    "bytes": Mistake(lambda s: s.module.add(b"12", 1.0), UNSUPPORTED, ("type bytes", "np.frombuffer")),
    "complex": Mistake(lambda s: s.module.add(1j, 1.0), UNSUPPORTED, ("type complex", "a float2")),
    "an array of text": Mistake(lambda s: s.module.add(np.array(["a"]), 1.0), UNSUPPORTED, ("dtype <U1", "array of numbers")),
    "an array of objects": Mistake(lambda s: s.module.add(np.array([[]], object), 1.0), UNSUPPORTED, ("dtype object", "array of numbers")),
    "lists of two lengths": Mistake(lambda s: s.module.add([[1, 2], [3]], 1.0), UNSUPPORTED, ("argument 0", "[1] has 1 elements")),
    "shapes that differ": Mistake(lambda s: s.module.add(X, X[:3]), spy.ShapeError, ("for b between value (3) and call (4)", "a [4], b [3]")),
    "float64 for float": Mistake(lambda s: s.module.plain(np.ones(3)), NO_FIT, ("element type double, expected float", "x.astype(np.float32)")),
    "float for int": Mistake(lambda s: s.module.whole(1.5), ValueError, ("whole: argument a: 1.5", "int", "round it first")),
    "a number too large": Mistake(lambda s: s.module.whole(2**40), OverflowError, ("argument a", "out of range for int", "2147483647")),
    "a negative number": Mistake(lambda s: s.module.natural(-1), OverflowError, ("argument a: -1", "uint (0 to 4294967295)")),
    "a vector of two": Mistake(lambda s: s.module.vec((1.0, 2.0)), spy.ShapeError, ("v: tuple [2]", "vector<float,3>", "[2]", "[3]")),
    "a dict for a number": Mistake(lambda s: s.module.add({"a": 1}, 2.0), NO_FIT, ("a: dict{a} does not match slang type float",)),
    "a tuple for a struct": Mistake(lambda s: s.module.use_pair((1.0, 2.0)), NO_FIT, ("p: tuple [2]", "type Pair", "{'a': ..., 'b': ...}")),
    "a mixed tuple for a struct": Mistake(lambda s: s.module.use((1.0, (1.0, 2.0, 3.0))), UNSUPPORTED, ("use: argument 0", "a dict of its fields")),
    "a field too much": Mistake(lambda s: s.module.use({"x": 1.0, "w": 3}), spy.KernelGenException, ("struct S has no field 'w'", "['x', 'v']")),
    "an enum misspelt": Mistake(lambda s: s.module.chosen("slwo"), NO_FIT, ("mode: enum Mode has no value 'slwo'", "fast, slow")),
    "text for a sampler": Mistake(
        lambda s: s.module.sampled(np.zeros(2, np.float32), _image(s), "linear"), UNSUPPORTED, ("argument 2: Unsupported type str", "create_sampler", "in SamplerState s")
    ),
    "a dict for a sampler": Mistake(
        lambda s: s.module.sampled(np.zeros(2, np.float32), _image(s), {"filter": 1}), NO_FIT, ("s: dict{filter}", "SamplerState", "create_sampler")
    ),
    "an array for a texture": Mistake(lambda s: s.module.texel((0, 0), np.zeros((2, 2, 4), np.float32)), NO_FIT, ("image: ndarray", "create_texture(")),
    "a number for a tensor": Mistake(lambda s: s.module.row(1.0, 0), NO_FIT, ("t: float", "Tensor<float, 1>", "pass an array or a Tensor")),
    "float64 for a buffer": Mistake(lambda s: s.module.buf(np.ones(4), 1), NO_FIT, ("b: ndarray<double> [4]", "StructuredBuffer<float>", "x.astype(np.float32)")),
    "an output left out": Mistake(lambda s: s.module.halve(X), NO_FIT, ("Parameter 'h'", "it is an output", "spy.ValueRef()")),
    "_result of another package": Mistake(lambda s: s.module.add(X, 1.0, _result="pandas"), ValueError, ("add", "'pandas'", "'tensor', 'numpy'")),
    # functions and names
    "a name misspelt": Mistake(lambda s: s.module.ad(1, 2), AttributeError, ("'mistakes'", "'ad'", "did you mean add")),
    "a name in a namespace": Mistake(lambda s: s.module.hidden(1.0), AttributeError, ("'hidden'", "module['inner_names.hidden']")),
    "a constant called": Mistake(lambda s: s.module.K(1), AttributeError, ("'K'", "function.constants({'K': value})")),
    "a generic without its type": Mistake(lambda s: s.module.make(X), NO_FIT, ("mistakes::make", "T must conform to", "module['make<float>']")),
    "recursion": Mistake(
        lambda s: s.module.again(3), spy.KernelGenException, ("mistakes::again", "'again' (line 27)", "'other' (line 28)", "no recursion", "write a loop")
    ),
    "an entry point called": Mistake(lambda s: s.module.entry(1.0), NO_FIT, ("'entry' is an entry point", ".dispatch(thread_count, ...)")),
    "dispatch by position": Mistake(lambda s: s.module.kern.dispatch(4, s.tensor), TypeError, ("mistakes::kern", "dispatch(thread_count, t=...)", "a Tensor")),
    "dispatch without a value": Mistake(lambda s: s.module.kern.dispatch(4), ValueError, ("mistakes::kern", "parameter 't'")),
    "group ids of a function": Mistake(lambda s: s.module.grouped.dispatch(4), ValueError, ("'groupID'", "[numthreads(32, 1, 1)]", ": SV_GroupID")),
    "a gradient of what has none": Mistake(lambda s: s.module.plain.bwds(s.tensor, s.tensor), NO_FIT, ("'plain'", "mark it [Differentiable]")),
    "a gradient without a seed": Mistake(lambda s: s.module.square.bwds(X), NO_FIT, ("bwds of 'square'", "_result=tensor.with_grads()")),
    "a global misspelt": Mistake(lambda s: s.module.add.set({"scal": 1})(1.0, 2.0), ValueError, ("mistakes::add", "'scal'", "scale")),
    "the result checked": Mistake(lambda s: spy.check_gradients(s.module.square(2.0)), TypeError, ("got a float", "check_gradients(f, x)")),
    # sources
    "name and source swapped": Mistake(lambda s: s.load("shader", "float f(float x) { return x; }"), ValueError, ("'name' holds Slang source", "(device, name, source)")),
    "a path for a source": Mistake(lambda s: s.load("shader.slang"), ValueError, ("the path 'shader.slang'", "load_from_file(device, path)")),
    "a source for a path": Mistake(lambda s: spy.Module.load_from_file(s.device, "float f() { return 1; }"), spy.SlangCompileError, ("load_from_source(device, name, source)",)),
    "no device": Mistake(lambda s: spy.Module.load_from_file("a.slang"), TypeError, ("the first argument is the device", "load_from_file(device, path)")),  # type: ignore
    "a folder that is not there": Mistake(
        lambda s: spy.Module.load_from_file(_device_with_folder(), "nowhere.slang"), spy.SlangCompileError, ('"nowhere.slang": no such file', "/is/not/there (does not exist)")
    ),
    "an import that is not there": Mistake(lambda s: s.load("import nowhere;\nfloat f() { return 1; }", "importing"), spy.SlangCompileError, ("'nowhere.slang'", "importing:1:8", "looked in")),
    "a struct and a function on one line": Mistake(
        lambda s: s.load("struct S { float x; } float f(S s) { return s.x; }", "one_line"), spy.SlangCompileError, ("one_line:1:29", "one_line:1: a declaration follows the }", "write };")
    ),
    "no semicolon": Mistake(lambda s: s.load("float f() { return 1 }", "no_end"), spy.SlangCompileError, ("no_end:1:22", "expected ';'")),
    "a module declaration": Mistake(lambda s: s.load("module mistaken;\nfloat f() { return 1; }").f(), NO_FIT, ("mistaken::f", "'f' is not public", "leave `module name;` out")),
    # devices and tensors
    "no such device": Mistake(lambda s: spy.create_device("gpu"), ValueError, ("'type'", "'gpu'", '"cuda"', '"cpu"')),
    "the second adapter": Mistake(lambda s: spy.create_device("cpu:1"), ValueError, ("'cpu:1'", "enumerate_adapters('cpu')[1].luid")),
    "no such dtype": Mistake(lambda s: spy.Tensor.zeros(s.device, (2,), "flot"), ValueError, ("dtype", "'flot'", "did you mean float")),
    "the other byte order": Mistake(lambda s: spy.Tensor.zeros(s.device, (2,), ">f4"), ValueError, ("dtype: '>f4'", "use '<f4'")),
    "data in front of the device": Mistake(lambda s: spy.Tensor.from_numpy(X, s.device), TypeError, ("from_numpy: 'device'", "got ndarray", "(device, array)")),  # type: ignore
    "no dtype": Mistake(lambda s: spy.Tensor.zeros(s.device, (2,)), ValueError, ("zeros", "dtype", "'float', np.float32 or module.S")),
    "a negative size": Mistake(lambda s: spy.Tensor.zeros(s.device, (-1,), "float"), ValueError, ("zeros: 'shape' [-1]", "negative size")),
    "texels of another size": Mistake(
        lambda s: s.device.create_texture(format=spy.Format.rgba8_unorm, width=2, height=2, usage=spy.TextureUsage.shader_resource, data=np.zeros((2, 2, 4), np.float32)),
        ValueError, ("create_texture 'data'", "64 bytes (shape (2, 2, 4), dtype dtype('float32'))", "shape [2, 2, 4] and dtype uint8"),
    ),
    "texels of another kind": Mistake(lambda s: s.module.texel((0, 0), _whole_image(s)), NO_FIT, ("image: Texture<2d, rgba8_uint>", "are vector<uint,4>", "use a format of float texels")),
    # memory
    "a buffer of float64": Mistake(lambda s: s.module.buf(_buffer(s, np.ones(4)), 1), NO_FIT, ("b: Buffer", "numbers of float64", "data.astype(np.float32)")),
    "a buffer of int64": Mistake(lambda s: s.module.buf(_buffer(s, np.arange(4)), 1), NO_FIT, ("b: Buffer", "numbers of int64", "data.view(np.uint8)")),
    "a float for a pointer": Mistake(lambda s: s.module.at(1.5), NO_FIT, ("p: float", "Ptr<float>", "an address as an int")),
    "_result too long": Mistake(lambda s: s.module.plain(X, _result=np.zeros(5, np.float32)), spy.ShapeError, ("_result", "(5) and call (4)", "x [4], _result [5]")),
    "a number for _result": Mistake(lambda s: s.module.plain(X, _result=3), NO_FIT, ("_result", "int cannot hold a result", "a ValueRef")),
    "a fraction for a bool": Mistake(lambda s: s.module.flag(0.5), NO_FIT, ("b: float", "slang type bool", "x != 0")),
    "None in a list": Mistake(lambda s: s.module.plain([1.0, None]), UNSUPPORTED, ("plain: argument 0[1]", "type None")),
    "text in a nested dict": Mistake(lambda s: s.module.nested({"p": {"a": "1"}}), UNSUPPORTED, ("nested: argument 0.p.a", "type str", "a number")),
    "an encoder left out": Mistake(lambda s: s.module.plain.append_to(1.0), TypeError, ("mistakes::plain", "a CommandEncoder first", "got float", "create_command_encoder()")),
    "a map by text": Mistake(lambda s: s.module.plain.map("x")(X), UNSUPPORTED, ("'x' for parameter x", ".map((0,))")),
    "a constant that is not extern": Mistake(lambda s: s.module.plain.constants({"K": 2})(1.0), ValueError, ("mistakes::plain", "'K'", "extern static const int K")),
    # generics
    "a type that does not exist": Mistake(lambda s: s.module["make<flot>"], AttributeError, ("'make<flot>'", "no type 'flot'", "did you mean float")),
    "a type that does not conform": Mistake(lambda s: s.module["make<int>"], AttributeError, ("int does not conform to __BuiltinFloatingPointType", "module['make<float>']")),
    "too many types": Mistake(lambda s: s.module["make<float, int>"], AttributeError, ("make<T : __BuiltinFloatingPointType> takes 1 argument, got 2",)),
    "a tensor of no device": Mistake(lambda s: spy.Tensor.zeros((2,), "float"), TypeError, ("zeros: 'device' must be a Device, got tuple",)),  # type: ignore
}  # fmt: skip


def test_there_are_fifty() -> None:
    assert len(MISTAKES) >= 50


@pytest.mark.parametrize("name", MISTAKES)
def test_message(name: str, s: Subject) -> None:
    mistake = MISTAKES[name]
    with pytest.raises(mistake.kind) as error:
        mistake.make(s)
    text = str(error.value)
    assert all(word in text for word in mistake.words), text


def test_recursion_that_macros_write(s: Subject) -> None:
    """No line is known of those, but the message says what it is and what to do."""
    source = "#define AGAIN(T, f) T f(int n) { return n <= 0 ? 0 : 1 + f(n - 1); }\nAGAIN(float, again)\n"
    with pytest.raises(spy.KernelGenException, match="recursion_of_macros::again: .* calls itself, .*no recursion: write a loop") as error:
        s.load(source, "recursion_of_macros").again(3)
    assert "'again'" in str(error.value) or s.device.info.type is spy.DeviceType.cpu


def test_generics_are_listed(s: Subject) -> None:
    assert "  T make<T : __BuiltinFloatingPointType>(float x)" in str(s.module).splitlines()
    assert s.module.make.__doc__.startswith("T make<T : __BuiltinFloatingPointType>(float x)")
    boxes = s.load("interface I { float area(); }\nstruct Box<T, let N : int> { T v[N]; };\nfloat of<S : I>(S s) { return s.area(); }", "boxes")
    lines = str(boxes).splitlines()
    assert "  interface I" in lines and "  struct Box<T, let N> { T[N] v; }" in lines and "  float of<S : I>(S s)" in lines, lines


def test_group_ids_of_entry_points_are_left_out(s: Subject) -> None:
    buffer = s.device.create_buffer(element_count=4, struct_size=4, usage=spy.BufferUsage.unordered_access)
    with pytest.warns(RuntimeWarning, match="no parameter 'group'; that is given by the device: leave it out"):
        s.module.entry.dispatch(4, s=2.0, b=buffer, group=(0, 0, 0))
    assert buffer.to_numpy().view(np.float32).tolist() == [2.0] * 4


# --- lists of overloads


def _fails(s: Subject, source: str, name: str) -> str:
    with pytest.raises(spy.SlangCompileError) as error:
        s.load(source, name)
    return str(error.value)


def test_three_candidates_are_shown(s: Subject) -> None:
    own = "".join(f"float g(float{n} a) {{ return 1; }}\n" for n in (2, 3, 4)) + "float g(int2 a) { return 1; }\nfloat g(int3 a) { return 1; }\n"
    text = _fails(s, own + "float f(float x) { return g(x, x); }", "overloads")
    assert text.index("overloads:6:") < text.index("candidate: func g(float2)"), text
    assert text.count("candidate: func") == 3 and "note: 2 more candidates" in text
    text = _fails(s, "float f(float x) { return max(x, x, x, x); }", "operators")
    assert text.count("candidate: func") == 3 and ".meta.slang" not in text and "note: 1 more candidate" in text, text
    text = _fails(s, "struct A { float x; };\nfloat f(float x) { A a; return (a * x).x; }", "products")
    assert text.count("candidate: func") == 3 and "note: 37 more candidates" in text and "E40015" not in text, text


# --- what is accepted


@dataclasses.dataclass
class Values:
    x: Any
    v: Any
    extra: dataclasses.InitVar[int] = 0


class AnArray:
    """What has nothing but __array__."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray[Any, Any]:
        return X.copy()


def test_dataclasses_are_structs(s: Subject) -> None:
    m = s.module
    assert m.use(Values(2.0, (1.0, 2.0, 3.0))) == 2
    assert m.use(Values(X, spy.float3(1)), _result="numpy").tolist() == X.tolist()
    assert m.use([Values(3.0, spy.float3(1)), Values(4.0, spy.float3(2))], _result="numpy").tolist() == [3, 4]
    with pytest.raises(spy.BoundVariableException, match="argument 0.x: Unsupported type str"):
        m.use(Values("1", spy.float3(1)))


def test_objects_with_array(s: Subject) -> None:
    assert s.module.plain(AnArray(), _result="numpy").tolist() == X.tolist()
    with pytest.raises(ValueError, match="read-only"):  # it gives a copy: what is written there would be lost
        s.module.halve(1.0, AnArray())


def test_enums_by_name(s: Subject) -> None:
    m = s.module
    assert [m.chosen(name) for name in ("fast", "slow")] == [0, 1]
    assert m.chosen_in({"mode": "slow", "x": X}, _result="numpy").tolist() == X.tolist()
    assert m.chosen_in({"mode": "fast", "x": X}, _result="numpy").tolist() == [0] * 4
    assert m.chosen(enum.Enum("Mode", {"quick": "slow"}).quick) == 1  # type: ignore


def test_enums_of_imported_modules_by_name(s: Subject, tmp_path: Path) -> None:
    (tmp_path / "their_modes.slang").write_text(
        "namespace their {\nstruct Filter {\nenum Mode { off, linear = 7 };\n};\n}\nenum Sides { left, right = 4 };\n", encoding="utf-8"
    )
    main = tmp_path / "uses_modes.slang"
    main.write_text(
        "import their_modes; int mode(their::Filter::Mode m) { return int(m); } int side(Sides s, int i) { return int(s) + i; }",
        encoding="utf-8",
    )
    m = spy.Module.load_from_file(s.device, str(main))
    assert [m.mode(name) for name in ("off", "linear")] == [0, 7]
    assert m.side("right", np.arange(3, dtype=np.int32), _result="numpy").tolist() == [4, 5, 6]
    with pytest.raises(spy.ResolveException, match="enum .*Mode has no value 'fast'; its values are off, linear"):
        m.mode("fast")


def test_none_and_values_for_optional(s: Subject) -> None:
    m = s.module
    assert m.maybe(1.0, None) == -1 and m.maybe(1.0, 2.0) == 3
    assert m.maybe(X, None, _result="numpy").tolist() == [-1] * 4
    assert m.maybe(1.0, X, _result="numpy").tolist() == (X + 1).tolist()
    with pytest.raises(spy.BoundVariableException, match="Unsupported type str"):
        m.maybe(1.0, "2")


@pytest.mark.parametrize("code", ["f4", "<f4", "=i2", "|u1", "?", "f2", "f8", "i8"])
def test_dtype_codes(code: str, s: Subject) -> None:
    got = spy.Tensor.zeros(s.device, (2,), code).to_numpy().dtype
    assert got == np.dtype(code) or (code == "?" and got == np.dtype("uint32"))


@pytest.mark.null
def test_device_names_of_torch() -> None:
    device = spy.create_device("null:0")
    assert device.info.type is spy.DeviceType.null
    device.close()


# --- where tracebacks end


@pytest.fixture
def hidden() -> Iterator[None]:
    """As it is for users: conftest.py keeps all frames."""
    folder = os.path.dirname(os.path.abspath(spy.__file__)) + os.sep
    _native._hide_frames(folder)
    yield
    _native._hide_frames(folder if os.environ.get("SLANGPY_FULL_TRACEBACK") != "1" else "")


def _frames(call: Callable[[], Any]) -> list[traceback.FrameSummary]:
    try:
        call()
    except Exception as error:
        return list(traceback.extract_tb(error.__traceback__))
    raise AssertionError("nothing was raised")


def test_tracebacks_end_at_the_users_line(s: Subject, hidden: None) -> None:
    prepared = s.module.add.prepare(s.tensor, s.tensor)
    for call in (
        lambda: s.module.add(1.0, "text"),
        lambda: s.module.add(X, X[:2]),
        lambda: prepared.set(a="text"),
    ):
        names = [os.path.basename(frame.filename) for frame in _frames(call)]
        assert names[:2] == [os.path.basename(__file__)] * 2 and len(names) <= 3, names
    frames = _frames(lambda: s.load("float f() { return y; }"))
    assert [os.path.basename(f.filename) for f in frames][-1] == "keywords.py" and len(frames) == 4


def test_frames_can_be_kept(s: Subject) -> None:
    _native._hide_frames("")
    assert len(_frames(lambda: s.module.add(1.0, "text"))) > 4


class Fails:
    def get_this(self) -> Any:
        raise ValueError("of the user's own")


def test_frames_of_users_own_functions_stay(s: Subject, hidden: None) -> None:
    frames = _frames(lambda: s.module.add(1.0, Fails()))
    assert frames[-1].name == "get_this"

    def globals_of(*_: Any) -> dict[str, Any]:
        raise ValueError("of the user's own")

    assert _frames(lambda: s.module.add.set(globals_of)(1.0, 2.0))[-1].name == "globals_of"
