"""`no_diff` on parameters and fields: read, written, and without gradient."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from gradcheck import same, seeded, tensor, with_grad
from tiers import gate

import slangpy as spy

pytestmark = [pytest.mark.needs_kernels, pytest.mark.one]
SOURCE = """
[Differentiable] float gather(int i, no_diff ITensor<float, 1> k, ITensor<float, 1> x) { return k[i] * x[i]; }
[Differentiable] float other_order(int i, in no_diff /* constant */ IDiffTensor<float, 1> k, ITensor<float, 1> x)
{
    return no_diff k[i] * x[i];
}
[Differentiable] float concrete(int i, no_diff DiffTensor<float, 1> k, DiffTensor<float, 1> x) { return k[i] * x[i]; }
[Differentiable] void store(int i, ITensor<float, 1> x, IWTensor<float, 1> y, no_diff IWTensor<float, 1> log)
{
    y[i] = x[i] * x[i];
    log[i] = x[i];
}
[Differentiable] void in_place(int i, no_diff IRWTensor<float, 1> k, ITensor<float, 1> x, IWTensor<float, 1> y)
{
    y[i] = k[i] * x[i];
}
[Differentiable] T generic<T : __BuiltinFloatingPointType, let D : int>(int i, no_diff ITensor<T, D> k, ITensor<T, D> x)
{
    return k[i] * x[i];
}
struct Lens : IDifferentiable { float strength; no_diff float offset; no_diff int kind; };
[Differentiable] float through(Lens lens, float x) { return lens.strength * x + lens.offset * x * lens.kind; }
[Differentiable] float at(int i, ITensor<Lens, 1> lenses, float x) { return through(lenses[i], x); }
[Differentiable] float scaled(no_diff Lens lens, float x) { return through(lens, x); }
"""


@cache
def load(device: Any) -> Any:
    return spy.Module.load_from_source(device, "no_diff_parameters", SOURCE)


@pytest.fixture
def m(device: Any) -> Any:
    return load(device)


@pytest.mark.parametrize("name", gate(["gather", "other_order", "concrete", "generic"], lambda name: name != "other_order"))
def test_no_gradient_is_written(device, m, name):
    k, x = with_grad(device, [2, 3, 4]), with_grad(device, [5, 6, 7])
    y = m[name](spy.grid((3,)), k, x, _result="tensor")
    same(y, [10, 18, 28])
    m[name].bwds(spy.grid((3,)), k, x, _result=seeded(device, [1, 1, 1]))
    same(x.grad, [2, 3, 4])
    same(k.grad, [0, 0, 0])


def test_concrete_needs_no_gradient(device, m):
    x = with_grad(device, [5, 6, 7])
    m.concrete.bwds(spy.grid((3,)), tensor(device, [2, 3, 4]), x, _result=seeded(device, [1, 1, 1]))
    same(x.grad, [2, 3, 4])


def test_outputs(device, m):
    x, y, log = with_grad(device, [1, 2]), seeded(device, [1, 10]), seeded(device, [1000, 1000])
    before = log.to_numpy()
    m.store.bwds(spy.grid((2,)), x, y, log)
    same(x.grad, [2, 40])
    same(log, before)


def test_read_write(device, m):
    k, x, y = (
        with_grad(device, [2, 3]),
        with_grad(device, [1, 1]),
        seeded(device, [1, 10]),
    )  # one gradient of both kinds
    m.in_place.bwds(spy.grid((2,)), k, x, y)
    same(x.grad, [2, 30])
    same(k.grad, [0, 0])


def test_fields(device, m):
    strength, offset, x = with_grad(device, [2, 3]), with_grad(device, [1, 1]), with_grad(device, [10, 20])
    lens = {"strength": strength, "offset": offset, "kind": 2}
    m.through.bwds(lens, x, _result=seeded(device, [1, 1]))
    same(strength.grad, [10, 20])
    same(offset.grad, [0, 0])
    same(x.grad, [4, 5])
    m.scaled.bwds(lens, x, _result=seeded(device, [1, 1]))
    same(strength.grad, [10, 20])
    same(x.grad, [8, 10])


def test_struct_elements(device, m):
    lenses = spy.Tensor.zeros(device, (2,), m.Lens)
    cursor = lenses.cursor()
    for i in range(2):
        cursor[i].write({"strength": i + 2.0, "offset": 1.0, "kind": 2})
    cursor.apply()
    lenses = lenses.with_grads()
    assert list(lenses.grad.cursor()[0].read()) == ["strength"]
    x = with_grad(device, [10, 20])
    m.at.bwds(spy.grid((2,)), lenses, x, _result=seeded(device, [1, 1]))
    m.through.bwds(lenses, x, _result=seeded(device, [1, 1]))
    assert [lenses.grad.cursor()[i].read()["strength"] for i in range(2)] == [20, 40]
    same(x.grad, [8, 10])


def test_explained_error_shows_the_users_text(device):
    with pytest.raises(RuntimeError, match="no_diff ITensor<float, 1> k"):
        spy.Module.load_from_source(
            device, "no_diff_error", "float broken(no_diff ITensor<float, 1> k, int i) { return k[i] + nothing; } "
        ).broken(tensor(device, [1]), 0)


CALLS = """
[Differentiable] float square(float x) { return x * x; }
[Differentiable] float branch(float x) { if (x > 0.5) return sin(x); x = cos(x); return x * 3; }
[Differentiable] T generic<T : __BuiltinFloatingPointType>(T x) { return x * x; }
[BackwardDerivative(custom_back)] [ForwardDerivative(custom_forward)] float custom(float x) { return x * x; }
void custom_back(inout DifferentialPair<float> p, float g) { p = diffPair(p.p, g * 7); }
DifferentialPair<float> custom_forward(DifferentialPair<float> p) { return diffPair(p.p * p.p, p.d * 7); }
float plain(float x) { return x * x; }
int rounded(float x) { return int(x) + 1; }
struct Scale : IDifferentiable
{
    float by;
    [Differentiable] float act(float x) { return x * by; }
    [Differentiable] static float twice(float x) { return 2 * x; }
    [Differentiable] float2 pair(float x) { return float2(x, by * x); }
};
"""
EXPRESSIONS = {
    "call": ("no_diff square(x)", lambda x: x * x),
    "branch": ("no_diff branch(x)", lambda x: np.where(x > 0.5, np.sin(x), 3 * np.cos(x))),
    "generic": ("no_diff generic(x)", lambda x: x * x),
    "arguments": ("no_diff generic<float>(x)", lambda x: x * x),
    "custom": ("no_diff custom(x)", lambda x: x * x),
    "plain": ("(no_diff plain(x))", lambda x: x * x),
    "integer": ("(no_diff rounded(x)) * 0.5", lambda x: (np.floor(x) + 1) * 0.5),
    "method": ("no_diff scale.act(x)", lambda x: 3 * x),
    "static": ("1 - no_diff Scale::twice(x) / 4", lambda x: 1 - x / 2),
    "element": ("no_diff scale.pair(x)[1]", lambda x: 3 * x),
    "nested": ("no_diff square(no_diff square(x) + x)", lambda x: (x * x + x) ** 2),
    "conditional": ("(x < 1 ? no_diff square(x) : no_diff branch(x))", lambda x: np.where(x < 1, x * x, np.sin(x))),
    "cast": ("float(no_diff square(x)) + (float) no_diff plain(x)", lambda x: 2 * x * x),
}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_calls(device: Any, name: str) -> None:
    """The word in front of a call keeps derivatives out, whatever function is called."""
    text, value = EXPRESSIONS[name]
    function = f"[Differentiable] float f(float x)\n{{\n    Scale scale = {{ 3.0f }};\n    return sin(x) + {text};\n}}"
    module = spy.Module.load_from_source(device, f"no_diff_{name}", f"{CALLS}{function}")
    values = np.array([0.25, 0.75, 2.5], np.float32)
    x = tensor(device, values).with_grads(zero=True)
    np.testing.assert_allclose(
        module.f(x, _result="numpy"), np.sin(values) + value(values.astype(np.float64)), rtol=1e-6
    )
    module.f.bwds(x, _result=seeded(device, np.ones(3)))
    np.testing.assert_allclose(x.grad.to_numpy(), np.cos(values), rtol=1e-6)
    tangent = spy.jvp(module.f, (tensor(device, values),), (tensor(device, np.ones(3)),))[1]
    np.testing.assert_allclose(tangent.to_numpy(), np.cos(values), rtol=1e-6)


def test_words_that_are_no_calls(device: Any) -> None:
    """Parameters, fields, and the text of messages keep the word as it is."""
    source = "[Differentiable] float f(no_diff float x, float y)\n{\n    return no_diff square(nothing) + y;\n}"
    with pytest.raises(spy.SlangCompileError) as error:
        spy.Module.load_from_source(device, "no_diff_text", f"{CALLS}{source}")
    assert "_spy_" not in str(error.value) and "no_diff square(nothing)" in str(error.value)
    module = spy.Module.load_from_source(
        device, "no_diff_dir", f"{CALLS}[Differentiable] float f(float x) {{ return no_diff square(x); }}"
    )
    assert not [name for name in dir(module) if name.startswith("_spy")]
