"""Variables that a call wrote (`out`, `inout`) and a loop reads: Slang 2026.12 counts their gradient once when the loop adds
them in each iteration, so sources are changed before it sees them."""

from __future__ import annotations

import numpy as np
import pytest
from gradient_forms import check_forms
from tiers import gate

import slangpy as spy

pytestmark = pytest.mark.one

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
    "an array": f"float c[3] = {{ a, b, 1 }}; scaled(c, a); float d[3] = {{ b, a, b }}; {LOOP} {{ b += c[i] * d[i]; }} return b;",
    "an array, copied": f"float c[3] = {{ a, b, 1 }}; scaled(c, b); float d[3] = c; {LOOP} {{ b += d[i] * d[i] + c[i]; }} return b;",
    "an array that loops fill": f"float c[3]; {LOOP} c[i] = a * i + b; scaled(c, b); float r = 0; {LOOP} r += c[i] * (i + a); return r;",
    "a struct": f"Pair c = {{ a, b }}; moved(a, c); Pair d = {{ 0, 0 }}; {LOOP} {{ d = c; b += d.x * d.y; }} return b + d.x;",
    "a struct, out": f"Pair c; paired(a, b, c); Pair d = {{ 0, 0 }}; {LOOP} {{ d = c; b += d.x * d.y; }} return b + d.x;",
    "a struct of structs": f"Box c; c.pair.x = a; c.pair.y = b; c.z[0] = b; c.z[1] = a; moved(b, c.pair); scaled2(c.z); Box d = c; {LOOP} {{ d = c; a += d.pair.x * d.z[i % 2]; }} return a + d.z[1];",
    "a method": f"Box c; c.pair.x = a; c.pair.y = b; c.z[0] = b; c.z[1] = a; c.grow(b); Box d = c; {LOOP} {{ d = c; a += d.pair.x * d.z[0]; }} return a + d.z[1];",
    "a method of an element": f"Box q; q.pair = {{ a, b }}; q.z[0] = a; q.z[1] = b; Box c[2] = {{ q, q }}; c[1].grow(a); {LOOP} {{ Box d = c[1]; a += d.pair.x * d.z[0] + c[0].z[1]; }} return a;",
    "a parameter that is a struct": "Pair c = { a, b }; return copied(c, b);",
    "a generic struct": f"Two<float2> c = {{ float2(a, b), float2(b, 1) }}; flipped<float2>(c); Two<float2> d = c; {LOOP} {{ d = c; a += dot(d.first, d.second); }} return a + d.first.x;",
    "a struct changed and copied": f"Box c; c.pair = {{ a, b }}; c.z[0] = b; c.z[1] = a; c.grow(b); Box d = c; {LOOP} {{ d = c; a += d.pair.x * d.z[0]; d.grow(a); }} return a + d.pair.x;",
    "a method of a generic": "Box c; c.pair = { a, b }; c.z[0] = b; c.z[1] = a; return grown(c, a, b);",
    "arrays that are fields": "Fields c; c.z[0] = a; c.z[1] = b; c.z[2] = 1; return c.sums(b) + c.z[0];",
    "an alias": f"Three c = {{ a, b, 1 }}; scaled(c, a); {LOOP} {{ b += c[i] * a; }} return b;",
    "var": f"float q[3] = {{ a, b, 1 }}; var c = q; scaled(c, a); {LOOP} {{ b += c[i] * q[i]; }} return b;",
    "a row": f"float c[2][3] = {{ {{ a, b, 1 }}, {{ b, a, a }} }}; int k = 0; scaled(c[k + 1], a); {LOOP} {{ b += c[1][i] * c[0][i]; }} return b;",
    "an array of any size": f"float c[3] = {{ a, b, 1 }}; stepped<3>(c, a); stepped(c, b); {LOOP} {{ b += c[i] * a; }} return b;",
    "structs that are not differentiable": f"Count c = {{ 2, 1 }}; counted(c); float d[2] = {{ a, b }}; {LOOP} {{ Count e = c; a += d[e.k % 2] * e.k; }} return a;",
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
[Differentiable] void scaled(inout float c[3], float k) { float sum = k; for (int i = 0; i < 3; i++) sum += c[i]; for (int i = 0; i < 3; i++) c[i] *= sum; }
[Differentiable] void scaled2(inout float c[2]) { float k = c[0]; c[0] *= c[1]; c[1] += k; }
[Differentiable] void moved(float a, inout Pair p) { p.x = p.y * a; p.y += a; }
[Differentiable] void paired(float a, float b, out Pair p) { p.x = a * b; p.y = b; }
[Differentiable] float copied(Pair p, float b) { moved(b, p); Pair d = p; [MaxIters(3)] for (int i = 0; i < 3; i++) { d = p; b += d.x * d.y; } return b + d.y; }
interface IGrow : IDifferentiable { [Differentiable] [mutating] void grow(float k); [Differentiable] float sum(); }
extension Box : IGrow { [Differentiable] float sum() { return pair.x * z[0] + pair.y * z[1]; } [Differentiable] [mutating] void grow(float k) { pair.x *= k; z[0] += pair.y; z[1] *= z[0]; } }
struct Two<T : IDifferentiable> : IDifferentiable { T first; T second; }
[Differentiable] void flipped<T : IDifferentiable>(inout Two<T> p) { T k = p.first; p.first = p.second; p.second = k; }
[Differentiable] float grown<T : IGrow>(T t, float a, float b) { t.grow(a); T u = t; [MaxIters(3)] for (int i = 0; i < 3; i++) { u = t; b += u.sum() * a; } return b + u.sum(); }
struct Fields : IDifferentiable { float z[3]; [Differentiable] [mutating] float sums(float b) { scaled(z, b); [MaxIters(3)] for (int i = 0; i < 3; i++) b += z[i] * b; scaled(this.z, b); [MaxIters(3)] for (int i = 0; i < 3; i++) b += z[i]; return b; } }
typealias Three = float[3];
[Differentiable] void stepped<let N : int>(inout float c[N], float k) { [ForceUnroll] for (int i = 0; i < N; i++) k += c[i]; [ForceUnroll] for (int i = 0; i < N; i++) c[i] *= k; }
struct Count { int k; int l; }
void counted(inout Count c) { c.k += c.l; }
[Differentiable] float last(float c[2]) { return c[1]; }
"""


IMPORTED = {
    "half_of": "float c = b; half_of(a, c); [MaxIters(3)] for (int i = 0; i < 3; i++) a += c; return a;",
    "an array": BODIES["an array"],
    "a struct": BODIES["a struct"],
    "a method": BODIES["a struct changed and copied"],
    "a generic": "Box c; c.pair = { a, b }; c.z[0] = b; c.z[1] = a; return own(c, a, b);",
}


def _check(device: spy.Device, label: str, source: str, library: str = "") -> None:
    """Gradients of f(a, b) against differences in double precision."""
    cpu = spy.Device(type=spy.DeviceType.cpu)
    for owner, kind, to in ((device, "", "float"), (cpu, "d", "double")):
        if library:
            spy.Module.load_from_source(owner, f"{label}_library{kind}", library.replace("float", to))
    f = spy.Module.load_from_source(device, label, source).f
    exact_source = source.replace("float", "double").replace(f"{label}_library", f"{label}_libraryd")
    exact = spy.Module.load_from_source(cpu, label + "d", exact_source).f
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


@pytest.mark.needs_kernels
def test_gradients(device: spy.Device) -> None:
    check_forms(device, "call_outputs", HEAD, BODIES, n=(0, 1, 2))


@pytest.mark.needs_kernels
@pytest.mark.parametrize("name", gate(IMPORTED, lambda name: name in ("an array", "a method", "a generic")))
def test_functions_of_an_imported_module(device: spy.Device, name: str) -> None:
    label = f"outs_imported_{list(IMPORTED).index(name)}"
    own = "[Differentiable] float own<T : IGrow>(T t, float a, float b) { t.grow(a); T u = t; [MaxIters(3)] for (int i = 0; i < 3; i++) { u = t; b += u.sum() * a; } return b; }\n"
    source = f"import {label}_library;\n{own}[Differentiable] float f(float a, float b) {{ {IMPORTED[name]} }}"
    _check(device, label, source, HEAD)


@pytest.mark.needs_kernels
def test_one_function_in_each_branch_of_the_preprocessor(device: spy.Device) -> None:
    body = "float c[3] = { a, b, 1 }; scaled(c, a); [MaxIters(3)] for (int i = 0; i < 3; i++) b += c[i] * c[i / 2]; return b;"
    one = f"[Differentiable] float f(float a, float b) {{ {body} }}\n"
    _check(device, "outs_branches", f"{HEAD}#ifdef NOT_DEFINED\n{one}#else\n{one}#endif\n")


def test_lines_of_messages() -> None:
    body = "\n    float c[3] = { a, b, 1 }; scaled(c, a); b += undefined_name;\n    [MaxIters(3)] for (int i = 0; i < 3; i++) b += c[i];\n    return b;\n"
    source = f"{HEAD}\n[Differentiable] float f(float a, float b) {{{body}}}\n"
    with pytest.raises(spy.SlangCompileError) as raised:
        spy.Module.load_from_source(spy.Device(type=spy.DeviceType.cpu), "outs_lines", source)
    assert f"outs_lines:{source[: source.index('undefined')].count(chr(10)) + 1}:" in str(raised.value)
    assert "scaled(c, a); b += undefined_name;" in str(raised.value) and "_spy_same" not in str(raised.value)


@pytest.mark.needs_kernels
def test_second_derivatives(device: spy.Device) -> None:
    torch = pytest.importorskip("torch")
    source = f"{HEAD}[Differentiable] float f(float a, float b) {{ {BODIES['an array']} }}"
    f = spy.Module.load_from_source(device, "outs_second", source).f

    def expected(a, b):
        s = 2 * a + b + 1
        return b + s * (a * b + b * a + b)

    inputs = np.array([0.3, 0.5, 0.9]), np.array([0.2, 0.7, 0.45])
    found = []
    place = device.torch_device or torch.device("cpu")
    for function, dtype in ((f, torch.float32), (expected, torch.float64)):
        a, b = (torch.tensor(v, dtype=dtype, device=place, requires_grad=True) for v in inputs)
        by_a, by_b = torch.autograd.grad(function(a, b).sum(), (a, b), create_graph=True)
        found.append([by_a, by_b, *torch.autograd.grad((by_a * by_b + by_a).sum(), (a, b))])
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one.detach().cpu().numpy(), other.detach().cpu().numpy(), rtol=1e-4)
