"""Types, functions, declarations and attributes as Slang reflects them."""

from __future__ import annotations

from typing import Any

import pytest

from slangpy import _slang
from slangpy._slang import ModifierID

SOURCE = """
[__AttributeUsage(_AttributeTargets.Struct)] struct TagAttribute { int number; float weight; string text; };
[__AttributeUsage(_AttributeTargets.Function)] struct MarkAttribute { int number; };
[Tag(3, 2.5, "hello")] struct Tagged { float x; }
struct Foo { float x; float3 v; __init(float a) { x = a; v = 0; } __init(float a, float b) { x = a; v = b; }
  float scale(float y) { return x * y; } [mutating] void set(float y) { x = y; }
  static float half_of(float y) { return y / 2; } }
struct Plain { float x; int n[2]; }
struct Diff : IDifferentiable { float x; no_diff int n; }
struct Gen<T, let N : int> { T a[N]; }
struct Sized<let N : int> { float a[N]; }
struct Outer { struct Inner { int a; }; Inner i; }
namespace ns { float f(float a) { return a; } struct Deep { int q; }; }
typealias Color = float3;
enum Mode : uint8_t { off, on }
interface IShape { float area(); }
struct Square : IShape { float s; float area() { return s * s; } }
extension float : IShape { float area() { return this; } }
[Mark(7)] int over(int a) { return a; }
float over(float a) { return a; }
T add<T : IArithmetic>(T a, T b) { return a + b; }
T first<T, let N : int>(T a[N]) { return a[0]; }
float four<let N : int>(float x) { return x * N; }
float open(float a[], vector<float, 3> b[4]) { return 1; }
float area(IShape s) { return s.area(); }
[Differentiable] void many(float a, no_diff float b, out float c, inout float d, float e = 5.0, int g = 3)
{ c = a; d = b; }
[shader("compute")] [numthreads(1, 1, 1)] void run() {}
static const int K = 4;
"""


@pytest.fixture(scope="module")
def module() -> Any:
    return _slang.SlangSession("cpp").load_module_from_source("reflection", SOURCE)


@pytest.fixture(scope="module")
def layout(module: Any) -> Any:
    return module.layout


@pytest.mark.parametrize(
    ("name", "full_name", "kind"),
    [
        ("float", "float", "scalar"),
        ("int32_t", "int", "scalar"),
        ("uint", "uint", "scalar"),
        ("int8_t", "int8_t", "scalar"),
        ("uint64_t", "uint64_t", "scalar"),
        ("half", "half", "scalar"),
        ("double", "double", "scalar"),
        ("bool", "bool", "scalar"),
        ("float3", "vector<float,3>", "vector"),
        ("uint2", "vector<uint,2>", "vector"),
        ("vector<float, 3>", "vector<float,3>", "vector"),
        ("float3x4", "matrix<float,3,4>", "matrix"),
        ("float[4]", "float[4]", "array"),
        ("float[3][2]", "float[3][2]", "array"),
        ("float2[4]", "vector<float,2>[4]", "array"),
        ("Color", "vector<float,3>", "vector"),
        ("Outer::Inner", "Outer.Inner", "struct"),
        ("ns::Deep", "ns.Deep", "struct"),
        ("Gen<float,3>", "Gen<float, 3>", "struct"),
        ("Gen<Gen<int, 2>, K>", "Gen<Gen<int, 2>, 4>", "struct"),
        ("float*", "Ptr<float>", "pointer"),
        ("Ptr<Foo>", "Ptr<Foo>", "pointer"),
        ("StructuredBuffer<float>", "StructuredBuffer<float>", "resource"),
        ("Texture2D<float4>", "Texture2D<vector<float,4>>", "resource"),
        ("SamplerState", "SamplerState", "sampler_state"),
        ("Mode", "Mode", "enum"),
        ("IShape", "IShape", "interface"),
    ],
)
def test_names_of_types(layout: Any, name: str, full_name: str, kind: str) -> None:
    found = layout.find_type_by_name(name)
    assert (found.full_name, found.kind.name) == (full_name, kind)
    if kind != "pointer":
        assert layout.find_type_by_name(found.full_name) == found


@pytest.mark.parametrize(
    "name",
    ["nope", "K", "run", "", "Gen<", "Gen<float,3,4>", "Gen<Foo,gv>", "float float", "float,int", "float(1)",
     "typeof(1)", "over(1)", "ns", "Foo.zz", "struct Q {}", "1", "*", "::", "operator+", "vector<Foo,3>"],
)  # fmt: skip
def test_what_is_no_type(layout: Any, name: str) -> None:
    found = layout.find_type_by_name(name)
    assert found is None or found.full_name  # never a crash


def test_shapes(layout: Any) -> None:
    find = layout.find_type_by_name
    matrix = find("float2x3")
    assert (matrix.row_count, matrix.col_count, matrix.scalar_type.name) == (2, 3, "float32")
    array = find("float[3][2]")
    assert array.element_count == 2 and array.element_type.full_name == "float[3]"
    assert array.unwrap_array() is find("float")
    assert find("float*").element_type.full_name == "float"
    texture = find("RWTexture2DArray<float2>")
    assert texture.resource_shape.name == "texture_2d_array" and texture.resource_access.name == "read_write"
    assert texture.resource_result_type.full_name == "vector<float,2>"
    assert find("Sampler2D<float4>").is_combined_texture_sampler and not texture.is_combined_texture_sampler
    assert find("Mode").scalar_type.name == "uint8"
    unsized, sized = layout.find_function_by_name("open").parameters
    assert unsized.type.full_name == "float[]" and unsized.type.element_count == -1 and sized.type.element_count == 4
    generic = layout.find_function_by_name("first").parameters[0].type
    assert generic.full_name == "T[N]" and generic.element_count == -1


def test_fields(layout: Any) -> None:
    fields = layout.find_type_by_name("Plain").fields
    assert [(item.name, item.type.full_name) for item in fields] == [("x", "float"), ("n", "int[2]")]
    assert layout.find_type_by_name("Gen<float,3>").fields[0].type.full_name == "float[3]"
    assert layout.find_type_by_name("Diff").fields[1].has_modifier(ModifierID.nodiff)
    assert layout.find_type_by_name("float").fields == []


def test_one_declaration_is_one_object(layout: Any) -> None:
    foo = layout.find_type_by_name("Foo")
    assert layout.find_type_by_name("Foo") is foo and foo == layout.find_type_by_name(" Foo")
    add = layout.find_function_by_name("add")
    assert layout.find_function_by_name("add") is add
    number = layout.find_type_by_name("float")
    assert add.specialize_with_arg_types([number] * 2) is add.specialize_with_arg_types([number] * 2)
    assert len({foo, layout.find_type_by_name("Foo")}) == 1


@pytest.mark.parametrize(
    ("name", "derivative"),
    [("float", "float"), ("half", "half"), ("float3", "vector<float,3>"), ("float2x2", "matrix<float,2,2>"),
     ("float[4]", "float[4]"), ("Diff", "Diff.Differential"), ("int", None), ("int3", None), ("Foo", None),
     ("bool", None), ("Texture2D", None), ("float*", None)],
)  # fmt: skip
def test_derivatives(layout: Any, name: str, derivative: str | None) -> None:
    found = layout.find_type_by_name(name)
    assert found.differentiable == (derivative is not None)
    assert (found.derivative and found.derivative.full_name) == derivative


@pytest.mark.parametrize(
    ("name", "interface", "expected"),
    [("Square", "IShape", True), ("Foo", "IShape", False), ("float", "IShape", True), ("int", "IShape", False),
     ("float", "IFloat", True), ("int", "IFloat", False), ("float3", "IFloat", True),
     ("float[4]", "IDifferentiable", True),
     ("Diff", "IDifferentiable", True), ("int", "IDifferentiable", False), ("float*", "IShape", False)],
)  # fmt: skip
def test_sub_types(layout: Any, name: str, interface: str, expected: bool) -> None:
    assert layout.is_sub_type(layout.find_type_by_name(name), layout.find_type_by_name(interface)) is expected


def test_generic_types(layout: Any) -> None:
    bare, instance = layout.find_type_by_name("Gen"), layout.find_type_by_name("Gen<float,3>")
    assert bare.is_generic and not instance.is_generic and not layout.find_type_by_name("Foo").is_generic
    assert layout.find_type_by_name("Sized").is_generic and not layout.find_type_by_name("Sized<3>").is_generic
    assert not layout.find_type_by_name("float[4]").is_generic
    generic = instance.generic
    assert (generic.type_parameters, generic.value_parameters) == (["T"], ["N"])
    assert generic.concrete_type("T").full_name == "float" and generic.concrete_value("N") == 3
    with pytest.raises(KeyError, match="no type parameter"):
        generic.concrete_type("U")
    with pytest.raises(ValueError):
        layout.element_layout(bare)


def test_constructors(layout: Any) -> None:
    def signatures(name: str) -> list[list[str]]:
        found = layout.find_type_by_name(name)
        return [[found.substitute(p.type).full_name for p in item.parameters] for item in found.constructors]

    assert signatures("Foo") == [["float"], ["float", "float"]]
    assert signatures("Plain") == [["float", "int[2]"]]
    assert signatures("ns::Deep") == [["int"]]
    assert signatures("Gen<float,3>") == [["float[3]"]]
    assert signatures("float3") == []


def test_functions(layout: Any) -> None:
    many = layout.find_function_by_name("many")
    flags = [{m.name for m in ModifierID if p.has_modifier(m)} for p in many.parameters]
    assert flags[:5] == [set(), {"nodiff"}, {"out"}, {"out", "inout"}, set()]
    assert [p.has_default for p in many.parameters] == [False] * 4 + [True] * 2
    assert many.parameters[4].default_float == 5.0 and many.parameters[5].default_int == 3
    assert many.parameters[4].default_int is None and many.parameters[0].default_float is None
    assert many.has_modifier(ModifierID.differentiable) and many.return_type.full_name == "void"
    assert not many.is_overloaded and many.overloads == []
    assert layout.find_function_by_name("ns::f").return_type.full_name == "float"
    assert layout.find_function_by_name("nope") is None and layout.find_function_by_name("Foo") is None


def test_overloads(layout: Any) -> None:
    over = layout.find_function_by_name("over")
    assert over.is_overloaded and over.parameters == [] and over.return_type is None
    assert {item.parameters[0].type.full_name for item in over.overloads} == {"int", "float"}
    chosen = over.specialize_with_arg_types([layout.find_type_by_name("float")])
    assert chosen.return_type.full_name == "float"
    assert over.specialize_with_arg_types([layout.find_type_by_name("Foo")]) is None


def test_generic_functions(layout: Any) -> None:
    find = layout.find_type_by_name
    add = layout.find_function_by_name("add")
    assert add.generic.type_parameters == ["T"]
    assert [item.full_name for item in add.generic.constraints("T")] == ["IArithmetic"]
    joined = add.specialize_with_arg_types([find("int"), find("float")])
    assert [p.type.full_name for p in joined.parameters] == ["float", "float"]
    assert add.specialize_with_arg_types([find("Foo"), find("Foo")]) is None
    assert add.specialize_with_arg_types([find("int")]) is None
    first = layout.find_function_by_name("first").specialize_with_arg_types([find("float[3]")])
    assert first.parameters[0].type.full_name == "float[3]" and first.generic.concrete_value("N") == 3
    explicit = layout.find_function_by_name("four<4>")
    assert explicit.name == "four" and explicit.generic.concrete_value("N") == 4
    assert layout.find_function_by_name("first<float,3>").parameters[0].type.full_name == "float[3]"
    assert layout.find_function_by_name("add<Foo>") is None
    shape = layout.find_function_by_name("area").specialize_with_arg_types([find("Square")])
    assert shape.parameters[0].type.full_name == "IShape"


def test_methods(layout: Any) -> None:
    foo = layout.find_type_by_name("Foo")
    find = layout.find_function_by_name_in_type
    assert [p.name for p in find(foo, "scale").parameters] == ["y"]
    assert find(foo, "set").has_modifier(ModifierID.mutating)
    assert find(foo, "half_of").has_modifier(ModifierID.static)
    assert find(foo, "nope") is None
    assert find(layout.find_type_by_name("IShape"), "area").return_type.full_name == "float"


def test_types_of_another_session_are_refused(layout: Any) -> None:
    other = _slang.SlangSession("cpp").load_module_from_source("o", "int x;").layout.find_type_by_name("float")
    with pytest.raises(ValueError, match="another session"):
        layout.find_function_by_name("add").specialize_with_arg_types([other, other])
    for look_up in (
        lambda: layout.find_function_by_name_in_type(other, "f"),
        lambda: layout.get_type_layout(other),
        lambda: layout.is_sub_type(other, layout.find_type_by_name("IShape")),
        lambda: layout.is_sub_type(layout.find_type_by_name("Square"), other),
    ):
        with pytest.raises(ValueError, match="another session"):
            look_up()
    with pytest.raises(TypeError, match="None"):
        layout.find_function_by_name("add").specialize_with_arg_types([None])


def test_user_attributes(layout: Any) -> None:
    tagged = layout.find_type_by_name("Tagged")
    tag = tagged.find_user_attribute_by_name("Tag")
    assert tagged.get_user_attribute_count() == 1 and tagged.get_user_attribute_by_index(0).name == "Tag"
    assert (tag.argument_count, tag.argument_value_int(0)) == (3, 3)
    assert (tag.argument_value_float(1), tag.argument_value_string(2)) == (2.5, "hello")
    assert tagged.find_user_attribute_by_name("Nope") is None
    with pytest.raises(IndexError):
        tag.argument_value_int(9)
    marks = [item.find_user_attribute_by_name("Mark") for item in layout.find_function_by_name("over").overloads]
    assert [mark.argument_value_int(0) for mark in marks if mark] == [7]


def test_declarations(module: Any) -> None:
    decl = module.module_decl
    kind = _slang.DeclReflection.Kind
    assert decl.kind == kind.module and len(decl) == decl.child_count and decl[0] is decl.children[0]
    assert {"Foo", "Plain"} <= {item.name for item in decl.children_of_kind(kind.struct)}
    assert len(decl.find_children_of_kind(kind.func, "over")) == 2
    foo = decl.find_first_child_of_kind(kind.struct, "Foo")
    assert foo.as_type() is module.layout.find_type_by_name("Foo") and foo.parent == decl
    assert foo.find_first_child_of_kind(kind.variable, "x").as_variable().type.full_name == "float"
    assert foo.find_first_child_of_kind(kind.func, "scale").as_function().name == "scale"
    assert decl.find_first_child_of_kind(kind.func, "nope") is None
    assert foo.location[0] == "reflection" and foo.location[1] == 5
    with pytest.raises(IndexError):
        decl[10000]
