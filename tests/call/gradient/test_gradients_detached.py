"""`no_diff` parameters as components, elements and values of variables: Slang 2026.12 had an internal error in .fwds where what
they are part of is an operand or is read at a run-time index, one in .bwds where an element becomes such a value, and crashed
where a whole array does. Sources are changed before it sees them."""

from __future__ import annotations

import pytest
from gradient_forms import check_forms

import slangpy as spy

pytestmark = pytest.mark.one

SUM = "return q.x * q.y + q.z;"
PAIR = "r[n] *= x; return r[0] * r[1] + r[n] * y;"
LOOP = "[MaxIters(4)] for (int i = 0; i < n + 1; i++)"
COMPONENTS = {
    "times": f"float3 q = float3(c, x, y) * w; {SUM}",
    "minus": f"float3 q = float3(c, x, c) - w; {SUM}",
    "generic type": f"float3 q = vector<float, 3>(x, c, y) * w; {SUM}",
    "converted": f"float3 q = float3(float(c), x, y) * w; {SUM}",
    "a copy": f"float d = c; float3 q = float3(d, x, y) * w; {SUM}",
    "a constant": f"const float d = c; float3 q = float3(d, x, y) * w; {SUM}",
    "let": f"let d = c; float3 q = float3(d, x, y) * w; {SUM}",
    "var": f"var d = c; d += x; float3 q = float3(d, x, y) * d; {SUM}",
    "var of a product": f"var d = c; d += x; float3 q = w * d; {SUM}",
    "a part of it": f"float3 q = float3(k.x, x, c) * w; {SUM}",
    "no operand": f"float3 q = float3(c, x, c); {SUM}",
    "matrix": "float2x2 q = float2x2(c, x, y, c) * float2x2(x, x, y, y); return q[0][0] + q[1][1] * q[0][1];",
    "mul": "float2 q = mul(float2x2(float2(c, x), float2(x, y)), float2(x, y)); return q.x * q.y;",
    "dot": "return dot(float2(c, x), float2(y, c)) * dot(float3(c, x, y), w);",
    "lerp": "return length(lerp(float2(c, x), float2(y, x), c));",
    "hidden": f"{{ float c = x * y; w *= float3(c, c, x); }} float3 q = float3(x, y, c) + w; {SUM}",
    "brackets": f"float3 q = float3((c), x, +c) * w; {SUM}",
    "assigned": f"float d; d = c; float e = d, o = c; float3 q = float3(d, e, o) * w; {SUM}",
    "arms": f"float3 q = float3(true ? c : x, n > 0 ? c : c, x) * w; {SUM}",
    "vector": f"float3 q = float3(k, x) * w; {SUM}",
    "list": f"float3 q = {{ c, x, c }}; q *= w; {SUM}",
    "rows": "float2x2 q = { k, { x, c } }; q *= y; return q[0][0] * q[1][0] + q[0][1] * q[1][1];",
    "argument": "return product({ c, x }, { y, c, x });",
    "result": "float2 q = pair_of(c, x) * y; return q.x * q.y;",
    "generic": "return generic(x, c, n) + generic_vector(w, float3(0.5f, c, 1), n);",
    "not given": "return with_default(x, n);",
    "changed": f"c = x; float3 q = float3(c, y, c) * w; {SUM}",
    "changed vector": f"k = w.yz * x; float3 q = float3(k, y) * w; {SUM}",
    "stepped": f"c++; c *= x; float3 q = float3(c, y, c) * w; {SUM}",
}  # fmt: skip
ELEMENTS = {
    "array": f"float r[2] = {{ c, x }}; {PAIR}",
    "all": f"float r[2] = {{ c, c + c }}; {PAIR}",
    "size not given": f"float r[] = {{ x, c }}; {PAIR}",
    "Array": f"Array<float, 2> r = {{ c, x }}; {PAIR}",
    "constructor": f"var r = float[2](c, x); {PAIR}",
    "sum": f"float r[5] = {{ x, y, w.x, c, y }}; {LOOP} r[i + 2] *= tanh(x + r[i]); return r[2] * r[3] + r[0];",
    "in a loop": f"float s = 0; {LOOP} {{ float r[2] = {{ c, x * i }}; r[i % 2] *= y; s += r[0] + r[1]; }} return s;",
    "break": f"float r[2] = {{ c, x }}; {LOOP} {{ if (r[i % 2] < c) break; r[i % 2] *= x; }} return r[0] * r[1];",
    "continue": f"float r[2] = {{ c, x }}; {LOOP} {{ if (i == n) continue; r[i % 2] *= x; }} return r[0] * r[1];",
    "return": f"float r[2] = {{ c, x }}; {LOOP} {{ if (i == n) return r[i % 2] * x; r[i % 2] *= y; }} return r[0];",
    "while": "float r[2] = { c, x }; int i = 0; [MaxIters(4)] while (i <= n) { r[i % 2] *= y; i++; } return r[0] * r[1];",
    "do": "float r[2] = { c, x }; int i = 0; [MaxIters(4)] do { r[i % 2] *= y; i++; } while (i <= n); return r[0] * r[1];",
    "unrolled": "float d = y; [ForceUnroll] for (int i = 0; i < 2; i++) if (i == 1) d = c; float r[2] = { d, x }; "
    f"{PAIR}",
    "nested loops": f"float r[2] = {{ c, x }}; {LOOP} [MaxIters(2)] for (int j = i; j < 2; j++) r[(i + j) % 2] *= tanh(y + c); "
    "return r[0] * r[1];",
    "switch": f"float r[2] = {{ c, x }}; switch (n) {{ case 1: r[n] = c; break; default: r[n] *= c; }} {PAIR}",
    "carried": f"float d = c; {LOOP} {{ float r[2] = {{ d, x }}; r[i % 2] *= y; d = r[0] * r[1]; }} return d;",
    "arrays": "float r[2][2] = { { c, x }, g }; r[n][n] *= y; return r[0][0] * r[0][1] + r[1][0] * r[1][1];",
    "vectors": "float2 r[2] = { k, w.xy }; r[n].x *= x; return r[0].x * r[1].x + r[0].y * r[n].y;",
    "structs": "P r[2] = { s, { c, w.xy } }; r[n].p *= x; return r[0].p * r[1].p + r[0].q.x * r[1].q.y;",
    "a struct": "H r = { { c, x }, s, c }; r.r[n] *= y; r.s.p *= x; return r.r[0] * r.r[1] + r.s.p * r.u;",
    "a whole array": f"float r[2] = g; {PAIR}",
    "an array later": f"float r[2]; r = g; {PAIR}",
    "var": f"var r = g; {PAIR}",
    "a whole struct": "P r = s; P o[2] = { r, { x, w.xy } }; o[n].p *= x; return o[0].p * o[1].q.x + o[n].p;",
    "set": "float r[2] = { x, y }; r[n] = c; return r[0] * r[1];",
    "set in brackets": "float r[2] = { x, y }; r[n] = (c); return r[0] * r[1];",
    "set in a loop": f"float r[2] = {{ x, y }}; {LOOP} {{ r[1] *= r[0]; r[i % 2] = c; }} return r[0] * r[1];",
    "set a component": "w.y = c; return w.x * w.y;",
    "set a row": "float2x2 m = float2x2(x, y, y, x); m[n] = k; m[0][1] = c; return m[0][0] * m[1][0] + m[0][1] * m[1][1];",
    "set a field": "P r = { x, w.xy }; r.q.x = c; r.p *= x; return r.p * r.q.x + r.q.y;",
    "set by a call": "put(w.x, c); return w.x * w.y;",
    "a field": "U u = { x, c }; return u.product(y, n);",
    "changed": "c = x * y; float r[2] = { c, x }; r[n] *= c; return r[0] * r[1];",
}  # fmt: skip
BODIES = COMPONENTS | {f"elements, {name}": body for name, body in ELEMENTS.items()}
HEAD = """
struct P : IDifferentiable { float p; float2 q; }
struct H : IDifferentiable { float r[2]; P s; no_diff float u; }
struct U : IDifferentiable
{
    float k;
    no_diff float u;
    [Differentiable] float product(float x, int n) { float r[2] = { u, x }; r[n] *= k; return r[0] * r[1]; }
}
[Differentiable] float product(float2 a, float3 b) { a *= b.x; return a.x * a.y * b.z; }
[Differentiable] float2 pair_of(no_diff float c, float x) { return { c, x }; }
[ForceInline] [Differentiable] void put(out float x, no_diff float c) { x = c; }
[Differentiable] float with_default(float x, int n, no_diff float c = 0.5f) { float r[2] = { c, x }; r[n] *= x; return r[0] * r[1]; }
[Differentiable] T generic<T : __BuiltinFloatingPointType>(T x, no_diff T c, int n)
{
    T r[2] = { c, x };
    r[n] *= x;
    return r[0] * r[1];
}
[Differentiable] float generic_vector<let N : int>(vector<float, N> x, no_diff vector<float, N> c, int n)
{
    vector<float, N> r[2] = { c, x };
    r[n][0] *= x[0];
    return r[0][0] * r[1][0];
}
""" + "".join(
    "[Differentiable] float "
    f"g{number}(float x, no_diff float c, no_diff float2 k, no_diff float g[2], no_diff P s, float y, float3 w, int n) {{ {body} }}\n"
    for number, body in enumerate(BODIES.values())
)
ARGUMENTS = "a, 0.5f, float2(0.25f, 0.75f), { 0.3f, 0.6f }, { 0.4f, { 0.8f, 0.9f } }, b, v, n"
FORMS = {name: f"return g{number}({ARGUMENTS});" for number, name in enumerate(BODIES)}


@pytest.mark.needs_kernels
def test_gradients(device: spy.Device) -> None:
    check_forms(device, "detached", HEAD, FORMS, n=(0, 1))


TYPES = """
interface IShape : IDifferentiable { [Differentiable] float size(float x); }
struct Ball : IShape { float r; [Differentiable] float size(float x) { return x * r; } }
struct Plain { float p; float2 q; }
struct Pair : IDifferentiable { float p; float2 q; }
typedef Pair Other;
typealias Colour = float3;
"""
USES = """
#define PUT(c, x) float2((c), x)
[Differentiable] float balls(float x, no_diff Ball c, int n) { Ball r[2] = { c, { x } }; r[n].r *= x; return r[0].size(x) * r[1].r; }
[Differentiable] float pairs(float x, no_diff Other c, int n) { Pair r[2] = { c, c }; r[n].p *= x; return r[0].p * r[1].p; }
[Differentiable] float plain(float x, no_diff Plain c, int n) { Plain r[2] = { c, c }; r[n] = c; return r[0].p * r[n].q.x * x; }
[Differentiable] float colours(float x, no_diff Colour c, int n) { Colour r[2] = { c, float3(x) }; r[n] *= x; return dot(r[0], r[1]); }
[Differentiable] float counts(float x, no_diff int3 c, int n) { int3 r[2] = { c, 2 }; r[n] = c; return x * r[0].x * r[1].y; }
"""


@pytest.mark.needs_kernels
@pytest.mark.parametrize("is_imported", [False, True])
def test_types(device: spy.Device, is_imported: bool) -> None:
    """What has a derivative is seen in imported files, too; other types have no detach()."""
    spy.Module.load_from_source(device, "detached_types", TYPES)
    text = f"import detached_types;\n{USES}" if is_imported else TYPES + USES
    module = spy.Module.load_from_source(device, f"detached_uses_{is_imported}", text)
    pair = {"p": 0.5, "q": spy.float2(0.25, 0.75)}
    for name, value, tangent in (
        ("balls", {"r": 0.5}, 3 * 0.5 * 0.7**2),
        ("pairs", pair, 0.25),
        ("plain", pair, 0.125),
        ("colours", spy.float3(0.5, 0.25, 0.75), 2 * 0.7 * 1.5),
        ("counts", spy.int3(2, 3, 1), 6.0),
    ):
        function = getattr(module, name)
        assert function.fwds(spy.diffPair(0.7, 1.0), value, 1).grad == pytest.approx(tangent, rel=1e-5), name
        x = spy.diffPair(0.7)
        function.bwds(x, value, 1, _result=spy.diffPair(0.0, 1.0))
        assert x.grad == pytest.approx(tangent, rel=1e-5), name
