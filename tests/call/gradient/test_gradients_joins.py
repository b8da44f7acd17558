"""Variables that are written in part where branches or loops meet: Slang 2026.12 copied one variable over another, so that
values, tangents and gradients were wrong in silence. Sources are changed before it sees them."""

from __future__ import annotations

import pytest
from gradient_forms import check_forms

import slangpy as spy

pytestmark = pytest.mark.one

LOOP = "[MaxIters(4)] for (int i = 0; i < n + 1; i++)"
VECTORS = "float3 x = v.zxy * a; "
PAIR = "float2 x = v.xy; float2 y = v.yz; "
STRUCTS = "P x = { a, v.xy }; P y = { b, v.yz }; "
ARRAYS = "float x[2] = { a, v.x }, y[2] = { b, v.y }; "
OF_PAIR = "return x.x * x.y + y.x * y.y * 0.7f;"
OF_STRUCTS = "return x.p * x.q.x + x.q.y * y.p + y.q.x * y.q.y * 0.7f;"
OF_ARRAYS = "return x[0] * x[1] + y[0] * 0.6f - y[1];"
BODIES = {
    "vectors": f"{VECTORS}if (a > b) v.y *= b; else x.z += tanh(a * x.z); return x[1] * x[2] + v.x * v.y;",
    "one branch": f"{VECTORS}if (a > b) v.y *= b; else x = sin(x); return x[1] * x[2] + v.x * v.y;",
    "no else": f"{VECTORS}if (a > b) {{ v.y *= b; x = sin(x); }} return x[1] * x[2] + v.x * v.y;",
    "by calls": f"{VECTORS}if (a > b) change(a, v.y); else give(b, x.z); return x[1] * x[2] + v.x * v.y;",
    "nested": f"{PAIR}if (a > 0.1f) {{ if (a > b) x.y *= a; else y.x *= b; }} else y.y = a; {OF_PAIR}",
    "three": f"{VECTORS}float3 z = x * a; if (a > b) v.y = a; else if (b > 0.5f) x.y = a; else z.y = b; x += z; return x[1] * v.y;",
    "swapped": f"{VECTORS}if (a > b) {{ v.y = b; float3 t = x; x = v; v = t; }} return x[1] * x[2] + v.x * v.y;",
    "before the branch": f"{PAIR}x.y = a; if (a > b) {{ x = y; y = sin(y); }} {OF_PAIR}",
    "continue": f"{PAIR}{LOOP} {{ if (a > b) {{ x.x *= b; continue; }} y.y *= a; }} {OF_PAIR}",
    "return": f"{VECTORS}if (a > b) {{ v.y = a; return v.x * v.y + x.x; }} x.y = a; return x[1] * v.y;",
    "matrices": "float2x2 x = float2x2(v.xy, v.yz), m = float2x2(a, b, b, a); if (a > b) m[1][0] = a; else x[1][1] *= b; "
    "return x[0][0] * m[1][0] + m[0][1] * x[1][1];",
    "names of types": f"Two x = v.xy; Two y = v.yz; if (a > b) x.y *= a; else y.x *= b; {OF_PAIR}",
    "made of the other": f"Two x = v.xy; Two y = x * a; if (a > b) x.y = y.y; {OF_PAIR}",
    "in brackets": f"float2 x = v.xy; float2 y = x * a; if (a > b) (x.y = y.y); {OF_PAIR}",
    "assigned twice": f"float2 x = v.xy; float2 y = x * a; if (a > b) b = x.y = y.y; {OF_PAIR}",
    "var": f"var x = v.xy; var y = v.yz; if (a > b) x.y *= a; else y.x *= b; {OF_PAIR}",
    "generic": f"{PAIR}x = generic<float>(x, y, a, b) + generic<float>(y, x, b, a); {OF_PAIR}",
    "inout": f"{PAIR}both(x, y, a, b); both(x, y, b, a); {OF_PAIR}",
    "structs": f"{STRUCTS}if (a > b) y.p *= a; else x.q.y *= b; {OF_STRUCTS}",
    "both in one branch": f"{STRUCTS}if (a > b) {{ y.p *= a; x.q.y *= b; }} {OF_STRUCTS}",
    "a struct as a whole": f"{STRUCTS}if (a > b) y.p *= a; else x = y; {OF_STRUCTS}",
    "branches in a loop": f"{STRUCTS}{LOOP} {{ if (i > 0) y.p *= a; else x.q.y *= b; }} {OF_STRUCTS}",
    "before a loop": f"{STRUCTS}x.q[1] += a; {LOOP} {{ y.q[1] += tanh(a); x.q[0] = tanh(b); }} {OF_STRUCTS}",
    "copied in a loop": f"{STRUCTS}{LOOP} {{ y = x; x.q.x *= b; }} {OF_STRUCTS}",
    "structs by name": f"Same x = {{ a, v.xy }}; Same y = {{ b, v.yz }}; if (a > b) x.p *= a; else y.q.x *= b; {OF_STRUCTS}",
    "structs in structs": "Q x = { { a, v.xy }, b }, y = { { b, v.yz }, a }; if (a > b) x.i.q.x *= a; else y.z *= b; "
    "return x.i.p * x.i.q.x * y.z + y.i.q.y * x.z * x.i.q.y;",
    "of an object": "Q x = { { a, v.xy }, b }; x.turn(a, b); x.turn(b, a); return x.i.p * x.i.q.x + x.i.q.y * x.z;",
    "arrays": f"{ARRAYS}if (a > b) y[0] *= a; else x[n] *= b; {OF_ARRAYS}",
    "arrays in a loop": f"{ARRAYS}{LOOP} {{ if (i > 0) y[0] *= a; else x[1] *= b; }} {OF_ARRAYS}",
    "arrays of structs": "P x[2] = { { a, v.xy }, { b, v.yz } }, y[2] = { { b, v.xx }, { a, v.zz } }; if (a > b) x[0].q.y *= a; "
    "else y[1].p *= b; return x[0].p * x[0].q.y * y[1].p + y[1].q.y * y[0].p * x[1].p;",
    "arrays by name": "Pairs x; x[0].p = a; x[0].q = v.xy; x[1] = x[0]; Pairs y = x; if (a > b) x[0].q.y *= a; else y[1].p *= b; "
    "return x[0].p * x[0].q.y * y[1].p + y[1].q.y * y[0].p * x[1].p;",
    "structs of a function": f"let h = a; var x = made(h, v); var y = made(b, v.yzx); if (a > b) y.p *= h; else x.q.y *= b; {OF_STRUCTS}",
    "parts beside one another": f"{STRUCTS}x.p = a; x.q.y = b; y.q = v.yz; if (a > b) {{ x.q.x = b; x.p *= a; }} else {{ y.p = a; y.q.x *= b; }} {OF_STRUCTS}",
    "integers": "int2 i = int2(n, 0), j = int2(0, n); if (a > b) i.y = n + 1; else j.x = n * 2; return v[i.x] * v[i.y] + v[j.x] * v[j.y];",
    "bools": "bool2 i = bool2(n > 0, n < 0), j = bool2(n < 0, n > 0); if (a > b) i.y = n > -1; else j.x = n > -2; "
    "return (i.x ? a : b) * (i.y ? b : v.x) + (j.x ? v.y : b) * (j.y ? v.z : a);",
}  # fmt: skip
CASES = f"{VECTORS}switch (n) {{ case 1: v.y *= b; break; case 2: x.z *= b; break; default: x = sin(x); }} return x[1] * v.y;"
# The branch that is taken, and the other.
FORMS = {"switch": CASES} | BODIES | {f"{name} not": body.replace("a > b", "a < b") for name, body in BODIES.items() if "a > b" in body}
HEAD = """
struct P : IDifferentiable { float p; float2 q; }
struct Q : IDifferentiable
{
    P i;
    float z;
    [Differentiable] [mutating] void turn(float a, float b)
    {
        Q o = { { z, i.q }, b };
        if (a > b) i.p *= a; else o.i.q.y *= b;
        z += o.i.q.y;
        i.q *= o.z * o.i.p;
    }
}
typedef float2 Two;
typedef P Same;
typedef P Pairs[2];
[Differentiable] void change(float a, inout float y) { y = a * y; }
[Differentiable] P made(float a, float3 v) { P r = { a, v.xy }; return r; }
[Differentiable] void give(float a, out float y) { y = a * a; }
[Differentiable] void both(inout float2 x, inout float2 y, float a, float b) { if (a > b) x.y *= a; else y.x *= b; }
[Differentiable] vector<T, 2> generic<T : __BuiltinFloatingPointType>(vector<T, 2> x, vector<T, 2> y, T a, T b)
{
    if (a > b) x.y *= a; else y.x *= b;
    return x * y;
}
"""


@pytest.mark.needs_kernels
def test_gradients(device: spy.Device) -> None:
    check_forms(device, "joins", HEAD, FORMS)
