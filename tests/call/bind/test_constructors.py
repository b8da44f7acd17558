"""Constructors that are generic, and those of types that are no structs. What is expected is what Slang itself makes of the
same expression, and NumPy of the same numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from calls_support import plain, source

import slangpy as spy
from slangpy.errors import BoundVariableException, ResolveException

pytestmark = [pytest.mark.needs_kernels, pytest.mark.one]

SOURCE = """
import slangpy;
interface IThing { int worth(); static int rate(); }
struct Coin : IThing { int x; int worth() { return x; } static int rate() { return 9; } }
enum Kind : int { small = 1, large = 7 }
struct Sized { float a; __init<let N : int>(vector<float, N> v) { a = N; } }
struct Counted { float a; __init(float x) { a = x; } __init<T : __BuiltinIntegerType>(T x) { a = 100; } }
struct Doubled { float a; __init<T : IFloat>(T x) { a = x.toFloat() * 2; } }
struct Same { float a; __init<T : IFloat>(T x) { a = 7; } __init(float x) { a = x; } }
struct Many
{
    int b;
    __init<T, let N : int>(T a[N]) { b = N; }
    __init<T : IThing>(T t) { b = t.worth(); }
    __init<let R : int, let C : int>(matrix<float, R, C> m) { b = R * 10 + C; }
    __init<T : __BuiltinFloatingPointType>(Tensor<T, 1> t) { b = int(t.shape[0]) + 500; }
}
struct Box<T : IThing>
{
    T t;
    int go<U : IInteger>(U u) { return t.worth() + u.toInt(); }
    static int stay<U : __BuiltinIntegerType>(U u) { return T.rate(); }
}
struct Point
{
    int n;
    static int wide(float2 v) { return 2; }
    static int wide(float3 v) { return 3; }
    int own(int x) { return n + x; }
    int own(float x) { return n * 2; }
}
"""


@pytest.fixture
def m(device: spy.Device) -> Any:
    return source(device, "constructors", SOURCE)


def slangs_own(device: spy.Device, expression: str) -> Any:
    number = sum(map(ord, expression))
    return source(device, f"constructors_{number}", f"{SOURCE}float made() {{ return {expression}; }}").made()


@pytest.mark.parametrize(
    ("expression", "name", "value"),
    [
        ("Sized(float3(1)).a", "Sized", spy.float3(1)),
        ("Sized(float2(1)).a", "Sized", [1.0, 2.0]),
        ("Counted(2).a", "Counted", 2),
        ("Counted(2.5).a", "Counted", 2.5),
        ("Doubled(1.5h).a", "Doubled", np.float16(1.5)),
        ("Same(2.0).a", "Same", 2.0),
        ("Same(2.0h).a", "Same", np.float16(2)),
    ],
)
def test_a_generic_constructor_is_the_one_that_slang_takes(
    m: Any, device: spy.Device, expression: str, name: str, value: Any
) -> None:
    assert m[name](value) == {"a": slangs_own(device, expression)}


def test_generic_constructors_by_kind_of_argument(m: Any, device: spy.Device) -> None:
    values = [{"_type": "Coin", "x": 4}, [1.0, 2.0, 3.0], spy.float2x3(), spy.Tensor.zeros(device, (5,), "float")]
    assert [m.Many(value)["b"] for value in values] == [4, 3, 23, 505]
    assert plain(m.Counted(np.arange(3, dtype=np.int32), _result="numpy")["a"]) == [100, 100, 100]
    with pytest.raises(ResolveException, match=r"__init<T : IThing>\(T t\)"):
        m.Many({"_type": "Point", "n": 1})


def test_generic_methods_of_generic_structs(m: Any) -> None:
    coin = {"t": {"x": 5}}
    assert m["Box<Coin>"].go(coin, 2) == 7
    assert plain(m["Box<Coin>"].go({"t": {"x": np.int32([1, 2])}}, np.int32([10, 20]), _result="numpy")) == [11, 22]
    assert m["Box<Coin>"].stay(2) == 9
    with pytest.raises(ResolveException, match=r"module\['Box<Coin>'\]\['stay<"):
        m["Box<Coin>"].stay(2.5)


def test_static_overloads_are_called_on_instances(m: Any) -> None:
    point = spy.InstanceList(m.Point, {"n": 3})
    assert (point.wide(spy.float3()), point.wide(spy.float2()), point.own(1), point.own(1.0)) == (3, 2, 4, 6)


def test_numbers_vectors_matrices_and_enums_are_constructed(m: Any) -> None:
    assert [m.float3(), m.float3(5), m.float3(1, 2, 3), m.float3(x=1, z=3, y=2)] == [
        spy.float3(0), spy.float3(5), spy.float3(1, 2, 3), spy.float3(1, 2, 3),
    ]  # fmt: skip
    assert (m["int"](), m.double(0.1), m["uint8_t"](255), m["bool"](True)) == (0, 0.1, 255, True)
    assert (m.Kind(), m.Kind(7)) == (0, 7)
    assert plain(m["float2x3"]()) == [[0, 0, 0], [0, 0, 0]]
    assert plain(m["float2x3"](spy.float3(1), [1, 2, 3])) == [[1, 1, 1], [1, 2, 3]]
    rows = m.float3(np.float32([1, 2]), 2, 3, _result="numpy")
    assert plain(rows) == [[1, 2, 3], [2, 2, 3]]
    with pytest.raises(OverflowError, match="out of range for uint8_t"):
        m["uint8_t"](256)


@pytest.mark.parametrize(
    "name", ["IThing", "float[3]", "Ptr<float>", "Texture2D<float4>", "SamplerState", "void", "vector<float,9>", "vector<float,0>"]
)
def test_types_without_constructors_say_so(m: Any, name: str) -> None:
    with pytest.raises(ResolveException, match="has no constructor"):
        m[name]()


def test_generic_types_without_arguments_are_refused(m: Any, device: spy.Device) -> None:
    m = source(device, "constructors_open", "struct G<T> { T t; float2 q; };\nT of<T>(G<T> g) { return g.t; }")
    for wanted in ("G", m.G):
        for call in (m.of, lambda value: m.of([value]), lambda value: spy.pack(m, value)):
            with pytest.raises(BoundVariableException, match=r"_type 'G' is generic: .* G<float>"):
                call({"_type": wanted, "t": 1})
    for dtype in (m.G, "G"):
        with pytest.raises(ValueError, match=r"dtype: 'G' is generic"):
            spy.Tensor.zeros(device, (2,), dtype, program_layout=m.layout)
    assert m.of({"_type": "G<int>", "t": 3}) == 3
