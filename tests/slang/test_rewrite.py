"""The text changes made before Slang sees a source or a name."""

from __future__ import annotations

import pytest

from slangpy._slang import rewrite_constraints, sanitize_name


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("void f<T : ITensor<float, 1>>(T t)", "void f<T : iTensor<float, 1>>(T t)"),
        ("struct A : IRWTensor<float, 2> {}", "struct A : iRWTensor<float, 2> {}"),
        ("struct A : IFoo, IDiffTensor<T, D>, IWTensor<T, D>", "struct A : IFoo, iDiffTensor<T, D>, iWTensor<T, D>"),
        ("f<T : IFoo & IWDiffTensor<T, 1>>", "f<T : IFoo & iWDiffTensor<T, 1>>"),
        ("T f<T>(T t) where T : IRWDiffTensor<float, 1>", "T f<T>(T t) where T : iRWDiffTensor<float, 1>"),
        ("f<T : /* : */ ITensor<float, 1>>", "f<T : /* : */ iTensor<float, 1>>"),
        ("associatedtype D : ITensor<float, 1>;", "associatedtype D : iTensor<float, 1>;"),
        ("f<T : G<ITensor<float, 1>>, U : ITensor<float, 1>>", "f<T : G<ITensor<float, 1>>, U : iTensor<float, 1>>"),
    ],
)
def test_constraints_are_renamed(source: str, expected: str) -> None:
    assert rewrite_constraints(source) == expected


@pytest.mark.parametrize(
    "source",
    [
        "void f(ITensor<float, 1> t, IRWTensor<float, 1> u)",
        "void main(uint3 tid : SV_DispatchThreadID, ITensor<float, 1> t)",
        "f<T : IFoo>(T a, ITensor<float, 1> b)",
        "case 0: ITensor<float, 1> a = b;",
        "default: ITensor<float, 1> a = b;",
        "x = c ? ITensor<float, 1>(a) : ITensor<float, 1>(b);",
        "// T : ITensor<float, 1>",
        "/* T : ITensor */ ITensor<float, 1> a;",
        'printf("T : ITensor");',
        "slangpy::ITensor<float, 1> a;",
        "if (a && ITensor<float, 1>.ok) {}",
        "struct S : IFoo { ITensor<float, 1> t; }",
        "f<T : IFoo, let D : int>(ITensor<float, D> t)",
        "T : ITensorLike, MyITensor, ITensors",
        "if (a < b && c > d) { ITensor<float, 1> t; }",
    ],
)
def test_everything_else_stays(source: str) -> None:
    assert rewrite_constraints(source) == source


def test_length_is_kept() -> None:
    source = "struct A : ITensor<float, 1>, IWTensor<float, 1>\n{\n  'unterminated\n /* also"
    assert len(rewrite_constraints(source)) == len(source)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("float*", "Ptr<float>"),
        ("Foo **", "Ptr<Ptr<Foo>>"),
        ("float*[3]", "Ptr<float>[3]"),
        ("Gen<float*, 3>", "Gen<Ptr<float>, 3>"),
        ("Gen<int, Foo<T>*>", "Gen<int, Ptr<Foo<T>>>"),
        ("float[2*3]", "float[2*3]"),
        (" float3 ", "float3"),
        ("ns::f<4>", "ns::f<4>"),
    ],
)
def test_names(name: str, expected: str) -> None:
    assert sanitize_name(name).replace(", ", ",") == expected.replace(", ", ",")


@pytest.mark.parametrize("name", ["", " ", "*", "Gen<", "Gen>", "float[", "f(1)", "float,int", "a;b", "(float)", "1+2"])
def test_names_slang_must_not_see(name: str) -> None:
    assert sanitize_name(name) == ""


BY_ADDRESS = "static void atomicAdd(RWByteAddressBuffer b, uint a, S v) { if (a > 0) { b.Store(a, 1); } /* } */ }"


def test_addition_by_address_gets_a_pointer_form() -> None:
    """The type of the parameter keeps its length; what is added stands behind the closing brace."""
    source = f"struct S {{ {BY_ADDRESS} }};\nint after;"
    got = rewrite_constraints(source)
    renamed = BY_ADDRESS.replace("RWByteAddressBuffer", "_spy_AtomicMemory__")
    assert got.startswith(f"struct S {{ {renamed} static void atomicAdd(This* _buf, uint _element, This _value) {{")
    assert got.endswith("} };\nint after;")


@pytest.mark.parametrize(
    "source",
    [
        "void atomicAdd(RWByteAddressBuffer b, uint a, S v) {}",
        "// static void atomicAdd(RWByteAddressBuffer b, uint a, S v) {}",
        "static void add(RWByteAddressBuffer b, uint a, S v) { atomicAdd(b, a); }",
    ],
)
def test_other_functions_keep_their_buffers(source: str) -> None:
    assert rewrite_constraints(source) == source


def test_structs_that_have_both_forms_get_no_third() -> None:
    both = f"struct S {{ static void atomicAdd(This* p, uint i, This v) {{}} {BY_ADDRESS} }};"
    assert rewrite_constraints(both) == both.replace("RWByteAddressBuffer", "_spy_AtomicMemory__")
