"""The reflection layer as programs written for shader-slang/slangpy use it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import slangpy as spy
from slangpy import reflection as r
from slangpy.core.native import NativeCallRuntimeOptions

pytestmark = pytest.mark.one

SOURCE = """
struct P {
    float x; int n;
    static float sq(float a) { return a * a; }
    [mutating] void go(float s) { x += s; }
    float get(float s) { return x + s; }
}
struct Pair<T> { T a; T b; }
struct Sized<int N, bool B> { float x[N]; }
interface IArea { float area(); }
enum Kind { small, large }
T generic<T : IFloat>(T x, int n = 3) { return x; }
[Differentiable] float f(float a, no_diff float3 b, inout int c, out float2 d) { d = float2(0); return a; }
float over(float a) { return a; }
float over(int a) { return 1; }
void nothing() {}
float resources(Texture2D<float4> t, RWTexture2DArray<float2> u, StructuredBuffer<float3> s, RWByteAddressBuffer b,
                float q[3][4], float* p, P point) { return 0; }
float unsized(float a[]) { return a[0]; }
float rows<let C : int>(matrix<float, 3, C> m) { return C * 10 + m[0][0]; }
float whole(float3x4 m) { return m[0][0]; }
"""


@pytest.fixture
def m(device: spy.Device) -> spy.Module:
    return spy.Module.load_from_source(device, "compat_reflected", SOURCE)


def test_typed_functions(m: spy.Module) -> None:
    f = m.layout.find_function_by_name("f")
    assert isinstance(f, r.SlangFunction) and f.name == "f" and f.full_name == "f"
    assert f.return_type is m.layout.scalar_type(spy.TypeReflection.ScalarType.float32)
    assert f.have_return_value and f.differentiable and not f.mutating and not f.static
    assert f.this_type is None and not f.is_constructor and not f.is_overloaded and f.overloads == []
    assert isinstance(f.reflection, spy.FunctionReflection)
    nothing = m.layout.require_function_by_name("nothing")
    assert not nothing.have_return_value and not nothing.differentiable and len(nothing.parameters) == 0
    assert m.layout.find_function(f.reflection).name == "f"
    assert m.layout.find_function_by_name("nope") is None
    with pytest.raises(ValueError, match="Could not find function 'nope'"):
        m.layout.require_function_by_name("nope")


def test_parameters(m: spy.Module) -> None:
    a, b, c, d = m.layout.find_function_by_name("f").parameters
    assert [p.index for p in (a, b, c, d)] == [0, 1, 2, 3] and isinstance(a, r.SlangParameter)
    assert isinstance(a.type, r.ScalarType) and isinstance(b.type, r.VectorType)
    assert a.type == m.layout.scalar_type(spy.TypeReflection.ScalarType.float32)
    assert b.type is m.layout.vector_type(spy.TypeReflection.ScalarType.float32, 3)
    assert [p.io_type for p in (a, b, c, d)] == [r.IOType.inn, r.IOType.inn, r.IOType.inout, r.IOType.out]
    assert not a.no_diff and b.no_diff and a.differentiable and not b.differentiable and not c.differentiable
    assert a.derivative is a.type and b.derivative is None
    assert c.has_modifier(spy.ModifierID.inout) and not a.has_modifier(spy.ModifierID.nodiff)
    assert "inout" in c.modifiers and a.declaration == "float a" and c.declaration.endswith("inout int c")
    x, n = m.layout.find_function_by_name("generic").parameters
    assert n.has_default and not x.has_default
    with pytest.raises(ValueError, match="has_modifier"):
        c.has_modifier("nonsense")


def test_methods_and_fields(m: spy.Module) -> None:
    p = m.layout.find_type_by_name("P")
    sq = m.layout.find_function_by_name_in_type(p, "sq")
    go = m.layout.require_function_by_name_in_type(p, "go")
    assert sq.static and not sq.mutating and go.mutating and not go.static and go.this_type is p
    assert m.layout.find_function_by_name_in_type(p, "nope") is None
    with pytest.raises(ValueError, match="'nope' in type 'P'"):
        m.layout.require_function_by_name_in_type(p, "nope")
    field = p.fields["x"]
    assert isinstance(field, r.SlangField) and field.name == "x" and field.differentiable
    assert field.type is m.layout.find_type_by_name("float") and field.io_type is r.IOType.inn


def test_overloads_and_specialisation(m: spy.Module) -> None:
    layout = m.layout
    over = layout.find_function_by_name("over")
    number, whole = layout.find_type_by_name("float"), layout.find_type_by_name("int")
    assert over.is_overloaded and len(over.overloads) == 2 and len(over.parameters) == 0
    assert over.specialize_with_arg_types([whole]).parameters[0].type is whole
    assert over.specialize_with_arg_types([number]).parameters[0].type is number
    generic = layout.find_function_by_name("generic")
    made = generic.specialize_with_arg_types([number, whole])
    assert isinstance(made, r.SlangFunction) and made.full_name == "generic<float>" and made.return_type is number
    assert generic.full_name == "generic"
    assert generic.specialize_with_arg_types([m.P, whole]) is None
    assert generic.specialize_with_arg_types([number.type_reflection, "int"]).full_name == "generic<float>"
    with pytest.raises(TypeError, match="specialize_with_arg_types"):
        generic.specialize_with_arg_types([3.0])


def test_resource_types(m: spy.Module) -> None:
    t, u, s, b, q, p, point = (item.type for item in m.layout.find_function_by_name("resources").parameters)
    access = spy.TypeReflection.ResourceAccess
    assert (
        isinstance(t, r.TextureType)
        and t.resource_access == access.read
        and t.usage == spy.TextureUsage.shader_resource
    )
    assert t.resource_shape == spy.TypeReflection.ResourceShape.texture_2d and t.texture_dims == 2 and t.num_dims == 3
    assert u.texture_dims == 3 and u.num_dims == 4 and u.usage == spy.TextureUsage.unordered_access
    assert t.element_type is m.layout.find_type_by_name("float4")
    assert isinstance(s, r.StructuredBufferType) and s.resource_access == access.read
    assert s.element_type is m.layout.find_type_by_name("float3")
    assert isinstance(b, r.ByteAddressBufferType) and b.resource_access == access.read_write
    assert b.element_type is m.layout.find_type_by_name("uint8_t")
    assert q.array_shape == (3, 4) and isinstance(q.array_shape, spy.Shape) and q.num_elements == 3
    assert isinstance(p, r.PointerType) and p.target_type is m.layout.find_type_by_name("float")
    assert point is m.layout.find_type_by_name("P") and point.program is m.layout
    assert isinstance(m.layout.find_type_by_name("IArea"), r.InterfaceType)


def test_unsized_arrays(m: spy.Module) -> None:
    type_ = m.layout.find_function_by_name("unsized").parameters[0].type
    assert isinstance(type_, r.ArrayType) and type_.num_elements == 0 and type_.full_name == "float[]"


def test_structs_answer_for_their_types(m: spy.Module) -> None:
    assert m["float3"].num_elements == 3 and m["float2x3"].cols == 3 and m["float[5]"].array_shape == (5,)
    assert m["float3"].slang_scalar_type == spy.TypeReflection.ScalarType.float32
    assert m.P.program is m.layout and m.P.kind == "struct"
    with pytest.raises(AttributeError, match="Struct 'P' has no method or sub-type named 'nope'"):
        m.P.nope


@pytest.mark.parametrize(
    ("name", "scalar"),
    [("float", "float32"), ("int16_t", "int16"), ("bool", "bool"), ("half3", "float16"), ("double2x2", "float64"),
     ("uint64_t", "uint64"), ("Ptr<float>", "uint64")],
)  # fmt: skip
def test_scalar_types(m: spy.Module, name: str, scalar: str) -> None:
    found = m.layout.find_type_by_name(name).slang_scalar_type
    assert found == spy.TypeReflection.ScalarType[scalar]


def test_generic_arguments(m: spy.Module) -> None:
    layout = m.layout
    number = layout.find_type_by_name("float")
    arguments = layout.get_resolved_generic_args(layout.find_type_by_name("vector<float,3>"))
    assert arguments == [number, 3] and arguments[0] is number
    assert layout.get_resolved_generic_args(layout.find_type_by_name("Sized<4, true>")) == [4, 1]
    nested = layout.get_resolved_generic_args(layout.find_type_by_name("Pair<Pair<int> >"))
    assert [t.full_name for t in nested] == ["Pair<int>"]
    assert layout.get_resolved_generic_args(number) is None and layout.get_resolved_generic_args(m.P) is None


def test_bfloat16(m: spy.Module) -> None:
    scalar = spy.TypeReflection.ScalarType.bfloat16
    assert m.layout.scalar_type(scalar).full_name == "BFloat16"
    assert m.layout.vector_type(scalar, 2).full_name == "vector<BFloat16,2>"


def test_shapes_are_shapes(m: spy.Module) -> None:
    for name, sizes in (("float", ()), ("float3", (3,)), ("float2x3", (2, 3)), ("float3[4]", (4, 3))):
        shape = m.layout.find_type_by_name(name).shape
        assert isinstance(shape, spy.Shape) and shape == sizes and shape == list(sizes)
        assert shape.as_tuple() == sizes and shape.as_list() == list(sizes)
    assert isinstance(m["float3"].shape, spy.Shape)


def test_debug_bindings(m: spy.Module, device: spy.Device) -> None:
    values = spy.Tensor.from_numpy(device, np.zeros((2, 3), np.float32))
    call_data = m.over.debug_build_call_data(values)
    binding = call_data.debug_only_bindings.args[0]
    assert isinstance(binding.vector_mapping, spy.Shape) and binding.vector_mapping == (0, 1)
    result = call_data.debug_only_bindings.kwargs["_result"]
    assert result.vector_type.full_name == "float" and result.vector_mapping == (0, 1)
    assert result.call_dimensionality == 2 and result.access.name == "write"
    assert "_result" not in m.nothing.debug_build_call_data().debug_only_bindings.kwargs


def test_runtime_options_can_be_made() -> None:
    options = NativeCallRuntimeOptions()
    assert options.uniforms == [] and options.this is None and options.cuda_stream is None


def test_cursors_give_the_compilers_types(m: spy.Module, device: spy.Device) -> None:
    layout = m.layout.native.get_type_layout(m.layout.native.find_type_by_name("StructuredBuffer<float3>"))
    cursors = [spy.BufferCursor(device.info.type, layout.element_type_layout, 2)]
    tensor = spy.Tensor.empty(device, (2,), dtype=m["float3"])
    cursors.append(tensor.cursor())
    for cursor in cursors:
        assert isinstance(cursor.element_type, spy.TypeReflection)
        assert isinstance(cursor.element_type_layout, spy.TypeLayoutReflection)
        assert (cursor.element_type.row_count, cursor.element_type.col_count) == (1, 3)
        assert cursor.element_type.full_name == "vector<float,3>"
    points = spy.Tensor.empty(device, (2,), dtype=m.P).cursor()
    assert points.element_type.kind == spy.TypeReflection.Kind.struct and points.element_type.name == "P"


def test_columns_of_a_matrix_are_found(m: spy.Module, device: spy.Device) -> None:
    values = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    tensor = spy.Tensor.empty(device, (2,), dtype="float3x4")
    tensor.copy_from_numpy(values)
    got: Any = m.rows(tensor)
    one = m.rows(spy.float3x4(np.arange(12, dtype=np.float32).reshape(3, 4) + 5))
    if device.info.type is not spy.DeviceType.null:
        assert got.to_numpy().tolist() == [40.0, 52.0]
        assert one == 45.0
