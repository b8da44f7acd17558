"""Elements written before a loop that changes the variable: Slang 2026.12 began the loop with the value of another variable
of that type, in .fwds and .bwds; even the value was wrong. Sources are changed before it sees them."""

from __future__ import annotations

import pytest
from gradient_forms import check_forms

import slangpy as spy

pytestmark = pytest.mark.one

LOOP = "[MaxIters(4)] for (int i = 0; i < n + 1; i++)"
INNER = "[MaxIters(4)] for (int k = 0; k < 2; k++)"
BOTH = "{ x = sin(x); w = x.xx - w; }"
BODIES = {
    "component": f"float2 x = v.xy; x.y = a; {LOOP} {BOTH}",
    "added": f"float2 x = v.xy; x.y += a; float q = sin(b); if (n > 0) q += 1.0f; {LOOP} {{ x = sin(x * q); w = x.xx - w; }}",
    "by an index": f"float2 x = v.xy; x[n] = a; {LOOP} {BOTH}",
    "both": f"float2 x; x.x = a; x.y = b; {LOOP} {BOTH}",
    "the other variable": f"float2 x = v.xy; x.y = a; w.y = b; {LOOP} {BOTH}",
    "by a call": f"float2 x = v.xy; change(a, x.y); {LOOP} {BOTH}",
    "out": f"float2 x = v.xy; give(a, x.y); {LOOP} {BOTH}",
    "components in the loop": f"float2 x = v.xy; x.y = a; {LOOP} {{ x.x = sin(x.x); x.y = sin(x.y); w = x.xx - w; }}",
    "parts of the loop": f"float2 x = v.xy; x.y = a; {LOOP} {{ if (i > 0) x = sin(x); w = x.xx - w; }}",
    "one loop behind the other": f"float2 x = v.xy; {LOOP} {BOTH} x.y = a; {LOOP} {BOTH} w.x = b; {LOOP} {BOTH}",
    "nested": f"float2 x = v.xy; {LOOP} {{ x.y = a * x.x; {INNER} {BOTH} }}",
    "do": f"float2 x = v.xy; x.y = a; int i = 0; if (n > -1) [MaxIters(4)] do {BOTH} while (++i < n + 1); else x = w;",
    "while": "float2 x = v.xy; x.y = a; int i = 0; [MaxIters(4)] while (i < n + 1) { x = sin(x); w = x.xx - w; i++; }",
    "branch": f"float2 x = v.xy; if (n > 0) {{ x.y = a; {LOOP} {BOTH} }} else {LOOP} {BOTH}",
    "a branch in the loop": f"float2 x = v.xy; x.y = a; {LOOP} {{ if (false) {{ }} else {{ w = x.xx - w; }} }}",
    "var": f"var x = v.xy; x.y = a; {LOOP} {BOTH}",
    "a parameter": f"float3 x = v.yzx; v.y = a; {LOOP} {{ v = sin(v); x = v.xxx - x; }} w = v.yz;",
    "swapped": f"float2 x = v.xy; w = v.yz; x.y = a; {LOOP} {{ float2 q = x; x = w; w = q * b; }}",
    "row": f"float2x2 x = float2x2(v.xy, v.yz), u = float2x2(b, a, b, b); x[1] = v.zx; {LOOP} {{ x = sin(x); u = x - u; }} w = u[1];",
    "generic": "float2 x = generic<float, 2>(v.xy, a, n);",
    "method": "P p = { b, v.x }; float2 x = p.state(v.yz, n);",
    "struct": f"P x = {{ b, v.x }}, u = {{ v.y, b }}; x.y = a; {LOOP} {{ x = next(x, b); u = next(u, x.x); }} w = float2(u.x, u.y);",
    "copied struct": f"P x = {{ v.x, v.y }}, u = {{ b, v.z }}; x.y = a; {LOOP} {{ advance(x, b); u = x; }} w.y = u.x;",
    "nested struct": f"Q x = {{ v.xy, b }}, u = {{ v.yz, b }}; x.p.y = a; {LOOP} {{ x = turn(x, b); u = turn(u, x.p.x); }} w = u.p * u.y;",
    "array": f"float x[2] = {{ v.x, v.y }}, u[2] = {{ v.z, b }}; x[n] = a; {LOOP} {{ x = moved(x, b); u = moved(u, x[0]); }} w.x = u[0];",
    "vectors": f"float2 x[2] = {{ v.xy, v.yz }}, u[2] = {{ v.yz, v.zx }}; x[1].x = a; {LOOP} {{ x = mixed(x, b); u = mixed(u, x[0].y); }} w = u[1];",
    # What a __subscript or a macro writes before a loop copies it.
    "subscript": f"C x = {{ v.x, v.y }}, u = {{ b, b }}; x[1] = a; {LOOP} {{ u = x; w.x = w.x * b + u.x * u.y; }} w.y = u.y;",
    "subscript in the loop": f"C x = {{ v.x, v.y }}, u = {{ b, b }}; x[1] = a; {LOOP} {{ u = x; x[0] = sin(u[1] * a); x[1] = sin(u[0] * b); }} w.y = u.y;",
    "macro": f"P x = {{ v.x, v.y }}, u = {{ b, b }}; SET(a); {LOOP} {{ u = x; w.x = w.x * b + u.x * u.y; }} w.y = u.y;",
    # Elements that are read at two places which meet.
    "of a default method": "Default d; float x[2] = { a, b }; w.x = d.pick(x, n - 1);",
    "of what a function returns": f"var x = made(a, b); {LOOP} w.x += x[i] * x[(2 * i) % 2]; w.y = x[n - 1] * x[0];",
}
RESULTS = {
    "row": "x[1][0] + x[0][1]", "struct": "x.x + x.y", "copied struct": "x.x + x.y", "nested struct": "x.p.x + x.p.y * x.y",
    "subscript": "x.x + x.y", "subscript in the loop": "x.x + x.y", "macro": "x.x + x.y",
    "of a default method": "x[0]", "of what a function returns": "x[1]",
    "array": "x[0] + x[1]", "vectors": "x[0].x + x[1].y",
}  # fmt: skip
HEAD = """
struct P : IDifferentiable
{
    float x, y;
    [Differentiable] float2 state(float2 k, int n)
    {
        float2 u = float2(y, x);
        k.y = x;
        [MaxIters(4)] for (int i = 0; i < n + 1; i++) { k = sin(k); u = k.xx - u; }
        return k + u;
    }
}
struct C : IDifferentiable
{
    float x, y;
    __subscript(int i) -> float
    {
        [Differentiable] get { return i == 0 ? x : y; }
        [Differentiable] set { if (i == 0) x = newValue; else y = newValue; }
    }
}
interface IDefault { [Differentiable] float pick(float v[2], int n) { return v[n % 2] * v[0]; } }
struct Default : IDefault { int unused; }
[Differentiable] void set(inout P p, float a) { p.x = a; p.y = a * a; }
#define SET(a) set(x, a)
[Differentiable] float[2] made(float a, float b) { float r[2] = { a * b, b }; return r; }
struct Q : IDifferentiable { float2 p; float y; }
[Differentiable] void change(float a, inout float y) { y = a + y * 0.5f; }
[Differentiable] void give(float a, out float y) { y = a * 2.0f; }
[Differentiable] P next(P x, float k) { P r = { sin(x.x) + k * x.y, x.y * 0.5f }; return r; }
[Differentiable] void advance(inout P x, float k) { x = next(x, k); }
[Differentiable] Q turn(Q x, float k) { Q r = { sin(x.p) + k, x.y * 0.5f }; return r; }
[Differentiable] float[2] moved(float x[2], float k) { float r[2]; r[0] = sin(x[0]) + x[1] * k; r[1] = x[1] * 0.5f; return r; }
[Differentiable] float2[2] mixed(float2 x[2], float k) { float2 r[2]; r[0] = sin(x[0]) + x[1] * k; r[1] = x[1] * 0.5f; return r; }
[Differentiable] vector<T, N> generic<T : __BuiltinFloatingPointType, let N : int>(vector<T, N> x, T a, int n)
{
    vector<T, N> w = x * T(0.5f);
    x[1] = a;
    [MaxIters(4)] for (int i = 0; i < n + 1; i++) { x = sin(x); w = x - w; }
    return x + w;
}
"""
FORMS = {
    name: f"float2 w = float2(0.0f, 0.0f);\n    {body}\n    return {RESULTS.get(name, 'x.x + 2.0f * x.y')} + w.x * 0.7f - w.y;"
    for name, body in BODIES.items()
}


@pytest.mark.needs_kernels
def test_gradients(device: spy.Device) -> None:
    check_forms(device, "carried", HEAD, FORMS)
