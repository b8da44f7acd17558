"""Structs with bools among their generic arguments: as parameter, element and result, and inside of other generics."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from calls_support import array, plain, source

import slangpy as spy

pytestmark = [
    pytest.mark.needs_kernels,
    pytest.mark.elsewhere(
        "test_parameters", "True",
    ),
]  # fmt: skip

SOURCE = """
import slangpy;
struct Sign<let W : bool> { float a; float get() { return W ? a : -a; } }
struct Mixed<T : IFloat, let N : int, let W : bool, U> { T x; U y[N]; T get() { if (W) return x; return T(0); } }
struct Holder<T> { T value; int n; }
float positive(Sign<true> s) { return s.get(); }
float negative(Sign<false> s) { return s.get(); }
float any_sign<let W : bool>(Sign<W> s) { return s.get(); }
Sign<true> make(float a) { return { a }; }
Sign<false> made(float a) { return { a }; }
float mixed(Mixed<float, 1, true, Sign<false>> m) { return m.get() + m.y[0].get(); }
float held(Holder<Sign<false>> h) { return h.value.get() * h.n; }
float first(Tensor<Sign<false>, 1> t) { return t[0].get(); }
float pair(Sign<false> s[2]) { return s[0].get() + s[1].get(); }
"""


@pytest.fixture
def m(device: Any) -> Any:
    return source(device, "bool_generics", SOURCE)


def test_names(m: Any) -> None:
    assert m["Sign<true>"].full_name == "Sign<true>" and m["Sign<false>"].full_name == "Sign<false>"
    name = "Mixed<float, 1, true, Sign<false>>"
    assert m[name].full_name == name and m[name].fields["y"].type.full_name == "Sign<false>[1]"
    assert m.layout.get_resolved_generic_args(m[name].struct)[1:3] == [1, 1]
    assert m["Sign<1>"].full_name.startswith("Sign<")  # as the compiler reads it


def test_parameters(m: Any) -> None:
    assert m.positive({"a": 2.0}) == 2 and m.negative({"a": 2.0}) == -2
    assert m.negative({"a": 2.0, "_type": "Sign<false>"}) == -2
    assert m.any_sign({"a": 2.0, "_type": "Sign<false>"}) == -2 and m.any_sign({"a": 2.0, "_type": m["Sign<true>"]}) == 2
    assert plain(m.negative({"a": array(3)})) == [0, -1, -2]
    assert plain(m.negative([{"a": 1.0}, {"a": 2.0}])) == [-1, -2] and m.pair([{"a": 1.0}, {"a": 2.0}]) == -3
    assert m.mixed({"x": 1.0, "y": [{"a": 5.0}]}) == -4 and m.held({"value": {"a": 3.0}, "n": 2}) == -6
    assert m["Sign<false>"].get({"a": 3.0}) == -3


@pytest.mark.parametrize("sign", [True, False])
def test_elements_and_results(m: Any, device: spy.Device, sign: bool) -> None:
    make, read, name = (m.make, m.positive, "Sign<true>") if sign else (m.made, m.negative, "Sign<false>")
    assert make(3.0) == {"a": 3}
    made = make(array(3))
    assert made.dtype.full_name == name and plain(read(made)) == [0, 1, 2] if sign else plain(read(made)) == [0, -1, -2]
    empty = spy.Tensor.zeros(device, (2,), m[name])
    make(np.array([4.0, 5.0], np.float32), _result=empty)
    assert empty.cursor()[1].read() == {"a": 5}
    assert make(array(2), _result="numpy")["a"].tolist() == [0, 1]
    if not sign:
        assert m.first(empty) == -4


def test_names_of_dtypes(m: Any, device: spy.Device) -> None:
    """The declared name, whether the compiler has been asked or not."""
    results = source(device, "dtype_names", "float3 v(float x) { return x; } half2x2 h(float x) { return half2x2(half(x)); }")
    for made, name in (
        (results.v(array(2)), "vector"), (spy.Tensor.empty(device, (2,), "float3"), "vector"), (results.h(array(2)), "matrix"),
        (spy.Tensor.empty(device, (2,), "half2x2"), "matrix"), (spy.Tensor.empty(device, (2,), "float"), "float"),
        (m.made(array(2)), "Sign"), (spy.Tensor.empty(device, (2,), "float[4]"), "Array"),
    ):  # fmt: skip
        assert made.dtype.name == name
        assert made.dtype.type_reflection.name == name and made.dtype.name == name
