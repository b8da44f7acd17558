"""Gradients of what calls write through `out` in loops with branches, in forms that differ in type and place."""

import pytest

import slangpy as spy

SOURCE = """
struct S : IDifferentiable { float u; float v; }
[Differentiable] void w(float x, out float y) { y = x; }
[Differentiable] void ws(float x, out S s) { s.u = x; s.v = x * x; }
[Differentiable] void wa(float x, out float y[2]) { y[0] = x; y[1] = x * x; }
[Differentiable] void wv(float x, out float2 y, inout float z) { y = float2(x, z); z += x; }
[Differentiable] void wt<T : IFloat>(T x, out T y) { y = x; }
[Differentiable] float both(float x, out float y) { y = x; return x * x; }
[Differentiable] float[9] all(float p, float a, no_diff float c, int n)
{
    float b = a, d = a; S s = S(a, a); float h[2] = { a, a }; float2 v = a; float r[9];
    [MaxIters(7)] for (int i = 0; i < n; i++) { w(p, b); if (i % 2 == 0) b *= c; }
    r[0] = b;
    [MaxIters(7)] for (int i = 0; i < n; i++) { ws(p, s); if (i % 2 == 0) ws(c * p, s); }
    r[1] = s.u * s.v;
    [MaxIters(7)] for (int i = 0; i < n; i++) { wa(p, h); if (i % 2 == 0) h[0] = c * p; }
    r[2] = h[0] * h[1];
    [MaxIters(7)] for (int i = 0; i < n; i++) { wv(p, v, d); d += i % 2 == 0 ? v.y : a; }
    r[3] = d;
    [MaxIters(7)] for (int i = 0; i < n; i++) { wt(p, b); if (i == n - 1) break; b *= a; }
    r[4] = b;
    [MaxIters(7)] for (int i = 0; i < n; i++) { sincos(p, b, d); if (i % 2 == 0) b = c * p; }
    r[5] = b * d;
    int k = 0; d = 0;
    [MaxIters(7)] while (k < n) { switch (k++ % 2) { case 0: d += both(p, b); if (k > 2) b *= p; break; default: break; } d += b; }
    r[6] = d;
    d = 0;
    [MaxIters(7)] for (int i = 0; i < n; i++) for (int j = 0; j < 2; j++) { w(p * a, b); if ((i + j) % 2 == 0) d += b; }
    r[7] = d;
    d = 1;
    [MaxIters(7)] for (int i = 0; i < n; i++) { float e = both(p, d); if (i % 2 == 0) d += e; }
    r[8] = d;
    return r;
}
"""

CONDITIONS = """
struct S : IDifferentiable { float u; float v; }
[Differentiable] float w(float x, out float y) { y = x; return x; }
[Differentiable] bool is_up(float x, out float y) { y = x; return x > 0; }
[Differentiable] float two(float x, out float y, out float z) { y = x; z = x * x; return x; }
[Differentiable] float ws(float x, out S s) { s.u = x; s.v = x * x; return x; }
[Differentiable] float wv(float x, out float2 y) { y = float2(x, x * x); return x; }
[Differentiable] float wa(float x, out float y[2]) { y[0] = x; y[1] = x * x; return x; }
[Differentiable] T wt<T : IFloat>(T x, out T y) { y = x; return x; }
[Differentiable] float ifs(float p, float a, float b, int n)
{
    float c = a, d = a, r = 0; S s = S(a, a); float2 v = a; float h[2] = { a, a };
    [MaxIters(7)] for (int i = 0; i < n; i++) { if (is_up(p, c)) c *= b; if (i % 2 == 0) if (wt(p * b, d) > 0) d *= b; else d = a; }
    r += c * d;
    [MaxIters(7)] for (int i = 0; i < n; i++) { if (i == 1) c = a; else if (!((w(p, c)) < 0) && i < 9) { c *= b; } r += c; }
    [MaxIters(7)] for (int i = 0; i < n; i++) { if (two(p, c, d) > 0) c *= b; else d *= b; }
    r += c * d;
    [MaxIters(7)] for (int i = 0; i < n; i++) { if (ws(p, s) > 0) s.u *= b; if (wv(p, v) > 0) v.x *= b; if (wa(p, h) > 0) h[0] *= b; }
    return r + s.u * s.v + v.x * v.y + h[0] * h[1];
}
[Differentiable] float others(float p, float a, float b, int n)
{
    float c = a, d = a, r = 0;
    [MaxIters(7)] for (int i = 0; i < n; i++) c = w(p, c) > 0 ? c * b : c;
    r += c;
    [MaxIters(7)] for (int i = 0; w(p, c) > 0 && i < n; i++) c *= b;
    int k = 0; r += c;
    [MaxIters(7)] while (w(p * b, c) > 0 && k < n) { if (k++ % 2 == 0) c *= b; r += c; }
    k = 0;
    [MaxIters(7)] do { if (w(p, c) > 100) break; if (k == 2) break; c *= b; k++; } while (k < n);
    r += c;
    [MaxIters(7)] for (int i = 0; i < n; i++) { switch (w(p, c) > 0 ? 1 : 2) { case 1: c *= b; break; default: break; } }
    r += c;
    [MaxIters(7)] for (int i = 0; i < n; i++) if (w(p, c) > 0) { [MaxIters(7)] for (int j = 0; j < 2; j++) { r += c; c *= b; if (w(p * b, d) > 0) d *= b; r += d; } }
    return r * c;
}
[Differentiable] float[2] conditions(float p, float a, float b, int n) { float r[2] = { ifs(p, a, b, n), others(p, a, b, n) }; return r; }
"""


@pytest.mark.one
@pytest.mark.needs_kernels
def test_gradients_of_outs_in_conditions(device: spy.Device) -> None:
    module = spy.Module.load_from_source(device, "outs_in_conditions", CONDITIONS)
    assert spy.check_gradients(module.conditions, 0.7, 0.4, 1.3, 3)


@pytest.mark.one
@pytest.mark.needs_kernels
@pytest.mark.parametrize("n", [3, 6])
def test_gradients_of_outs_in_loops(device: spy.Device, n: int) -> None:
    module = spy.Module.load_from_source(device, "outs_in_loops", SOURCE)
    assert spy.check_gradients(module.all, 0.7, 0.4, 1.3, n)
