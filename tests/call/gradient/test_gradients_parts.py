"""Arrays of which an element is written in part and another as a whole: Slang 2026.12 gave wrong gradients, or code that does
not compile. Sources are changed before it sees them."""

from __future__ import annotations

import pytest
from gradient_forms import check_forms

import slangpy as spy

pytestmark = pytest.mark.one

C = "float2 c[2] = { float2(a, b), float2(b, a * b) };"
E = "return c[0].x * c[0].y + c[1].x * c[1].y * c[1].x;"
S = "P s[2]; s[0].p = float2(a, b); s[0].q = a * b; s[1].p = float2(b, b * a); s[1].q = b;"
Z = "return s[0].p.x * s[0].p.y + s[1].p.x * s[1].p.y * s[1].q + s[0].q * s[0].q;"
LOOP = "[MaxIters(4)] for (int i = 0; i < n + 1; ++i)"
FORMS = {
    "copied": f"{C} c[0].x = a * b; c[1] = c[0]; {E}",
    "by a variable": f"{C} c[0].x = a * b; float2 t = c[0]; c[1] = t * t; {E}",
    "branch": f"{C} c[0].x = a * b; if (a > b) c[1] = c[0]; else c[0] = c[1]; {E}",
    "one statement": f"{C} if (n > 0) c[0].x = a * b; else c[1].y = a; c[1] = c[0]; {E}",
    "read by an index": f"{C} c[0].x = a * b; c[1] = c[n - 1]; {E}",
    "added": f"{C} c[0].x += a * b; c[1] = c[0]; {E}",
    "swizzle": f"{C} c[0].yx = float2(a, a * b); c[1] = c[0]; {E}",
    "component by an index": f"{C} c[0][n - 1] = a * a; c[1] = c[0]; {E}",
    "stepped": f"{C} c[0].x++; --c[1].y; c[1] = c[0]; {E}",
    "out": f"{C} fill(a, c[0]); c[0].x = b; c[1] = c[0]; {E}",
    "inout": f"{C} c[0].x = a * b; change(c[0].x, c[1]); c[0].y = b; {E}",
    "no whole read": f"{C} c[0].x = a * a; c[1].y = c[0].y; c[0].y = c[1].x; {E}",
    "parts of both": f"{C} c[0].x = a; c[1].x = a * a; c[0].y = b; c[1].y = b * b; {E}",
    "switch": f"{C} switch (n) {{ case 1: c[0].x = a * b; c[1] = c[0]; break; default: c[1].x = a; c[0] = c[1]; }} {E}",
    "return": f"{C} if (a > 0.0f) {{ c[0].x = a * b; c[1] = c[0]; return c[1].x * c[1].y; }} {E}",
    "loop": f"{C} {LOOP} {{ c[0].x = c[1].x * a; c[1] = c[0]; }} {E}",
    "unrolled": f"{C} [ForceUnroll] for (int i = 0; i < 2; ++i) {{ c[i].x *= a; c[1] = c[0] * b; c[0] = c[1]; }} {E}",
    "before a loop": f"{C} c[0].x = a * b; {LOOP} {{ c[1] = c[0] * a; c[0] = c[1] * b; }} {E}",
    "typedef": f"Two c; c[0] = float2(a, b); c[1] = float2(b, b); c[0].x = a * b; c[1] = c[0]; {E}",
    "var": f"var c = float2[2](float2(a, b), float2(b, b)); c[0].x = a * b; c[1] = c[0]; {E}",
    "parameter": f"{C} swap(a, b, c); {E}",
    "hidden": f"{C} c[0].x = a * b; {{ float2 c = v.xy; c.x = b; a = c.x * c.y; }} c[1] = c[0] * a; {E}",
    "arrays of arrays": "float c[2][2]; c[0][0] = a; c[0][1] = b; c[1][0] = a * a; c[1][1] = b * b; c[0][1] = a * b; c[1] = c[0]; "
    "return c[1][0] * c[1][1] * c[0][1] + c[1][1] * c[0][0];",
    "matrices": "float2x2 m[2]; m[0] = float2x2(v.x, v.y, v.y, v.z); m[1] = m[0]; m[0][1].x = a * b; m[1] = m[0] * a; "
    "return m[0][0].x * m[1][1].y + m[0][1].y * m[1][1].x;",
    "structs": f"{S} s[0].p.x = a * b; s[1] = s[0]; {Z}",
    "structs, part behind": f"{S} s[0].q = a * b; s[1] = s[0]; s[0].p.y = a; {Z}",
    "structs, parts only": f"{S} s[0].p.x = a; s[1].p.x = a * a; s[0].q = s[0].p.y; {Z}",
    "arrays in structs": "Q s[2]; s[0].q = a; s[0].z[0] = a; s[0].z[1] = b; s[1] = s[0]; s[1].z[n] = a * b; "
    "return s[1].z[0] * s[1].z[1] * s[0].q;",
    "method": f"{S} s[0].p.x = a * b; s[0].bump(b); s[1] = s[0]; {Z}",
    "comma": f"{C} c[0].x = a * b, c[1] = c[0]; {E}",
    "brackets": f"{C} (c[0]).x = a * b; (c[1] = c[0]); {E}",
    "assigned twice": f"{C} float2 t = c[1] = c[0]; a = c[0].x = t.y * b; c[1] = c[0] * a; {E}",
    "structs by name": "Pair s; s[0].p = float2(a, b); s[0].q = a * b; s[1].p = float2(b, b * a); s[1].q = b; "
    f"s[0].p.x = a * b; s[1] = s[0]; {Z}",
    "multiplied in a loop": f"float2 c[2]; float2 w = v.xy; {LOOP} {{ c[0].x = a; c[0].y = b; w = a * c[0] * w.y; }} return w.x * w.y;",
}  # fmt: skip
HEAD = """
struct P : IDifferentiable { float2 p; float q; [Differentiable] [mutating] void bump(float a) { p.x *= a; q += a; } }
struct Q : IDifferentiable { float q; float z[2]; }
typedef float2 Two[2];
typedef P Pair[2];
[Differentiable] void fill(float a, out float2 x) { x = float2(a, a * a); }
[Differentiable] void change(float a, inout float2 x) { x.x *= a; x.y += x.x * x.x; }
[Differentiable] void swap(float a, float b, inout float2 c[2]) { c[0].x = a * b; float2 t = c[1]; c[1] = c[0]; c[0] = t; }
"""


@pytest.mark.needs_kernels
def test_gradients(device: spy.Device) -> None:
    check_forms(device, "parts", HEAD, FORMS)
