"""Modules, names, structs, layouts and inspection as the documentation lists them."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest
from calls_support import array, plain, source, tensor

import slangpy as spy
from slangpy import reflection
from slangpy.core.function import Function, FunctionNode
from slangpy.core.module import Module
from slangpy.core.struct import Struct

pytestmark = [pytest.mark.needs_kernels, pytest.mark.one]

SOURCE = """
import slangpy;
namespace ns { int f(int x) { return x + 100; } struct In { int a; }; }
int f(int x) { return x + 1; }
int pick<let N : int>(int x) { return x * N; }
T twice<T : IArithmetic>(T x) { return x + x; }
enum Level { low, high = 7 }
interface IThing { int size(); }
struct Outer { struct Inner { float y; }; float x; float3 v; int n[2][3]; Inner inner; int size() { return 1; } static int one() { return 1; } }
struct Sized<T, let N : int> { T data[N]; }
struct Thing : IThing { int n; int size() { return n; } [mutating] void grow() { n += 1; } }
typedef float3 Color;
typealias Pair = Sized<float, 2>;
static const int LIMIT = 4;
int name(int x) { return 7 * x; }
int f_default(int a, int b = 5) { return a * 10 + b; }
float g_default(float a, float b = 2.5, float c = 1.0) { return a + 10 * b + 100 * c; }
[Differentiable] float poly(float a, float x) { return a * x * x; }
"""


@pytest.fixture
def m(device: Any) -> Any:
    return source(device, "spec_modules", SOURCE)


# --- 1.2 and 1.3


def test_lookup_by_item_and_attribute(m: Any) -> None:
    assert m.f is m.f and m["f"] is m.f
    assert m["ns::f"](1) == 101 and m.f(1) == 2
    assert m["name"](2) == 14 and m.name == "spec_modules"  # item access sees Slang names only
    specialised = m["pick<4>"]
    assert specialised.name == "pick<4>" and specialised(3) == 12
    assert m["twice<float>"](2.5) == 5.0
    assert isinstance(m.f, FunctionNode) and FunctionNode is Function
    assert isinstance(m.Outer, Struct) and isinstance(m, Module)


@pytest.mark.parametrize(
    ("text", "full_name"),
    [
        ("Outer", "Outer"), ("Outer::Inner", "Outer.Inner"), ("Sized<float,3>", "Sized<float,3>"), ("float", "float"),
        ("float3", "vector<float,3>"), ("uint2", "vector<uint,2>"), ("half3", "vector<half,3>"), ("double", "double"),
        ("uint64_t", "uint64_t"), ("float3x4", "matrix<float,3,4>"), ("vector<float,3>", "vector<float,3>"),
        ("float[4]", "float[4]"), ("float2[4]", "vector<float,2>[4]"), ("Tensor<float,2>", "Tensor<float, 2>"),
        ("Color", "vector<float,3>"), ("int32_t", "int"), ("bool", "bool"), ("int8_t", "int8_t"), ("Level", "Level"),
        ("IThing", "IThing"), ("StructuredBuffer<float>", None), ("Texture2D<float4>", None), ("Ptr<float>", None),
    ],
)  # fmt: skip
def test_type_names(m: Any, text: str, full_name: str | None) -> None:
    found = m[text]
    assert isinstance(found, Struct)
    if full_name is not None:
        assert found.full_name.replace(" ", "") == full_name.replace(" ", "")
    assert m.find_struct(text).full_name == found.full_name


def test_pointer_syntax(m: Any) -> None:
    assert m["float*"].full_name == m["Ptr<float>"].full_name


@pytest.mark.parametrize("name", ["nothing", "LIMIT", "ns", "Sized<float"])
def test_names_that_are_no_function_or_type(m: Any, name: str) -> None:
    with pytest.raises(AttributeError, match=r"Module 'spec_modules' has no function or type named"):
        m[name]


def test_find_and_require(m: Any) -> None:
    assert m.find_struct("Nope") is None and m.find_function("nope") is None
    assert m.require_struct("Outer").full_name == "Outer" and m.require_function("f")(1) == 2
    with pytest.raises(ValueError, match="Could not find struct 'Nope'"):
        m.require_struct("Nope")
    with pytest.raises(ValueError, match="Could not find function 'nope'"):
        m.require_function("nope")
    for owner in (m.Thing, "Thing"):
        assert m.find_function_in_struct(owner, "size")({"n": 3}) == 3
        assert m.find_function_in_struct(owner, "nope") is None
    with pytest.raises(ValueError, match="Function 'nope' not found"):
        spy.Function(m, "nope")
    assert spy.Function(m, "f")(2) == 3


def test_module_properties(m: Any, device: Any) -> None:
    assert m.name == "spec_modules" and m.device is device and m.link == [] and m.options["convert"] == "none"
    assert m.session is m.device_module.session and m.layout.is_valid and m.layout.generation >= 0
    assert repr(m) == "Module(name='spec_modules', linked_modules=0)"
    own = logging.getLogger("spec")
    m.logger = own
    assert m.logger is own


# --- 1.4


def test_struct_attributes(m: Any, device: Any) -> None:
    s = m.Outer
    assert (s.name, s.full_name, s.shape, s.num_dims, s.element_type) == ("Outer", "Outer", (), 0, None)
    assert list(s.fields) == ["x", "v", "n", "inner"]
    assert s.fields["v"].name == "v" and s.fields["v"].type.full_name == "vector<float,3>"
    assert s.fields["n"].type.full_name == "int[3][2]" and tuple(s.fields["n"].type.shape) == (2, 3)
    assert s.module is m and s.device is device and s.session is m.session and s.device_module is m.device_module
    assert not s.is_generic and m["Sized"].is_generic
    for layout in (s.uniform_layout, s.buffer_layout):
        assert layout.size > 0 and layout.stride >= layout.size and layout.alignment >= 1
    assert m["float3"].element_type.full_name == "float" and tuple(m["float3"].shape) == (3,)
    assert m["float"].differentiable and m["float"].derivative.full_name == "float"
    assert s.as_struct() is s
    with pytest.raises(ValueError, match="Cannot convert a struct to a function"):
        s.as_func()
    with pytest.raises(ValueError, match="Cannot convert a function to a struct"):
        m.f.as_struct()
    assert m.f.as_func() is m.f


def test_struct_members(m: Any) -> None:
    assert m.Outer.Inner.full_name == "Outer.Inner" and m.Outer["Inner"].full_name == "Outer.Inner"
    assert m.Outer.size({"x": 1.0}) == 1 and m.Outer["size"]({}) == 1
    assert m.Outer.one() == 1
    assert m.Outer.try_get_child("nope") is None
    with pytest.raises(AttributeError, match="Struct 'Outer' has no method or sub-type named 'nope'"):
        m.Outer.nope
    assert m.Thing.size(_this={"n": 4}) == 4


@pytest.mark.parametrize("kind", ["dict", "typed", "tensor", "instances", "reference", "object"])
def test_this_may_be_anything_that_binds(m: Any, device: Any, kind: str) -> None:
    class Holder:
        def get_this(self) -> Any:
            return {"n": 3}

    values = {
        "dict": lambda: {"n": 3},
        "typed": lambda: {"n": 3, "_type": "Thing"},
        "tensor": lambda: _things(m, device, [3, 4]),
        "instances": lambda: spy.InstanceList(m.Thing, {"n": tensor(device, 2, dtype=np.int32)}),
        "reference": lambda: spy.ValueRef({"n": 3}),
        "object": Holder,
    }
    expected = {"tensor": [3, 4], "instances": [0, 1]}.get(kind, 3)
    assert plain(m.Thing.size(values[kind]())) == expected


def _things(m: Any, device: Any, numbers: list[int]) -> spy.Tensor:
    made = spy.Tensor.zeros(device, (len(numbers),), dtype=m.Thing)
    cursor = made.cursor()
    for index, number in enumerate(numbers):
        cursor[index].write({"n": number})
    cursor.apply()
    return made


def test_mutating_methods_write_this(m: Any, device: Any) -> None:
    things, ref = _things(m, device, [3, 4]), spy.ValueRef({"n": 1, "_type": "Thing"})
    m.Thing.grow(things)
    m.Thing.grow(ref)
    assert plain(m.Thing.size(things)) == [4, 5] and ref.value["n"] == 2


# --- 1.5


def test_layout_lookups(m: Any) -> None:
    layout = m.layout
    assert layout.find_type_by_name("Nope") is None and layout.find_function_by_name("nope") is None
    assert layout.find_type_by_name("Outer") is layout.require_type_by_name("Outer")
    assert layout.require_function_by_name("f").name == "f"
    with pytest.raises(Exception, match="Nope"):
        layout.require_type_by_name("Nope")
    with pytest.raises(Exception, match="nope"):
        layout.require_function_by_name("nope")
    thing = layout.require_type_by_name("Thing")
    assert layout.find_function_by_name_in_type(thing, "size").name == "size"
    assert layout.find_function_by_name_in_type(thing, "nope") is None
    scalar = spy.TypeReflection.ScalarType.float32
    assert layout.scalar_type(scalar).full_name == "float"
    assert layout.vector_type(scalar, 3).full_name == "vector<float,3>"
    assert layout.matrix_type(scalar, 2, 3).full_name == "matrix<float,2,3>"
    assert layout.array_type(layout.scalar_type(scalar), 4).full_name == "float[4]"
    assert layout.tensor_type(layout.scalar_type(scalar), 2).full_name.replace(" ", "") == "Tensor<float,2>"


@pytest.mark.parametrize(
    ("name", "cls", "values"),
    [
        ("void", "VoidType", {}), ("float", "ScalarType", {"shape": ()}), ("float3", "VectorType", {"num_elements": 3, "shape": (3,)}),
        ("float2x3", "MatrixType", {"rows": 2, "cols": 3, "shape": (2, 3)}),
        ("float[3]", "ArrayType", {"num_elements": 3, "shape": (3,)}), ("Outer", "StructType", {"shape": ()}),
        ("IThing", "InterfaceType", {}), ("Ptr<float>", "PointerType", {}),
        ("StructuredBuffer<float>", "StructuredBufferType", {"writable": False}),
        ("RWStructuredBuffer<float>", "StructuredBufferType", {"writable": True}),
        ("ByteAddressBuffer", "ByteAddressBufferType", {"writable": False}), ("Texture2D<float>", "TextureType", {}),
        ("SamplerState", "SamplerStateType", {}), ("Tensor<float,2>", "TensorType", {"dims": 2}),
        ("DifferentialPair<float>", "DifferentialPairType", {}),
    ],
)  # fmt: skip
def test_type_classes(m: Any, name: str, cls: str, values: dict[str, Any]) -> None:
    found = m.layout.find_type_by_name(name)
    assert isinstance(found, getattr(reflection, cls)), type(found)
    for attribute, value in values.items():
        got = getattr(found, attribute)
        assert (tuple(got) if isinstance(value, tuple) else got) == value
    assert repr(found).startswith(f'refl::Type(full_name="{found.full_name}", kind=')


def test_nested_array_types(m: Any) -> None:
    found = m.layout.find_type_by_name("Outer").fields["n"].type
    assert isinstance(found, reflection.ArrayType)
    assert (
        found.num_elements == 2 and tuple(found.array_shape) == (2, 3) and found.inner_element_type.full_name == "int"
    )


# --- 2.2 and 4.2


def test_defaults(m: Any) -> None:
    assert m.f_default(1) == 15 and m.f_default(1, 2) == 12 and m.f_default(b=3, a=1) == 13
    assert m.g_default(1.0) == 126 and m.g_default(1.0, c=0.0) == 26 and m.g_default(1.0, 0.0) == 101
    assert plain(m.f_default([1, 2])) == [15, 25]


def test_defaults_that_name_others(device: Any) -> None:
    """Slang would have to work them out in the call, and fails or crashes there."""
    m = spy.Module.load_from_source(device, "dependent_defaults", """
        static const float K = 2;
        float after(float a, float b = K, float c = a + 1) { return a + b + c; }
        float size(float a, float b = sizeof(a)) { return b; }
        struct S { float x; float y = x; float z = 3;
                   static const float N = 4; float kept(float q = N) { return q; } float own(float q = x) { return q; } }
        """)  # fmt: skip
    assert m.after(1, 2, 3) == 6
    for call, names in (
        (lambda: m.after(1), "'c' \\(line 3\\)"),
        (lambda: m.S.own({"x": 1, "y": 1, "z": 1}), "'q' \\(line 6\\)"),
        (lambda: m.S(1), "'y' \\(line 5\\)"),
    ):
        with pytest.raises(spy.ResolveException, match=f"the default value of {names} names another .*: pass it"):
            call()
    assert m.size(1) == 4 and m.S.kept({"x": 1, "y": 1, "z": 1}) == 4


def test_what_was_looked_up_before_the_compiler_crashed(device: Any) -> None:
    m = spy.Module.load_from_source(device, "before_a_crash", """
        struct S { float x; float y; float sum() { return x + y; } float own(float q = x) { return q; } }
        float twice(float a) { return 2 * a; }
        """)  # fmt: skip
    struct, type_, function = m.S, m.S.type, m.layout.find_function_by_name("twice")
    tensor = spy.Tensor.zeros(device, (2,), struct)
    with pytest.raises(spy.ResolveException, match="'q'"):
        struct.own({"x": 1, "y": 2})
    assert repr(function) == "SlangFunction(invalidated by a reload)"
    assert struct.sum({"x": 1, "y": 2}) == 3 and struct(1.0, 2.0) == {"x": 1, "y": 2} and m.twice(2) == 4
    assert list(type_.fields) == ["x", "y"] and type_.kind == "struct" and plain(struct.sum(tensor)) == [0, 0]


def test_calling_forms(m: Any, device: Any) -> None:
    assert m.f_default.call(1, b=2) == 12
    out = spy.Tensor.zeros(device, (2,), dtype="int")
    encoder = device.create_command_encoder()
    assert m.f.append_to(encoder, [1, 2], _result=out) is None
    assert m.f([3, 4], _append_to=encoder, _result=spy.Tensor.zeros(device, (2,), dtype="int")) is None
    device.submit_command_buffer(encoder.finish())
    assert plain(out) == [2, 3]
    assert m.f(1, _append_to=None) == 2
    with pytest.raises(ValueError, match="Expected _append_to to be a CommandEncoder, got int"):
        m.f(1, _append_to=3)


# --- 2.4


def test_debug_build_call_data(m: Any) -> None:
    data = m.poly.debug_build_call_data(2.0, array(3))
    assert "poly(" in data.code and data.call_dimensionality == 1
    assert m.poly.debug_build_call_data(5.0, array(7)) is data
    m.poly(5.0, array(7))
    assert tuple(data.last_call_shape) == (7,)
    data.call(spy.core.native.NativeCallRuntimeOptions(), 5.0, array(4))
    assert tuple(data.last_call_shape) == (4,), "the plan itself was called"
    explicit = m.poly.map((), (0,)).debug_build_call_data(5.0, array(7))
    assert explicit is not data and explicit.pipeline is data.pipeline
    assert "poly" in spy.explain(m.poly, 2.0, array(3)) and "call dims" in spy.explain(m.poly, 2.0, array(3))


def test_debug_bindings(m: Any) -> None:
    data = m.poly.debug_build_call_data(2.0, x=array(3))
    (first,) = data.debug_only_bindings.args
    assert first.name == "a" and first.vector_type.full_name == "float" and first.call_dimensionality == 0
    x = data.debug_only_bindings.kwargs["x"]
    assert x.name == "x" and tuple(x.vector_mapping) == (0,) and x.call_dimensionality == 1


def test_debug_bindings_of_fields_and_outputs(m: Any, device: Any) -> None:
    things = _things(m, device, [1])
    data = m.Thing.grow.debug_build_call_data(things)
    assert data.debug_only_bindings.args[0].access.name == "readwrite"
    data = m.Outer.size.debug_build_call_data({"x": array(3), "inner": {"y": 1.0}})
    (this,) = data.debug_only_bindings.args
    assert list(this.children) == ["inner", "x"] and this.children["x"].vector_mapping == (0,)
    assert [b.name for b in this.get_input_list([])] == ["y", "x"]
    assert [b.name for b in data.debug_only_bindings.get_input_list([])] == ["y", "x"]
    assert data.call_mode and data.call(None, {"x": array(2)}).shape == (2,)


def test_nodes_know_where_they_come_from(m: Any) -> None:
    node = m.poly.map((0,)).constants({})
    assert node.root is m.poly and node.parent.parent is m.poly and node.module is m and node.name == "poly"
    assert m.poly.parent is None
