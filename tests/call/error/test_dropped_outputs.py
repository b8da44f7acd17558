"""Plain values are legal where a function writes; that nothing receives what it writes is said, once."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from calls_support import array, source, tensor

import slangpy as spy

pytestmark = pytest.mark.needs_kernels

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
    "inout": lambda m, d: m.grow(2.0, 3.0),
    "backward": lambda m, d: m.twice.bwds(spy.diffPair(1.0), 2.0),
    "transforms": lambda m, d: (spy.jvp(m.twice, (1.0, 2.0), (1.0, None)), spy.vjp(m.twice, (1.0, 2.0), 1.0)),
}


@pytest.mark.parametrize("name", RECEIVING)
def test_what_can_be_written_is_silent(m: Any, device: Any, name: str) -> None:
    assert [text for text in heard(lambda: RECEIVING[name](m, device)) if "is an output" in text] == []
