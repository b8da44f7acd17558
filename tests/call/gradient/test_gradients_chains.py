"""Long chains of values made of each other through Slang's own functions: Slang 2026.12 computes each value anew for each use
of it, and 25 of them never compile. Sources are changed before it sees them."""

from __future__ import annotations

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
    "a short one": "float s = v.x; " + "s = exp(-s) + a; " * 6 + "return s * b;",
}  # fmt: skip


def test_gradients(device: spy.Device) -> None:
    check_forms(device, "chains", HEAD, FORMS, n=3)


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
