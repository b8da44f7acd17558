"""Long chains of values made of each other through Slang's own functions: Slang 2026.12 computes each value anew for each use
of it, and 25 of them never compile. Sources are changed before it sees them."""

from __future__ import annotations

import numpy as np
import pytest
from gradient_forms import check_forms

import slangpy as spy
from slangpy.testing import CudaCodegen, nvrtc_available

pytestmark = [pytest.mark.needs_kernels, pytest.mark.one]

LONG = 28
HEAD = "struct Two : IDifferentiable { float x; float3 y; };\n"
FORMS = {
    "assigned": "float s = v.x; " + "s = exp(-s) + a; " * LONG + "return s * b;",
    "updated": "float s = v.x; " + "s += exp(-s) * a; s *= sin(s) * 0.3f + b; " * (LONG // 2) + "return s;",
    "a parameter": "a = exp(-a) + b; " + "a = sqrt(a + v.y * b); " * LONG + "return a;",
    "vectors": "float3 s = v; " + "s = max(s * b, 0.1f * s) + exp(-s.zxy); " * 14 + "return s.x * s.y + s.z;",
    "in a branch": "float s = v.x; if (n > 1) { " + "s = sqrt(s + a); " * LONG + "} return s * b;",
    "in a loop": "float s = v.x; [MaxIters(4)] for (int i = 0; i < n; i++) { " + "s = tanh(s + a) * b; " * 14 + "} return s;",
    "lines and comments": "float s = v.x;\n" + "s = exp(-s) + a; // again\n" * LONG + "return s * b;",
    "of two levels": "float s = v.x; " + "s = cos(s * a) + float2(b, s).x * 0.5f; " * 70 + "return s;",
    "two variables": "float p = a, q = b; " + "p = sin(q) + a; q = exp(-p) + b; " * (LONG // 2) + "return p * q;",
    "new variables": "let v0 = a; " + "".join(
        f"{'let' if k % 2 else 'float'} v{k + 1} = exp(-v{k}) + b; " for k in range(LONG)) + f"return v{LONG};",
    "in one expression": "return " + "sin(exp(" * (LONG // 2) + "-a" + "))" * (LONG // 2) + " * b;",
    "fields of a struct": "Two p = {a, v}; " + "p.x = sin(p.y.x) + a; p.y.x = exp(-p.x) + b; " * (LONG // 2) + "return p.x * p.y.x * p.y.z;",
    "a branch between": "float p = a, q = b; " + "p = sin(q) + a; q = exp(-p) + b; " * 7 + "if (n > 2) q = cos(p); else p = q; "
        + "p = sin(q) + a; q = exp(-p) + b; " * 7 + "return p * q;",
    "vectors in new variables": "float3 v0 = sin(v); " + "".join(
        f"float3 v{k + 1} = cos(v{k}) * b + v.zxy * a; " for k in range(LONG)) + f"return v{LONG}.x * v{LONG}.z;",
    "conditions": "float s = a; " + "".join(
        f"if (v.x > {0.2 + 0.7 * k / LONG:.3f}f)\n s = s * 0.9f + v.y * {k % 3}; " for k in range(LONG)) + "return s * b;",
    "conditions on the value": "float s = a; " + "".join(
        f"if (s > {k % 5 + 1} * 0.17f && (n != {k % 4} || b < v.z)) {{ s *= v.y; }} else if (!(n == 3)) s = b; else s += a * 0.2f; "
        for k in range(LONG)) + "return s * b;",
    "conditional expressions": "float s = a; " + "".join(
        f"s = v.x > {0.2 + 0.7 * k / LONG:.3f}f ? s * b + v.z : s - 0.1f; " for k in range(LONG)) + "return s * v.y;",
    "a short one": "float s = v.x; " + "s = exp(-s) + a; " * 6 + "return s * b;",
}  # fmt: skip


def test_gradients(device: spy.Device) -> None:
    check_forms(device, "chains", HEAD, FORMS, n=3)


STEP = "{0} s{2} = sin(s{1}) * {0}(a) + {0}(v.y); "
KINDS = {
    "half": (f"half s = half(v.x); {'s = sin(s) * half(a) + half(v.y); ' * LONG}", "s", 4e-3),
    "half in new variables": ("half s0 = half(v.x); " + "".join(STEP.format("half", k, k + 1) for k in range(LONG)), f"s{LONG}", 4e-3),
    "double": (f"double s = v.x; {'s = sin(s) * a + v.y; ' * LONG}", "s", 1e-6),
    "float in new variables": ("float s0 = v.x; " + "".join(STEP.format("float", k, k + 1) for k in range(LONG)), f"s{LONG}", 1e-5),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_functions_that_are_called_alone(device: spy.Device, kind: str) -> None:
    """Where nothing but the kernel calls the function, the parameters' order counts, too."""
    if kind == "double" and device.info.type == spy.DeviceType.vulkan:
        pytest.skip("Vulkan has no sin of double")
    body, last, tolerance = KINDS[kind]
    module = spy.Module.load_from_source(
        device, "chains_alone", f"[Differentiable] float f(float a, float3 v, int n) {{ {body} return float({last}); }}"
    )
    rng = np.random.default_rng(3)
    a, v = rng.uniform(0.2, 0.9, 5), rng.uniform(0.2, 0.9, (5, 3))
    s, by_a, by_x, by_y = v[:, 0], np.zeros(5), np.ones(5), np.zeros(5)
    for _ in range(LONG):
        slope = a * np.cos(s)
        by_a, by_x, by_y = slope * by_a + np.sin(s), slope * by_x, slope * by_y + 1
        s = np.sin(s) * a + v[:, 1]
    inputs = [spy.Tensor.from_numpy(device, x.astype(np.float32)).with_grads() for x in (a, v)]
    ones = spy.Tensor.from_numpy(device, np.ones(5, np.float32))
    module.f.bwds(*inputs, 1, _result=spy.Tensor.zeros(device, (5,), "float").with_grads(ones))
    got = [module.f(*inputs, 1, _result="numpy"), inputs[0].grad.to_numpy(), *inputs[1].grad.to_numpy().T]
    for found, wanted in zip(got, (s, by_a, by_x, by_y, np.zeros(5)), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)


@pytest.mark.skipif(not nvrtc_available(), reason="NVRTC is not installed")
@pytest.mark.parametrize("form", ["assigned", "two variables"])
def test_cuda_code(form: str) -> None:
    target = CudaCodegen("sm_75")
    body = FORMS[form]
    module = target.load_from_source("chains_cuda", f"[Differentiable] float f(float a, float b, float3 v) {{ {body} }}")
    cpu = spy.Device(type=spy.DeviceType.cpu)
    a, b, out = (spy.Tensor.zeros(cpu, (5,), "float").with_grads() for _ in range(3))
    v = spy.Tensor.zeros(cpu, (5,), "float3").with_grads()
    assert target.build(module.f.bwds, a, b, v, _result=out).kernels.variants
