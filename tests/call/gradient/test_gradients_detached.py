"""`no_diff` parameters as components of vectors and matrices: Slang 2026.12 had an internal error in .fwds where such a vector
is an operand. Sources are changed before it sees them."""

from __future__ import annotations

import pytest
from gradient_forms import check_forms

import slangpy as spy

SUM = "return q.x * q.y + q.z;"
BODIES = {
    "times": f"float3 q = float3(c, x, y) * w; {SUM}",
    "minus": f"float3 q = float3(c, x, c) - w; {SUM}",
    "generic type": f"float3 q = vector<float, 3>(x, c, y) * w; {SUM}",
    "converted": f"float3 q = float3(float(c), x, y) * w; {SUM}",
    "a copy": f"float d = c; float3 q = float3(d, x, y) * w; {SUM}",
    "a constant": f"const float d = c; float3 q = float3(d, x, y) * w; {SUM}",
    "a part of it": f"float3 q = float3(k.x, x, c) * w; {SUM}",
    "no operand": f"float3 q = float3(c, x, c); {SUM}",
    "matrix": "float2x2 q = float2x2(c, x, y, c) * float2x2(x, x, y, y); return q[0][0] + q[1][1] * q[0][1];",
    "mul": "float2 q = mul(float2x2(float2(c, x), float2(x, y)), float2(x, y)); return q.x * q.y;",
    "dot": "return dot(float2(c, x), float2(y, c)) * dot(float3(c, x, y), w);",
    "lerp": "return length(lerp(float2(c, x), float2(y, x), c));",
    "hidden": f"{{ float c = x * y; w *= float3(c, c, x); }} float3 q = float3(x, y, c) + w; {SUM}",
}
HEAD = "".join(
    f"[Differentiable] float g{number}(float x, no_diff float c, no_diff float2 k, float y, float3 w) {{ {body} }}\n"
    for number, body in enumerate(BODIES.values())
)
FORMS = {name: f"return g{number}(a, 0.5f, float2(0.25f, 0.75f), b, v);" for number, name in enumerate(BODIES)}


@pytest.mark.needs_kernels
def test_gradients(device: spy.Device) -> None:
    check_forms(device, "detached", HEAD, FORMS)
