"""Loops that only add up and have no attribute: values, gradients and tangents against NumPy in float64, any number of trips."""

from __future__ import annotations

import re
from collections.abc import Callable
from math import sin
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import slangpy as spy
from slangpy._slang import rewrite_alone

pytestmark = pytest.mark.needs_kernels
Weights = Any
FILE = Path(__file__).with_suffix(".slang")
RNG = np.random.default_rng(5)
TRIPS, OTHERS = np.array([0, 1, 7, 40], np.int32), np.array([3, 3, 3, 5], np.int32)
A, W = 0.3, np.array([0.5, -0.4, 0.3, 0.7, -0.2, 0.9, 0.1, -0.6])


@pytest.fixture
def m(device: spy.Device) -> spy.Module:
    return spy.Module.load_from_file(device, FILE)


def with_gradient(device: spy.Device, values: Any) -> spy.Tensor:
    return spy.Tensor.from_numpy(device, np.asarray(values, np.float32)).with_grads()


def seeded(device: spy.Device, seed: Any) -> spy.Tensor:
    result = with_gradient(device, np.zeros_like(seed))
    result.grad.copy_from_numpy(np.asarray(seed, np.float32))
    return result


# --- layers
@pytest.mark.parametrize("trips", [0, 1, 7, 500])
def test_linear_layer(device: spy.Device, m: spy.Module, trips: int) -> None:
    w, x, seed = RNG.standard_normal((3, 500)), RNG.standard_normal(500), RNG.standard_normal(3)
    weights, inputs, rows = with_gradient(device, w), with_gradient(device, x), np.arange(3, dtype=np.int32)
    used = np.arange(500) < trips
    y = m.linear(rows, weights, inputs, trips, _result="numpy")
    np.testing.assert_allclose(y, (w * used) @ x, rtol=1e-4, atol=1e-4)
    m.linear.bwds(rows, weights, inputs, trips, _result=seeded(device, seed))
    np.testing.assert_allclose(weights.grad.to_numpy(), np.outer(seed, x * used), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(inputs.grad.to_numpy(), seed @ (w * used), rtol=1e-4, atol=1e-5)


@pytest.mark.one
def test_linear_layer_in_torch(device: spy.Device, m: spy.Module) -> None:
    torch = pytest.importorskip("torch")
    place = device.torch_device or torch.device("cpu")
    w, x = (torch.tensor(RNG.standard_normal(s), dtype=torch.float32, device=place, requires_grad=True) for s in ((5, 33), 33))
    seed = torch.tensor(RNG.standard_normal(5), device=place)
    m.linear(torch.arange(5, dtype=torch.int32, device=place), w, x, 33).backward(seed.float())
    w64, x64 = (t.detach().double().requires_grad_() for t in (w, x))
    (w64 @ x64).backward(seed)
    torch.testing.assert_close(w.grad, w64.grad.float())
    torch.testing.assert_close(x.grad, x64.grad.float())


@pytest.mark.one
def test_convolution(device: spy.Device, m: spy.Module) -> None:
    kernels, image, seed = RNG.standard_normal((2, 3, 3)), RNG.standard_normal((2, 6, 6)), RNG.standard_normal(16)
    at = np.stack(np.meshgrid(np.arange(4), np.arange(4)), -1).reshape(16, 2).astype(np.int32)
    k, i = with_gradient(device, kernels), with_gradient(device, image)
    m.convolution.bwds(at, k, i, 3, _result=seeded(device, seed))
    by_kernels, by_image = np.zeros_like(kernels), np.zeros_like(image)
    for (x, y), s in zip(at, seed, strict=True):
        by_kernels += s * image[:, y : y + 3, x : x + 3]
        by_image[:, y : y + 3, x : x + 3] += s * kernels
    np.testing.assert_allclose(k.grad.to_numpy(), by_kernels, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(i.grad.to_numpy(), by_image, rtol=1e-4, atol=1e-5)


# --- forms of loops
def plain(a: float, w: Weights, n: int, k: int) -> float:
    return 0.5 + sum(sin(a * i) * w[i % 8] for i in range(n))


def conditions(a: float, w: Weights, n: int, k: int) -> float:
    s, t = 0.0, a
    for i in range(3, n + 1, 2):
        x = w[i % 8] * a
        if i < k:
            s += x
        elif x > 0:
            t -= x * x
        s -= 0.1 * a
    return s * t


def nested(a: float, w: Weights, n: int, k: int) -> float:
    return sum(a for _ in range(n) for _ in range(1, k))


def nested_sums(a: float, w: Weights, n: int, k: int) -> float:
    return sum((a + sum(w[j % 8] * sin(a * j) for j in range(i))) ** 2 for i in range(n))


def vectors(a: float, w: Weights, n: int, k: int) -> float:
    s, u, m = np.array([0, a, 1]), [0.0, a], np.eye(2)
    for i in range(9, 9 - n, -1):
        s = s + w[(i + 80) % 8] * np.array([a, 1, 2])
        s[0] += w[0]
        u[1] += a
        u[0] -= a
        m = m + np.array([[a, w[1]], [w[2], 0]])
    return s[0] * s[1] + u[0] * u[1] + m[0, 1] * m[1, 0] * m[0, 0]


def methods(a: float, w: Weights, n: int, k: int) -> float:
    q = [a, w[0], 2]
    return sum(q[i % 3] * a * i for i in range(n)) + sum(a * a * i for i in range(n)) * n * w[1] * a


def generic(a: float, w: Weights, n: int, k: int) -> float:
    q = [a, w[0], a * a]
    return sum(q[i % 3] * 3 for i in range(n))


def stateful(a: float, w: Weights, n: int, k: int) -> float:
    x = a
    for _ in range(k):
        x = a + sum(sin(w[i % 8] * x) * 0.1 for i in range(n))
    return x


def given(a: float, w: Weights, n: int, k: int) -> float:
    return sum(w[(i + j) % 8] * a for i in range(n) for j in range(3))


def values(f: Callable[..., float], a: Any, w: Weights) -> Any:
    return np.array([f(x, w, n, k) for x, n, k in zip(np.broadcast_to(a, 4), TRIPS, OTHERS, strict=True)])


def close(found: Any, right: Any) -> None:
    np.testing.assert_allclose(found, right, rtol=1e-3, atol=1e-3)


FORMS = [plain, conditions, nested, nested_sums, vectors, methods, generic, stateful, given]


@pytest.mark.one
@pytest.mark.parametrize("form", FORMS)
def test_forms(device: spy.Device, m: spy.Module, form: Callable[..., float]) -> None:
    function, h = getattr(m, form.__name__), 1e-5
    a, w = with_gradient(device, np.full(4, A)), with_gradient(device, W)
    close(function(a, w, TRIPS, OTHERS, _result="numpy"), values(form, A, W))
    function.bwds(a, w, TRIPS, OTHERS, _result=seeded(device, np.ones(4)))
    close(a.grad.to_numpy(), (values(form, A + h, W) - values(form, A - h, W)) / (2 * h))
    moved = [(values(form, A, W + h * e) - values(form, A, W - h * e)).sum() / (2 * h) for e in np.eye(8)]
    close(w.grad.to_numpy(), moved)


@pytest.mark.one
@pytest.mark.parametrize("form", [nested_sums, vectors])
def test_tangents(device: spy.Device, m: spy.Module, form: Callable[..., float]) -> None:
    da, dw, h = RNG.standard_normal(4), RNG.standard_normal(8), 1e-5
    primals = (np.full(4, A, np.float32), spy.Tensor.from_numpy(device, W.astype(np.float32)), TRIPS, OTHERS)
    along = (da.astype(np.float32), spy.Tensor.from_numpy(device, dw.astype(np.float32)), None, None)
    _, tangent = spy.jvp(getattr(m, form.__name__), primals, along)
    close(tangent, (values(form, A + h * da, W + h * dw) - values(form, A - h * da, W - h * dw)) / (2 * h))


@pytest.mark.one  # some drivers end loops of more than 65535 trips
def test_a_million_trips(device: spy.Device, m: spy.Module) -> None:
    w, x = RNG.standard_normal((1, 10**6)), RNG.standard_normal(10**6)
    weights, inputs, rows = with_gradient(device, w), with_gradient(device, x), np.zeros(1, np.int32)
    np.testing.assert_allclose(m.linear(rows, weights, inputs, 10**6, _result="numpy"), w @ x, rtol=1e-2)
    m.linear.bwds(rows, weights, inputs, 10**6, _result=seeded(device, [0.5]))
    np.testing.assert_array_equal(weights.grad.to_numpy()[0], np.float32(0.5) * x.astype(np.float32))
    np.testing.assert_array_equal(inputs.grad.to_numpy(), np.float32(0.5) * w[0].astype(np.float32))


# --- the text
HEAD = "[Differentiable] float f(float a, float w[8], int n, RWTensor<float, 1> out, out float more) { float s = 0; more = 0; "
LEFT_ALONE = {
    "an attribute": "[MaxIters(8)] for (int i = 0; i < n; i++) s += a;",
    "another one": "[ForceUnroll] for (int i = 0; i < 3; i++) s += a;",
    "the sum is read": "for (int i = 0; i < n; i++) s += s * a;",
    "the sum is read elsewhere": "for (int i = 0; i < n; i++) { s += a; more += s; }",
    "the sum is read in the condition": "for (int i = 0; i < n && s < 3; i++) s += a;",
    "a product": "for (int i = 0; i < n; i++) s *= a;",
    "a parameter": "for (int i = 0; i < n; i++) more += a;",
    "another state": "float x = a; for (int i = 0; i < n; i++) { s += x; x = x * a; }",
    "a state inside": "for (int i = 0; i < n; i++) { float x = a; for (int j = 0; j < n; j++) x = x * a; s += x; }",
    "a break": "for (int i = 0; i < n; i++) { if (i > 3) break; s += a; }",
    "a return": "for (int i = 0; i < n; i++) { if (i > 3) return s; s += a; }",
    "the counter changes": "for (int i = 0; i < n; i++) { s += a; i++; }",
    "the counter begins at run time": "for (int i = n; i > 0; i--) s += a;",
    "the step is one of run time": "for (int i = 0; i < 8; i += n) s += a;",
    "an element at run time": "float v[8] = w; for (int i = 0; i < n; i++) v[i] += a;",
    "memory is written": "for (int i = 0; i < n; i++) { s += a; out[i] = a; }",
    "memory is written behind": "for (int i = 0; i < n; i++) s += out[i] * a; out[0] = a;",
    "memory that a caller may write": "for (int i = 0; i < n; i++) s += out[i] * a;",
    "a function writes memory": "for (int i = 0; i < n; i++) s += put(out, i, a);",
    "an unknown function": "for (int i = 0; i < n; i++) s += elsewhere(i, a);",
    "a type that is not written": "let x = a * a; for (int i = 0; i < n; i++) s += x;",
    "a branch of #if": "for (int i = 0; i < n; i++)\n#if 1\ns += a;\n#else\ns -= a;\n#endif\n",
    "not understood": "for (int i = 0; i < n; i++) s += a; @@;",
}


@pytest.mark.null
@pytest.mark.parametrize("reason", LEFT_ALONE)
def test_left_alone(reason: str) -> None:
    put = "float put(RWTensor<float, 1> out, int i, float a) { out[i] = a; return a; }\n"
    source = put + HEAD + LEFT_ALONE[reason] + " return s; }\n"
    assert rewrite_alone(source, ["accumulations"]) == source
    changed = put + HEAD + "for (int i = 0; i < n; i++) s += a; return s; }\n"
    assert rewrite_alone(changed, ["accumulations"]) != changed


MAKER = "struct P : IDifferentiable {{ float x; __init(float x) {{ this.x = x; {more} }} }} [Differentiable] P operator*(P a, P b) {{ return P(a.x * b.x); }}\n"


@pytest.mark.null
def test_what_only_reads() -> None:
    """The number of elements; operators that make structs, unless making one does more."""
    counted = HEAD + "for (int i = 0; i < w.getCount(); i++) s += w[i]; return s; }\n"
    assert "_spy_sum" in rewrite_alone(counted, ["accumulations"])
    made = HEAD + "for (int i = 0; i < n; i++) s += (P(a) * P(a)).x; return s; }\n"
    assert "_spy_sum" in rewrite_alone(MAKER.format(more="") + made, ["accumulations"])
    assert "_spy_sum" not in rewrite_alone(MAKER.format(more="elsewhere(x);") + made, ["accumulations"])


MEMORY = {
    "a global in a function": ("", "at(i)"),
    "a pointer": ("float* p", "no_diff p[i]"),
    "a buffer in a struct": ("Held h", "no_diff h.values[i]"),
    "a buffer in a struct in a function": ("Held h", "no_diff h.at(i)"),
}


@pytest.mark.null
@pytest.mark.parametrize("reason", MEMORY)
def test_memory_that_a_caller_may_write_is_read_once(reason: str) -> None:
    parameter, value = MEMORY[reason]
    source = (
        "RWStructuredBuffer<float> values; float at(int i) { return values[i]; }\n"
        "struct Held { StructuredBuffer<float> read; RWStructuredBuffer<float> values; float at(int i) { return values[i]; } }\n"
        f"[Differentiable] float f(float a, int n{', ' if parameter else ''}{parameter})\n"
        f"{{ float s = 0; for (int i = 0; i < n; i++) s += a * {value}; return s; }}"
    )
    assert rewrite_alone(source, ["accumulations"]) == source
    only_read = source.replace("RWStructuredBuffer", "StructuredBuffer").replace("float* p", "StructuredBuffer<float> p")
    assert rewrite_alone(only_read, ["accumulations"]) != only_read


@pytest.mark.null
@pytest.mark.parametrize("attribute", ["", "[ForwardDifferentiable]"])
def test_functions_without_backward_derivatives_are_left_alone(attribute: str) -> None:
    source = attribute + " float f(float a, int n) { float s = 0; for (int i = 0; i < n; i++) s += a; return s; }"
    assert rewrite_alone(source, ["accumulations"]) == source


@pytest.mark.null
def test_lines_stay() -> None:
    source = FILE.read_text("utf-8")
    changed = rewrite_alone(source, ["accumulations"])
    for before, after in zip(source.split("\n"), changed.split("\n"), strict=True):
        if "for (" not in before and "+=" not in before and "-=" not in before:
            assert not after or after.startswith(("[PreferRecompute", "    { ", "        { ")) or before.strip() in after


@pytest.mark.one
def test_other_loops_name_what_they_carry(device: spy.Device) -> None:
    source = (
        "[Differentiable] float f(float a, float b, int n)\n{\n    float x = a, s = 0, t = 0;\n"
        "    for (int i = 0; i < n; i++) { x = sin(x) * b; s += x; }\n    return x * s;\n}"
    )
    with pytest.raises(spy.SlangCompileError, match=r"carries_state:4: the loop carries 'x', 's' from trip to trip"):
        spy.Module.load_from_source(device, "carries_state", source)


@pytest.mark.one
def test_functions_of_ours_are_not_listed(device: spy.Device, m: spy.Module) -> None:
    assert not [name for name in [*dir(m), *dir(m.Scaled)] if name.startswith("_spy_")]
    assert {"sum", "all", "more"} <= set(dir(m.Scaled))


# --- the code
CODE = """
[Differentiable] float f(float a, StructuredBuffer<float> w, int n)
{
    float s = 0;
    ATTRIBUTE for (int i = 0; i < n; i++)
        ATTRIBUTE for (int j = 0; j < n; j++)
            s += w[i] * sin(w[j] * a);
    return s;
}
StructuredBuffer<float> w;
RWStructuredBuffer<float> values;
[shader("compute")] [numthreads(1, 1, 1)] void main()
{
    var a = diffPair(values[0]);
    bwd_diff(f)(a, w, int(values[1]), 1.0f);
    values[2] = a.d;
}
"""


@pytest.mark.one
@pytest.mark.parametrize("attribute", ["", "[MaxIters(8)]"])
def test_only_loops_with_an_attribute_keep_states(device: spy.Device, attribute: str) -> None:
    if device.info.type.name != "cpu":
        pytest.skip("reads C++")
    module = device.load_module_from_source("states" + attribute[1:4], CODE.replace("ATTRIBUTE", attribute))
    program = module.session.link_program([module], list(module.entry_points))
    states = re.findall(r"FixedArray<\w+, \d+> *\w+", program.code(0).decode())
    assert bool(states) == bool(attribute), states
