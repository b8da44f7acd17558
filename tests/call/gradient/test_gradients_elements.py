"""Elements of vectors and matrices written in branches: Slang 2026.12 takes the gradient of one vector for that of another,
so sources are changed before it sees them."""

from __future__ import annotations

import pytest
from gradient_forms import check_forms

import slangpy as spy

pytestmark = pytest.mark.one

MADE = "float2 v = float2(a, b); float2 w = v * 2;"
SUM = "return v.x * 3 + v.y;"
LOOP = "float2 h = float2(a, b); [MaxIters(4)] for (int i = 0; i < n; i++) {"
END = "return h.x * 3 + h.y;"
BODIES = {
    "written": f"{MADE} if (n > 1) {{ v.y = w.y; }} {SUM}",
    "by an index": f"{MADE} if (n > 1) {{ v[1] = w[0]; }} {SUM}",
    "by an index at run time": f"{MADE} if (n > 1) {{ v[n - 2] = w[0]; }} {SUM}",
    "without braces": f"{MADE} if (n > 1) v.y = sin(w.y); {SUM}",
    "without braces, else": f"{MADE} if (n > 1) v.y = w.y; else v.x = w.x; {SUM}",
    "else if": f"{MADE} if (n > 2) v.y = w.y; else if (n > 1) {{ v.x = w.x; v.y += w.y * w.x; }} else v.y -= w.x; {SUM}",
    "behind an early return": f"{MADE} if (n > 1) return a; v.y = w.y; {SUM}",
    "switch": f"{MADE} switch (n) {{ case 2: v.y = w.y; break; case 1: v.x *= w.y; break; default: v.y /= 2 + w.x; break; }} {SUM}",
    "several elements": f"{MADE} if (n > 1) {{ v.yx = w; v.xy += w.yy * 2; }} {SUM}",
    "in a loop": f"{MADE} [MaxIters(4)] for (int i = 0; i < n; i++) {{ if (i > 0) v.y += w.y; if (i == 2) break; v.x = w.y; }} {SUM}",
    "in a loop without branches": f"{LOOP} float2 u; u.x = a * h.y; u.y = b * h.x; h = h + (a * h.x) * u; }} {END}",
    "one in a loop": f"{LOOP} float2 u = h; u.y += b * h.x; h += a; h *= u; }} {END}",
    "a swizzle in a loop": f"{LOOP} float2 u; u.yx = h * b; h = b + a * u; }} {END}",
    "a row in a loop": f"{LOOP} float2x2 m = float2x2(h, h.yx); m[1] = h * a; h += mul(b * m, h) * 0.1; }} {END}",
    "matrix": f"float2x2 m = float2x2(a, b, a * b, b); float2x2 k = m * 2; if (n > 1) {{ m[1][0] = k[1][1]; m[0] = k[1]; }} float2 v = m[0] + m[1]; {SUM}",
    "a parameter": f"{MADE} return elements(v, w, n);",
    "an inout parameter": f"{MADE} changed(v, w, n); {SUM}",
    "field of a struct": f"{MADE} S s = {{ v }}; if (n > 1) {{ s.q.y = w.y; }} v = s.q; {SUM}",
    "var": f"var v = float2(a, b); var w = 2 * v.xy + (v - v); if (n > 1) {{ ++v.y; v.y += w.y; }} {SUM}",
    "one name for two": "float y = a; if (n > 1) { float2 y = float2(a, b); y.x = b; a = y.x * y.y; } { S y = { float2(a, b) }; y.q.x = b; b = y.q.x; } return a * y + b;",
}
HEAD = """
struct S : IDifferentiable { float2 q; }
[Differentiable] float elements(float2 v, float2 w, int n) { if (n > 1) { v.y = w.y; } else v.x = w.y; return v.x * 3 + v.y; }
[Differentiable] void changed(inout float2 v, float2 w, int n) { if (n > 1) { v.y = w.y * v.x; } else v.x += w.y; }
"""


@pytest.mark.needs_kernels
def test_gradients(device: spy.Device) -> None:
    fixed = {name: body for name, body in BODIES.items() if "run time" not in name}
    check_forms(device, "elements", HEAD, fixed, n=(0, 1, 2, 3))
    check_forms(device, "elements_at_run_time", HEAD, {name: BODIES[name] for name in BODIES.keys() - fixed.keys()}, n=(1, 2, 3))
