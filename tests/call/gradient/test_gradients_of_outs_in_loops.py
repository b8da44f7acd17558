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


@pytest.mark.one
@pytest.mark.needs_kernels
@pytest.mark.parametrize("n", [3, 6])
def test_gradients_of_outs_in_loops(device: spy.Device, n: int) -> None:
    module = spy.Module.load_from_source(device, "outs_in_loops", SOURCE)
    assert spy.check_gradients(module.all, 0.7, 0.4, 1.3, n)
