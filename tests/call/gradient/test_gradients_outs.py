"""Variables that a call wrote (`out`, `inout`) and a loop reads: Slang 2026.12 counts their gradient once when the loop adds
them in each iteration, so sources are changed before it sees them."""

from __future__ import annotations

import numpy as np
import pytest

import slangpy as spy

LOOP = "[MaxIters(3)] for (int i = 0; i < 3; i++)"
BODIES = {
    "inout": f"float c = b; half_of(a, c); {LOOP} {{ a = a + c; }} return a;",
    "out": f"float c; made(b, c); {LOOP} {{ a += c; }} return a * c;",
    "out of the core module": f"float s, c; sincos(b, s, c); {LOOP} {{ a += s; a = a - c; }} return a;",
    "the parameter itself": f"half_of(a, b); {LOOP} a = a + b; return a;",
    "assigned": f"half_of(a, b); {LOOP} {{ a = b; }} return a;",
    "copy": f"float c = b; half_of(a, c); float d = c; {LOOP} {{ a = a + d; }} return a;",
    "in a branch of the loop": f"float c = b; half_of(a, c); {LOOP} {{ if (i > 0) a = a + c; else a = max(a, c); }} return a;",
    "in a conditional": f"float c = b; half_of(a, c); {LOOP} {{ a = i > 0 ? a + c : c; }} return a;",
    "into a call": f"float c = b; half_of(a, c); {LOOP} {{ a = sum(a, c); }} return a;",
    "within an expression": f"float c = b; float d = 2 * half_of(a, c) + sum(a, c); {LOOP} {{ a = a + c; }} return a + d;",
    "in a condition": f"float c = b; if (half_of(a, c) > 0.1) {{ {LOOP} {{ a = a + c; }} }} else {{ a = c; }} return a;",
    "in a branch": f"float c = b; if (a > 0.4) half_of(a, c); else made(a, c); {LOOP} {{ a = a + c; }} return a;",
    "nested": f"{LOOP} {{ float c = b; half_of(a, c); [MaxIters(2)] for (int k = 0; k < 2; k++) {{ a = a + c; }} }} return a;",
    "while": "float c = b; half_of(a, c); int i = 0; [MaxIters(3)] while (i < 3) { a += c; i++; } return a;",
    "do": "float c = b; half_of(a, c); int i = 0; [MaxIters(3)] do { a += c; i++; } while (i < 3); return a;",
    "do without braces": f"float c = b; int k = 0; [MaxIters(2)] do half_of(a, c); while (++k < 2); {LOOP} a += c; return a;",
    "vector": f"float2 c = float2(a, b); half_of_vector(c); float2 r = float2(b, a); {LOOP} {{ r = r + c; }} return r.x * r.y;",
    "generic vector": f"vector<float, 2> c = float2(a, b); half_of_vector(c); float2 r = float2(b, a); {LOOP} {{ r += c; }} return r.x * r.y;",
    "matrix": f"float2x2 c = float2x2(a, b, a * b, b); half_of_matrix(c); float2x2 r = c; {LOOP} {{ r = r + c; }} return r[0][0] * r[1][0];",
    "a struct's field": f"Pair c = {{ a, b }}; half_of(a, c.y); {LOOP} {{ a = a + c.y; }} return a;",
    "a field of a field": f"Box c; c.pair.x = b; c.pair.y = b; c.z[0] = a; c.z[1] = b; half_of(a, c.pair.x); half_of(a, c.z[1]); {LOOP} {{ a = a + c.pair.x - c.z[1] * 2 + c.z[1]; }} return a;",
    "an element of an array": f"float c[2] = {{ a, b }}; half_of(a, c[1]); {LOOP} {{ a += c[1]; }} return a;",
    "an element of a vector": f"float2 c = float2(a, b); half_of(a, c[1]); {LOOP} {{ a += c[1]; }} return a;",
    "a row of a matrix": f"float2x2 c = float2x2(a, b, a * b, b); half_of_vector(c[1]); float2 r = float2(b, a); {LOOP} {{ r += c[1]; }} return r.x * r.y;",
    "members of a method": "Box c; c.z[0] = b; c.z[1] = a; c.pair.x = b; return c.sums(a);",
    "overloads": f"float c = b; twice(c); twice(c, a); {LOOP} {{ a = a + c; }} return a;",
    "in a for's header": f"{LOOP.replace('i', 'k').replace('knt', 'int').replace('Maxkters', 'MaxIters')} {{ [MaxIters(1)] for (float c = b, d = half_of(a, c); d > 10; d = 0) a += c; }} {LOOP} {{ a += b; }} return a;",
    "constants and other types of the name": f"{{ const float c = a; a = sum(c, other(c)); }} {{ Pair c = {{ a, b }}; a += second(c); }} {{ float c[2] = {{ a, b }}; a += last(c); }} {LOOP} {{ a += b; }} return a;",
    "an element behind the loop": f"float2 c = float2(a, b); float2 r = 0; {LOOP} {{ r += c; }} made(a, c.y); return r.y * c.x + r.x - c.y;",
    "an element behind the loop, by hand": f"float2 c = float2(a, b); float2 r = 0; {LOOP} {{ r += c; }} float t; made(a, t); c.y = t; return r.y - c.y + c.x;",
    "an element of three behind the loop": f"float3 c = float3(a, b, 1); float3 r = 0; {LOOP} {{ r += c; }} half_of(a, c[0]); return r.y * r.x - c.x + c.y;",
    "an initializer list": f"float c = b; float2 d = {{ half_of(a, c), 1 }}; {LOOP} {{ a += c; }} return a * d.x;",
}
HEAD = """
struct Pair : IDifferentiable { float x; float y; }
[Differentiable] float half_of(float a, inout float c) { c = c * 0.5; return a; }
struct Box : IDifferentiable
{
    Pair pair; float z[2];
    [Differentiable] [mutating] float sums(float a)
    {
        half_of(a, pair.x); half_of(a, this.z[0]);
        [MaxIters(3)] for (int i = 0; i < 3; i++) { a += pair.x; a += this.z[0]; }
        return a;
    }
}
[Differentiable] void twice(inout float c) { c = c * 2; }
[Differentiable] void twice(float c, inout float d) { d = d + c; }
[Differentiable] void made(float a, out float c) { c = a; }
[Differentiable] void half_of_vector(inout float2 c) { c = c * 0.5; }
[Differentiable] void half_of_matrix(inout float2x2 c) { c = c * 0.5; }
[Differentiable] float sum(float a, float b) { return a + b; }
[Differentiable] float other(float a) { return a; }
[Differentiable] float second(Pair p) { return p.y; }
[Differentiable] float last(float c[2]) { return c[1]; }
"""


@pytest.mark.needs_kernels
@pytest.mark.parametrize("name", BODIES)
def test_gradients(device: spy.Device, name: str) -> None:
    source = f"{HEAD}[Differentiable] float f(float a, float b)\n{{\n    {BODIES[name]}\n}}"
    label = f"outs_{list(BODIES).index(name)}"
    f = spy.Module.load_from_source(device, label, source).f
    exact = spy.Module.load_from_source(spy.Device(type="cpu"), label + "d", source.replace("float", "double")).f
    a, b, step = np.array([0.3, 0.5, 0.9]), np.array([0.2, 0.7, 0.45]), 1e-6
    x, y = (spy.Tensor.from_numpy(device, v.astype(np.float32)).with_grads(zero=True) for v in (a, b))
    seed = spy.Tensor.from_numpy(device, np.zeros(3, np.float32)).with_grads()
    seed.grad.copy_from_numpy(np.ones(3, np.float32))
    f.bwds(x, y, _result=seed)
    by_a = (exact(a + step, b, _result="numpy") - exact(a - step, b, _result="numpy")) / (2 * step)
    by_b = (exact(a, b + step, _result="numpy") - exact(a, b - step, _result="numpy")) / (2 * step)
    np.testing.assert_allclose(x.grad.to_numpy(), by_a, rtol=2e-4, atol=1e-5)
    np.testing.assert_allclose(y.grad.to_numpy(), by_b, rtol=2e-4, atol=1e-5)
    np.testing.assert_allclose(f(x, y, _result="numpy"), exact(a, b, _result="numpy"), rtol=1e-5, atol=1e-6)
