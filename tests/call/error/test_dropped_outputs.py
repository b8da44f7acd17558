"""Plain values are legal where a function writes; that nothing receives what it writes is said, once."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from calls_support import array, source, tensor

import slangpy as spy

pytestmark = [pytest.mark.needs_kernels, pytest.mark.one]

SOURCE = """
struct Pair { float x; float y; };
void split(float a, out float b) { b = 2 * a; }
void split3(float a, out float3 b) { b = 2 * a; }
void both(float a, out Pair p) { p.x = a; p.y = 2 * a; }
void fill(float a, out float b[2]) { b[0] = a; b[1] = a; }
void grow(inout float b, float a) { b = b * a; }
void counted(out int n, out float x) { n = 3; x = 4; }
[Differentiable] void twice(float a, out float b) { b = 2 * a; }
"""


@pytest.fixture
def m(device: Any) -> Any:
    return source(device, "dropped_outputs", SOURCE)


def heard(call: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(w.message) for w in caught if issubclass(w.category, RuntimeWarning)]


PLAIN = {
    "number": ("b", lambda m: m.split(1.0, 2.0), "the float passed for it cannot receive it"),
    "integer": ("b", lambda m: m.split(1.0, 7), "the int passed for it cannot receive it"),
    "vectorised": ("b", lambda m: m.split(array(3), np.float32(2)), "cannot receive it"),
    "by name": ("b", lambda m: m.split(b=True, a=1.0), "the bool passed for it cannot receive it"),
    "packed": ("b", lambda m: m.split(np.float16(1), spy.pack(m, 2.0)), "the PackedArg of float passed for it cannot receive it"),
    "list": ("b", lambda m: m.split(array(3), [1.0, 2.0, 3.0]), "the list [3] passed for it cannot receive it"),
    "vector": ("b", lambda m: m.split3(1.0, spy.float3(1)), "the float3 passed for it cannot receive it"),
    "array": ("b", lambda m: m.fill(1.0, [1.0, 2.0]), "the list [2] passed for it cannot receive it"),
    "dict": ("p", lambda m: m.both(1.0, {"x": 1.0, "y": 2.0}), "the dict{x, y} passed for it cannot receive it"),
    "empty dict": ("p", lambda m: m.both(1.0, {}), "the dict{} passed for it cannot receive it"),
    "list of dicts": ("p", lambda m: m.both(1.0, [{"x": 1.0, "y": 2.0}]), "cannot receive it"),
}


@pytest.mark.parametrize("name", PLAIN)
def test_plain_values(m: Any, name: str) -> None:
    parameter, call, text = PLAIN[name]
    (said,) = heard(lambda: call(m))
    assert f"::{call.__code__.co_names[0]}: {parameter} is an output" in said and text in said
    assert "slangpy.ValueRef" in said
    assert heard(lambda: call(m)) == [], "once is enough"


def test_each_output_is_named(m: Any) -> None:
    first, second = heard(lambda: m.counted(1, 2.0))
    assert ": n is an output" in first and ": x is an output" in second
    (only,) = heard(lambda: m.counted(spy.intRef(), 2.0))
    assert ": x is an output" in only


RECEIVING = {
    "reference": lambda m, d: m.split(1.0, spy.floatRef()),
    "pair": lambda m, d: m.split(1.0, spy.diffPair(1.0)),
    "tensor": lambda m, d: m.split(array(3), tensor(d, 3)),
    "numpy": lambda m, d: m.split(array(3), np.zeros(3, np.float32)),
    "scalar array": lambda m, d: m.split(1.0, np.zeros((), np.float32)),
    "one field": lambda m, d: m.both(1.0, {"x": spy.floatRef(), "y": 1.0}),
    "tensors in a list": lambda m, d: m.fill(1.0, [tensor(d, 1), tensor(d, 1)]),
    "inout": lambda m, d: m.grow(spy.floatRef(2.0), 3.0),
    "backward": lambda m, d: m.twice.bwds(spy.diffPair(1.0), 2.0),
    "transforms": lambda m, d: (spy.jvp(m.twice, (1.0, 2.0), (1.0, None)), spy.vjp(m.twice, (1.0, 2.0), 1.0)),
}


@pytest.mark.parametrize("name", RECEIVING)
def test_what_can_be_written_is_silent(m: Any, device: Any, name: str) -> None:
    assert [text for text in heard(lambda: RECEIVING[name](m, device)) if "is an output" in text] == []


FIELDS = """
struct Leaf { float a; float b; };
struct Tree { Leaf leaf; float3 v; float w; float sum() { return leaf.a + leaf.b + v.x + w; } };
float total(Tree t) { return t.sum(); }
float lists(Tree t[2]) { return t[0].sum() + t[1].sum(); }
void made(out Tree t, float a) { t = {}; t.w = a; }
"""
WHOLE = {"leaf": {"a": 1.0, "b": 2.0}, "v": spy.float3(3), "w": 4.0}
LACKING = {
    "field": (lambda m: m.total({"leaf": WHOLE["leaf"], "v": spy.float3(3)}), "t is a dict without w", 6),
    "fields": (lambda m: m.total({"leaf": WHOLE["leaf"]}), "t is a dict without v, w", 3),
    "nested": (lambda m: m.total({**WHOLE, "leaf": {"b": 2.0}}), "t.leaf is a dict without a", 9),
    "method": (lambda m: m.Tree.sum({"w": 4.0}), "this is a dict without leaf, v", 4),
    "all": (lambda m: m.total(WHOLE), "", 10),
    "none": (lambda m: m.total({}), "", 0),
    "inner none": (lambda m: m.total({**WHOLE, "leaf": {}}), "", 7),
}


@pytest.mark.parametrize("name", LACKING)
def test_fields_that_a_dict_lacks_are_said(device: Any, name: str) -> None:
    call, text, value = LACKING[name]
    m, got = source(device, "lacking_fields", FIELDS), []
    said = heard(lambda: got.append(call(m)))
    assert got == [value]
    assert [line for line in said if text and text in line and "zeros" in line] == said
    assert len(said) == (1 if text else 0) and heard(lambda: call(m)) == []  # once


def test_dicts_of_outputs_may_lack_fields(device: Any) -> None:
    m, w = source(device, "lacking_fields", FIELDS), array(1)
    assert heard(lambda: m.made({"w": w}, 5.0)) == [] and w.tolist() == [5]


def test_table_of_a_call_that_does_not_resolve_shows_what_parameters_take(device: Any) -> None:
    m = source(device, "what_is_taken", "float f(float3 v, int n) { return n; }  int g(int a); int g(float2 a, int b) { return b; }")
    with pytest.raises(spy.CallError) as caught:
        m.f(spy.int3(1), n=2)
    rows = [line.split("  ") for line in str(caught.value).splitlines() if line.startswith(("[0]", "n "))]
    assert rows[0][-1].strip() == "in vector<float,3> v" and rows[1][-1].strip() == "in int"
    with pytest.raises(spy.CallError) as caught:
        m.g("text")
    assert "in int a | in vector<float,2> a" in str(caught.value) or "in vector<float,2> a | in int a" in str(caught.value)
    with pytest.raises(spy.CallError) as caught:
        m.f(1, 2, 3, odd=4)
    assert str(caught.value).splitlines()[-1].split() == ["odd", "int"]
