"""Scalars without a derivative that calls may write: in forward mode Slang 2026.12 hands on a derivative that nothing set."""

from __future__ import annotations

import pytest
from gradient_forms import check_forms

import slangpy as spy

pytestmark = pytest.mark.needs_kernels

HEAD = """
static const float HALF = 0.5f;
static const float TABLE[2] = { 1.0f, 2.0f };
struct Sum : IDifferentiable
{
    float of;
    [Differentiable] void give(inout float y) { y *= of; }
}
[Differentiable] float scaled(float x, inout float y) { y *= x; return 0.5f; }
[Differentiable] void large(inout float y, float x) { if (x > 100) y = x; }
[Differentiable] void add(inout float y, float x) { y += x * x; }
[Differentiable] float kept(no_diff float c, float a) { float x = 0.5f; float w = scaled(c, x); return x + a; }
[Differentiable] float of_c(no_diff float c, float a) { float x = c * c; large(x, c); return x + a; }
"""
FORMS = {
    "a sum": "float x = 0; add(x, a); add(x, b); return x;",
    "a number": "float x = 0.5f; large(x, 0.25f); return x + a;",
    "a number beside a no_diff parameter": "return kept(0.3f, a);",
    "a no_diff parameter": "return of_c(0.3f, a);",
    "a detached value": "float x = detach(HALF); large(x, 0.25f); return x * b;",
    "a constant": "float x = HALF, y = TABLE[n % 2]; large(x, 0.25f); large(y, x); return x * a + y * b;",
    "a count": "float x = float(n); float w = scaled(2, x); return x * a + w;",
    "a negative number": "float x = -0.5f; add(x, 1); return x * a;",
    "a number assigned later": "float x = a; x = 0.5f; large(x, 0.25f); return x * b + a;",
    "a number in a branch": "float x = a; if (n > 1) x = 2; large(x, 0.25f); return x * b;",
    "a number in a loop": "float x = a, r = 0; [MaxIters(3)] for (int i = 0; i < n; i++) { x = 1; add(x, b); large(r, 1); r += x; } return r;",
    "a sum in a loop": "float r = 0; [MaxIters(3)] for (int i = 0; i < n; i++) add(r, v[i % 3] * a); return r;",
    "a local number": "float k = 0.5f; k += 1; float x = k; large(x, k); return x * a;",
    "a parameter": "b = 0.5f; large(b, 0.25f); return b * a;",
    "an argument of a method": "Sum s = { a }; float x = 2; s.give(x); float y = 3; large(y, 1); return x + y * b;",
    "a component": "float2 x = float2(0.5f, 2); large(x.y, 0.25f); add(x.x, a); return x.x * b + x.y * a;",
    "elements": "float x[2] = { 0.5f, 1 }; large(x[1], 0.25f); add(x[0], a); return x[0] * b + x[1] * a;",
    "an element by a run-time index": "float x[2] = { 0.5f, 1 }; large(x[n % 2], 0.25f); return x[0] * b + x[1] * a;",
    "var": "var x = HALF; large(x, 0.25f); return x + a;",
    "two": "float x = 0.5f, y = 1; large(x, y); large(y, x); return x * a + y * b;",
}


def test_gradients(device: spy.Device) -> None:
    check_forms(device, "inouts", HEAD, FORMS, n=(0, 1, 3))
