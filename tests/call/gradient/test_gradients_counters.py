"""Loops whose counters begin with run-time values, or are stepped in their conditions.

Slang 2026.12 makes reverse derivatives of them that do not compile; the sources are rewritten before it sees them.
"""

from __future__ import annotations

import pytest
from gradient_forms import check_forms

import slangpy as spy

pytestmark = [pytest.mark.needs_kernels, pytest.mark.one]

MORE = "s = s * a + b * i;"
HEADERS = {
    "down": "for (int i = n; i > 0; i--)",
    "to zero": "for (int i = n - 1; i >= 0; --i)",
    "by two": "for (int i = n; i > 0; i -= 2)",
    "assigned": "for (int i = n; i > 0; i = i - 1)",
    "halved": "for (int i = n; i > 0; i /= 2)",
    "unsigned": "for (uint i = n; i > 0; i--)",
    "up": "for (int i = n - 3; i < n; i++)",
    "from below zero": "for (int i = -n; i < 0; i++)",
    "two counters": "for (int i = n, j = 0; i > j; i--, j++)",
    "the other one": "for (int j = 0, i = n; j < 3; j++, i--)",
    "in the condition": "for (int i = n; i-- > 0;)",
    "floats": "for (float i = a; i < 3; i += b)",
}
BODIES = {
    **{name: f"float s = v.x; [MaxIters(16)] {header} {MORE} return s;" for name, header in HEADERS.items()},
    "block": f"float s = v.x; [MaxIters(8)] for (int i = n; i > 0; i--) {{ {MORE} s += v.y; }} return s;",
    "before": f"float s = v.x; int i = n; [MaxIters(8)] for (; i > 0; i--) {MORE} return s * (i + 2);",
    "declared before": f"float s = v.x; int i; [MaxIters(8)] for (i = n; i > 1; i--) {{ {MORE} }} return s * i;",
    "after another": f"float s = v.x; int i; [MaxIters(8)] for (i = 0; i < n; i++) {MORE} [MaxIters(8)] for (; i > 0; i--) {MORE} return s;",
    "while": f"float s = v.x; int i = n; [MaxIters(8)] while (i-- > 0) {MORE} return s;",
    "while without": f"float s = v.x; int i = n; [MaxIters(8)] while (i--) {{ {MORE} }} return s;",
    "while before": f"float s = v.x; int i = n; [MaxIters(8)] while (--i >= 0) {MORE} return s;",
    "continue": f"float s = v.x; [MaxIters(8)] for (int i = n; i > 0; i--) {{ if (i == 2) continue; {MORE} }} return s;",
    "continue alone": f"float s = v.x; [MaxIters(8)] for (int i = n; i > 0; i--) if (i == 2) continue; else {MORE} return s;",
    "break": f"float s = v.x; [MaxIters(8)] for (int i = n; i > 0; i--) {{ if (i == 1) break; if (i == 3) continue; {MORE} }} return s;",
    "return": f"float s = v.x; [MaxIters(8)] for (int i = n; i > 0; i--) {{ if (i == 1) return s * v.y; {MORE} }} return s;",
    "pairs": f"float s = v.x; [MaxIters(4)] for (int i = 0; i < n; i++) [MaxIters(4)] for (int j = i + 1; j < n; j++) {MORE} return s;",
    "pairs down": f"float s = v.x; [MaxIters(4)] for (int j = n; j > 0; j--) [MaxIters(4)] for (int i = j; i > 0; i--) {{ if (i == 2) continue; {MORE} }} return s;",
    "continue of the other": f"float s = v.x; [MaxIters(4)] for (int j = n; j > 0; j--) {{ [MaxIters(4)] for (int i = 0; i < 3; i++) "
    f"{{ if (i == 1) continue; {MORE} }} if (j == 2) continue; s += v.z; }} return s;",
    "case": f"float s = v.x; [MaxIters(8)] for (int i = n; i > 0; i--) {{ switch (i) {{ case 2: continue; default: {MORE} break; }} s += v.y; }} return s;",
}  # fmt: skip


def test_gradients(device: spy.Device) -> None:
    check_forms(device, "counters", "", BODIES, n=3)


PAIRS = """
[Differentiable] float energy(float a, float3 v, int n)
{
    float e = 0, p[3] = { v.x, v.y, v.z };
    [MaxIters(4)] for (int i = 0; i < n; i++)
        [MaxIters(4)] for (int j = i + 1; j < n; j++) { float q = p[i] - p[j]; e += a * q * q * q; }
    [MaxIters(4)] for (int i = n - 1; i >= 0; i--) { if (i == 1) continue; e = e * p[i] + a; }
    return e;
}
"""


def test_second_derivatives(device: spy.Device) -> None:
    torch = pytest.importorskip("torch")
    module = spy.Module.load_from_source(device, "counted_pairs", PAIRS)
    place = device.torch_device or torch.device("cpu")
    generator = torch.Generator().manual_seed(3)
    inputs = [torch.rand(shape, generator=generator).to(place).requires_grad_() for shape in ((5,), (5, 3))]

    def expected(a, v):
        e = 0 * a
        for i, j in ((0, 1), (0, 2), (1, 2)):
            e = e + a * (v[:, i] - v[:, j]) ** 3
        for i in (2, 0):
            e = e * v[:, i] + a
        return e

    def derivatives(function, values):
        first = torch.autograd.grad(function(*values).sum(), values, create_graph=True)
        return first, torch.autograd.grad(sum((g**2).sum() for g in first), values)

    exact = derivatives(expected, [x.detach().double().requires_grad_() for x in inputs])
    for got, want in zip(derivatives(lambda a, v: module.energy(a, v, 3), inputs), exact, strict=True):
        for g, w in zip(got, want, strict=True):
            torch.testing.assert_close(g.double(), w, rtol=2e-5, atol=2e-5)
