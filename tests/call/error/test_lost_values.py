"""What would be lost in silence is said, once, or refused."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from calls_support import array, source, tensor

import slangpy as spy

pytestmark = [pytest.mark.needs_kernels, pytest.mark.one]

SOURCE = """
struct Plain { float a; float b; };
struct Outer : IDifferentiable { float a; Plain inner; };
struct State { int n; float x; };
float twice(float x) { return 2 * x; }
half narrow(half x) { return x; }
float length2(float3 v) { return dot(v, v); }
float sum2(float v[2]) { return v[0] + v[1]; }
[Differentiable] float product(Plain s, float k) { return s.a * s.b * k; }
[Differentiable] float nested(Outer s, float k) { return s.a * s.inner.b * k; }
void grow(inout float b, float a) { b = b * a; }
void step(inout State s) { s.n += 1; }
void fill(inout float b[2]) { b[0] = 1; }
struct Light { float power; float3 tint; };
ParameterBlock<Light> light;
uniform float gain;
uniform float unused;
float helper(float x) { return x * light.power; }
float lit(float x) { return helper(x) * gain; }
"""


@pytest.fixture
def m(device: Any) -> Any:
    return source(device, "lost_values", SOURCE)


def heard(call: Callable[[], Any]) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(w.message) for w in caught if issubclass(w.category, RuntimeWarning)]


# --- numbers beyond the range of a float

LARGE = {
    "float": (lambda m: m.twice(1e300), "x: a number is beyond the range of float and becomes infinite"),
    "negative": (lambda m: m.twice(-1e39), "x: a number is beyond the range of float"),
    "numpy": (lambda m: m.twice(np.float64(1e200)), "beyond the range of float"),
    "int": (lambda m: m.twice(10**40), "beyond the range of float"),
    "half": (lambda m: m.narrow(70000.0), "beyond the range of half"),
    "int as half": (lambda m: m.narrow(70000), "beyond the range of half"),
    "element": (lambda m: m.sum2([1.0, 1e300]), "beyond the range of float"),
    "field": (lambda m: m.product({"a": 1e300, "b": 0.0}, 0.0), "beyond the range of float"),
    "vector": (lambda m: m.length2(spy.float3(1e300)), "float3: a number is beyond the range of float"),
}


@pytest.mark.parametrize("name", LARGE)
def test_numbers_that_become_infinite(m: Any, name: str) -> None:
    call, text = LARGE[name]
    (said,) = heard(lambda: call(m))
    assert text in said


def test_numbers_that_fit_are_silent(m: Any) -> None:
    largest = float(np.finfo(np.float32).max)
    assert heard(lambda: [m.twice(x) for x in (float("inf"), float("nan"), largest, -largest, 2**100)]) == []
    assert heard(lambda: [m.narrow(x) for x in (65504, 65504.0, float("-inf"))]) == []
    got: list[Any] = []
    heard(lambda: got.append(m.twice(1e300)))
    assert got == [float("inf")]


def test_elements_of_tensors_that_become_infinite(device: Any) -> None:
    t = tensor(device, 3)
    with pytest.warns(RuntimeWarning, match="overflow"):
        t[1] = np.float64(1e300)
    assert t.to_numpy().tolist() == [0, np.inf, 2]


# --- masked arrays

MASKED = np.ma.MaskedArray(array(3), [False, True, False])
READS = {
    "call": lambda m, d, a: m.twice(a),
    "field": lambda m, d, a: m.product({"a": a, "b": 1.0}, 2.0),
    "list": lambda m, d, a: m.twice([a, a]),
    "output": lambda m, d, a: m.twice(1.0, _result=a),
    "from_numpy": lambda m, d, a: spy.Tensor.from_numpy(d, a),
    "copy_from_numpy": lambda m, d, a: tensor(d, 3).copy_from_numpy(a),
    "item": lambda m, d, a: tensor(d, 3).__setitem__(slice(None), a),
    "pack": lambda m, d, a: spy.pack(m, a),
    "bitmap": lambda m, d, a: spy.Bitmap(a.reshape(1, 3)),
}


@pytest.mark.parametrize("name", READS)
def test_masked_arrays_are_refused(m: Any, device: Any, name: str) -> None:
    with pytest.raises((ValueError, TypeError, RuntimeError), match=r"masked"):
        READS[name](m, device, MASKED)


def test_masked_arrays_without_masked_elements_are_arrays(m: Any, device: Any) -> None:
    plain = np.ma.MaskedArray(array(3))
    assert m.twice(plain, _result="numpy").tolist() == [0, 2, 4]
    assert spy.Tensor.from_numpy(device, plain).to_numpy().tolist() == [0, 1, 2]
    assert m.twice(MASKED.filled(5), _result="numpy").tolist() == [0, 10, 4]


# --- gradients


def grads(device: Any) -> spy.Tensor:
    return tensor(device, 3).with_grads()


LOST = {
    "tensor": (lambda m, d: m.product.bwds({"a": grads(d), "b": 2.0}, grads(d), _result=grads(d)), "s.a", "Plain"),
    "pair": (lambda m, d: m.product.bwds({"a": spy.diffPair(1.0), "b": 2.0}, grads(d), _result=grads(d)), "s.a", "Plain"),
    "nested": (lambda m, d: m.nested.bwds({"a": grads(d), "inner": {"a": 1.0, "b": grads(d)}}, 2.0, _result=grads(d)), "s.inner.b", "Plain"),
}


@pytest.mark.parametrize("name", LOST)
def test_structs_without_derivative_lose_gradients(m: Any, device: Any, name: str) -> None:
    call, path, struct = LOST[name]
    said = list({text for text in heard(lambda: call(m, device)) if "no gradient reaches" in text})  # the check of first runs says it again
    assert len(said) == 1 and f"no gradient reaches {path}," in said[0] and f"struct {struct} : IDifferentiable" in said[0]


def test_torch_tensors_in_structs_without_derivative(m: Any, device: Any) -> None:
    torch = pytest.importorskip("torch")
    place = device.torch_device if device.info.type is spy.DeviceType.cuda else "cpu"
    x, k = (torch.ones(3, device=place, requires_grad=True) for _ in range(2))

    def run() -> None:
        m.product({"a": x, "b": 2.0}, k).sum().backward()

    (said,) = heard(run)
    assert "lost_values::product: s.a requires grad, but no gradient reaches it" in said and "tensor.detach()" in said
    assert x.grad is None and k.grad.tolist() == [2, 2, 2]
    assert heard(run) == []
    assert heard(lambda: m.product({"a": x.detach(), "b": 3.0}, k)) == []
    other = source(device, "lost_values_meant", SOURCE.replace("product(Plain s", "product(no_diff Plain s"))
    assert heard(lambda: other.product({"a": x, "b": 2.0}, k)) == []


def test_a_result_that_is_a_leaf_of_torch(m: Any, device: Any) -> None:
    torch = pytest.importorskip("torch")
    place = device.torch_device if device.info.type is spy.DeviceType.cuda else "cpu"
    source_ = source(device, "lost_leaves", "[Differentiable] float cube(float x) { return x * x * x; }")
    x, leaf = torch.ones(3, device=place, requires_grad=True), torch.zeros(3, device=place, requires_grad=True)
    (said,) = heard(lambda: source_.cube(x, _result=leaf))
    assert "_result requires grad, but it is a leaf, which the call overwrites" in said
    assert not leaf.is_leaf
    assert heard(lambda: source_.cube(x, _result=torch.zeros(3, device=place))) == []
    (said,) = heard(lambda: source_.cube(1.0, _result=torch.zeros(3, device=place, requires_grad=True)))
    assert "is a leaf" in said


# --- inout parameters

DROPPED = {
    "number": (lambda m: m.grow(2.0, 3.0), "b is an inout parameter, and the float passed for it"),
    "dict": (lambda m: m.step({"n": 1, "x": 2.0}), "s is an inout parameter, and the dict{n, x} passed for it"),
    "list": (lambda m: m.fill([1.0, 2.0]), "b is an inout parameter, and the list [2] passed for it"),
}


@pytest.mark.parametrize("name", DROPPED)
def test_inout_values_that_cannot_be_written(m: Any, name: str) -> None:
    call, text = DROPPED[name]
    (said,) = heard(lambda: call(m))
    assert text in said and "dropped" in said
    assert heard(lambda: call(m)) == []


def test_inout_values_that_can(m: Any) -> None:
    reference = spy.floatRef(2.0)
    assert heard(lambda: m.grow(reference, 3.0)) == [] and reference.value == 6
    assert heard(lambda: m.step({"n": spy.intRef(1), "x": 2.0})) == []


# --- globals


def test_globals_that_were_never_set(m: Any) -> None:
    zeros = "never set: the function reads zeros there"
    (said,) = heard(lambda: m.lit(1.0))
    assert f"lost_values::lit: light, gain were {zeros}" in said
    (said,) = heard(lambda: m.lit.set(gain=2.0)(1))
    assert f": light was {zeros}" in said
    (said,) = heard(lambda: m.lit.set({"gain": 2.0, "light": {"power": 1.0}})(True))
    assert f": light.tint was {zeros}" in said
    whole = m.lit.set({"gain": 2.0, "light": {"power": 3.0}}).set(light={"tint": spy.float3(1)})
    got: list[Any] = []
    assert heard(lambda: got.append(whole(spy.float1(1)))) == [] and got[0].to_numpy().tolist() == [6]
    assert heard(lambda: m.twice(7)) == []  # names none
    assert heard(lambda: m.lit.set(lambda node: {"gain": 1.0})(np.float32(1))) == []  # nobody knows before


# --- prints


def test_prints_that_nothing_shows(device: Any) -> None:
    text = """import slangpy_print;
    void shown(int i) { print("{}", i); }
    void deeper(int i) { shown(i); }
    void silent(int i) { }"""
    module = source(device, "lost_prints", text)
    for name in ("shown", "deeper"):
        (said,) = heard(lambda name=name: getattr(module, name)(1))
        assert f"lost_prints::{name}: print() shows nothing on this device" in said and "enable_print=True" in said
    assert heard(lambda: module.silent(1)) == []
    if device.info.type is not spy.DeviceType.cuda:
        plain = source(device, "lost_printf", 'void shown(int i) { printf("%d", i); }')
        (said,) = heard(lambda: plain.shown(1))
        assert "printf() shows nothing" in said
    with spy.Device(type=device.info.type, enable_print=True) as printer:
        assert heard(lambda: source(printer, "lost_prints", text).shown(1)) == []
