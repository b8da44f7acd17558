"""Products of vectors and matrices with scalars that loops made: Slang 2026.12 loses the gradient by way of the scalar
where nothing lies between (shader-slang 12071), so sources are changed before it sees them."""

from __future__ import annotations

import pytest
from gradient_forms import check_forms

import slangpy as spy

pytestmark = pytest.mark.one

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
def test_gradients(device: spy.Device) -> None:
    check_forms(device, "scalars", HEAD, BODIES, n=(0, 1, 2))
