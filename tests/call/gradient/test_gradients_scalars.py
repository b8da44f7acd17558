"""Products of vectors and matrices with scalars that loops made: Slang 2026.12 loses the gradient by way of the scalar
where nothing lies between (shader-slang 12071), so sources are changed before it sees them."""

from __future__ import annotations

import numpy as np
import pytest

import slangpy as spy

LOOP = "[MaxIters(3)] for (int i = 0; i < 3; i++)"
MADE = f"float d = 1; {LOOP} {{ d = d * a + b; }} float3 n = float3(a, b, a * b);"
SUM = "return n.x * 2 + n.y * n.z;"
BODIES = {
    "times": f"{MADE} n = n * d; {SUM}",
    "from the left": f"{MADE} n = d * n; {SUM}",
    "divided": f"{MADE} n = n / d; {SUM}",
    "divides": f"{MADE} n = d / n; {SUM}",
    "in place": f"{MADE} n *= d; n /= (d); {SUM}",
    "in brackets": f"{MADE} n = n * ((d)); {SUM}",
    "a copy": f"{MADE} float e = d; n = n / e; {SUM}",
    "in a branch": f"{MADE} if (a > 0.4) {{ n = n * d; }} {SUM}",
    "matrix": f"{MADE} float2x2 m = float2x2(a, b, a * b, b) / d; return m[0][0] + m[1][0] * m[1][1];",
    "parameter": f"float3 n = float3(a, b, a * b); {LOOP} {{ n = sin(n) * a; a = cos(a) * n.x; }} {SUM}",
    "vector of a matrix": f"float2 q = float2(a, b); {LOOP} {{ q = mul(float2(b, a), float2x2(1, a, b, b)) * a; a = sin(q.x); }} return a + q.y;",
    "inout": f"float d = 1; {LOOP} {{ step(d, a); }} float3 n = float3(a, b, a * b); n = n * d; {SUM}",
    "nested": f"float d = 1; {LOOP} {{ {LOOP.replace('i', 'k').replace('knt', 'int').replace('Maxkters', 'MaxIters')} {{ d = sin(d * a); }} d += b; }} float3 n = float3(a, b, a * b); n = d * n / d * d; {SUM}",
    "break": f"float d = 1; {LOOP} {{ d = d * a + b; if (d > 3) break; }} float3 n = float3(a, b, a * b); n = n * d; {SUM}",
    "while": f"float d = 1; int i = 0; [MaxIters(3)] while (i < 3) {{ d = d * a + b; i++; }} float3 n = float3(a, b, a * b); n = n / d; {SUM}",
    "several declared": f"float c = 2, d = sin(max(1.0, 2.0)), e; {LOOP} {{ d = d * a + b; e = d * c; }} float3 n = float3(a, b, a * b); n = n * d / e; {SUM}",
    "none": f"float3 n = float3(a, b, a * b) * a / b; {SUM}",
}
HEAD = "[Differentiable] void step(inout float d, float a) { d = d * a + 1; }\n"


@pytest.mark.needs_kernels
@pytest.mark.parametrize("name", BODIES)
def test_gradients(device: spy.Device, name: str) -> None:
    source = f"{HEAD}[Differentiable] float f(float a, float b)\n{{\n    {BODIES[name]}\n}}"
    label = f"scalars_{list(BODIES).index(name)}"
    f = spy.Module.load_from_source(device, label, source).f
    exact = spy.Module.load_from_source(spy.Device(type="cpu"), label + "d", source.replace("float", "double")).f
    a, b, step = np.array([0.3, 0.5, 0.9]), np.array([0.2, 0.7, 0.4]), 1e-6
    x, y = (spy.Tensor.from_numpy(device, v.astype(np.float32)).with_grads(zero=True) for v in (a, b))
    seed = spy.Tensor.from_numpy(device, np.zeros(3, np.float32)).with_grads()
    seed.grad.copy_from_numpy(np.ones(3, np.float32))
    f.bwds(x, y, _result=seed)
    by_a = (exact(a + step, b, _result="numpy") - exact(a - step, b, _result="numpy")) / (2 * step)
    by_b = (exact(a, b + step, _result="numpy") - exact(a, b - step, _result="numpy")) / (2 * step)
    np.testing.assert_allclose(x.grad.to_numpy(), by_a, rtol=2e-4, atol=1e-5)
    np.testing.assert_allclose(y.grad.to_numpy(), by_b, rtol=2e-4, atol=1e-5)
    np.testing.assert_allclose(f(x, y, _result="numpy"), exact(a, b, _result="numpy"), rtol=1e-5, atol=1e-6)
