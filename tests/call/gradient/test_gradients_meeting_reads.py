"""Reads of one variable at places that may be the same: Slang 2026.12 loses the share of one, so sources are changed before
it sees them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gradient_forms import AT_ONCE

import slangpy as spy

pytestmark = pytest.mark.one

torch = pytest.importorskip("torch")

RUNTIME = "[MaxIters(5)] for (int i = 0; i < n; i++)"
LOOP = "for (int i = 0; i < 4; i++)"
BOX = "Box s; for (int i = 0; i < 8; i++) s.z[i] = x[i]; "
ROWS = f"float2 m[4]; {LOOP} m[i] = float2(x[2 * i], x[2 * i + 1]); "
ITEMS = f"Item e[4]; {LOOP} {{ Item k; k.p = x[i]; k.q = float2(x[i + 4], x[i]); e[i] = k; }} "
HEAD = """
struct Item : IDifferentiable { float p; float2 q; [Differentiable] float square() { return p * p; } }
struct Box : IDifferentiable
{
    float z[8];
    [Differentiable] float pairs() { float r = 0; for (int i = 0; i < 4; i++) r += z[i + 4] * this.z[(2 * i + 1) % 8]; return r; }
}
struct Net<T : __BuiltinFloatingPointType, let N : int> : IDifferentiable
{
    T w[N];
    [Differentiable] T run(int n) { T r = T(0); [MaxIters(N)] for (int i = 0; i < N; i++) r = r + w[i] * w[(i + n) % N]; return r; }
}
typealias Eight = float[8];
[Differentiable] float of_box(Box s) { float r = 0; for (int i = 0; i < 4; i++) r += s.z[i + 4] * s.z[(2 * i + 1) % 8]; return r; }
[Differentiable] float of_size<let N : int>(float v[N], int n) { float r = v[n % N] * v[0]; [MaxIters(5)] for (int i = 0; i < n; i++) r += v[i + 4] * v[(2 * i + 1) % N]; return r; }
[Differentiable] T of_type<T : __BuiltinFloatingPointType, let N : int>(T v[N], int n) { return v[n % N] * v[0]; }
[Differentiable] float product(float a, float b) { return a * b; }
[Differentiable] void grown(inout float c) { c *= 1.5; }
void next(inout int k, int n) { k = (k + n) % 8; }
"""


def pairs(x: Any, n: int) -> Any:
    return sum(x[i + 4] * x[(2 * i + 1) % 8] for i in range(4))


def changed(x: Any, n: int) -> Any:
    z = list(x)
    for i in range(4):
        z[i] = z[i] - z[(i * i + 1) % 8] * 0.5
    return sum(v * v for v in z)


def walked(x: Any, n: int) -> Any:
    return sum(x[(i * n) % 8] + x[((i + 1) * n) % 8] * x[i] for i in range(4))


def passed(x: Any, n: int) -> Any:
    v, r = list(x), 0
    for i in range(4):
        v[i] = v[i] * 1.5
        r = r + v[i] * v[(i * i + 1) % 8]
    return r


def updated(x: Any, n: int) -> Any:
    v = list(x)
    a = (v[0] * v[0] + 0.5).sin()
    v[n] = v[n] + a.sin()
    v[0] = v[0] * 0.5 * (a + 0.7).sin()
    return a - v[n]


def branched(x: Any, n: int) -> Any:
    v = list(x)
    a = (v[1] * v[1]).sin()
    v[n] = v[n] * (0.5 + a)
    v[1] = v[1] - a if a > 0.3 else v[1] / (2 + a)
    return a * v[n] + v[0]


def rescaled(x: Any, n: int) -> Any:
    v = list(x[:4])
    c = v[0] * v[0]
    v[n % 4] = v[n % 4] - (c + v[1])
    v[0] = v[0] * c
    return v[0] + v[n % 4] * v[1]


def of_rows(x: Any, n: int) -> Any:
    m = [[x[2 * i], x[2 * i + 1]] for i in range(4)]
    c = m[0][0] * m[0][1]
    m[n % 4][0] = m[n % 4][0] + c
    m[0][0] = m[0][0] * (0.5 + c)
    m[n // 2][n % 2] = m[n // 2][n % 2] * c
    m[0][0] = m[0][0] - m[1][1]
    return m[0][0] * m[n % 4][0] + m[0][1] * m[n % 4][1]


def stepped(x: Any, n: int) -> Any:
    v = list(x)
    a = (v[0] * v[0]).sin()
    v[n] = v[n] + 1
    v[0] = v[0] * a
    return a - v[n]


def of_field(x: Any, n: int) -> Any:
    z = list(x)
    a = (z[0] * z[0]).sin()
    z[n % 4] = z[n % 4] * x[7] * a
    z[0] = z[0] - a
    return a * z[n % 4]


def of_items(x: Any, n: int) -> Any:
    p, q = [x[i] for i in range(4)], [[x[i + 4], x[i]] for i in range(4)]
    a = p[0] * q[1][1]
    p[n % 4] = p[n % 4] + a
    q[0] = [q[0][0] * a, q[0][1] * a]
    q[n // 2][n % 2] = q[n // 2][n % 2] - q[0][0]
    return p[n % 4] * q[n // 2][n % 2] + q[0][1]


CASES: dict[str, tuple[str, Callable[[Any, int], Any]]] = {
    "a loop": (f"{LOOP} r += x[i + 4] * x[(2 * i + 1) % 8];", pairs),
    "a loop of so many trips": (f"{RUNTIME} r += x[i] * x[(i * i) % 8];", lambda x, n: sum(x[i] * x[(i * i) % 8] for i in range(n))),
    "while": ("int i = 0; [MaxIters(5)] while (i < n) { r += x[i] * x[(i * i) % 8]; i++; }", lambda x, n: sum(x[i] * x[(i * i) % 8] for i in range(n))),
    "do": ("int i = 0; [MaxIters(5)] do { r += x[i] * x[(i * i) % 8]; i++; } while (i < n);", lambda x, n: sum(x[i] * x[(i * i) % 8] for i in range(max(n, 1)))),
    "nested": (f"for (int k = 0; k < 2; k++) {LOOP} r += x[i + k] * x[(i * i + k) % 8];", lambda x, n: sum(x[i + k] * x[(i * i + k) % 8] for i in range(4) for k in range(2))),
    "two statements": (f"{LOOP} {{ float q = x[(2 * i + 1) % 8]; r += q * q; r += x[i + 4] * q; }}", lambda x, n: sum(x[(2 * i + 1) % 8] * (x[(2 * i + 1) % 8] + x[i + 4]) for i in range(4))),
    "a condition": (f"{LOOP} {{ bool q = 0.7 > x[i + 4]; r += x[(2 * i + 1) % 8] * x[i + 4] * (q ? 2.0 : x[i]); }}", lambda x, n: sum(x[(2 * i + 1) % 8] * x[i + 4] * (2 if x[i + 4] < 0.7 else x[i]) for i in range(4))),
    "arguments": (f"{LOOP} r += product(x[i + 4], x[(2 * i + 1) % 8]);", pairs),
    "a vector": (f"float4 v = float4(x[0], x[1], x[2], x[3]); {LOOP} r += v[i] * v[(i * i) % 4];", lambda x, n: sum(x[i] * x[(i * i) % 4] for i in range(4))),
    "a matrix": (f"float2x4 m = float2x4(float4(x[0], x[1], x[2], x[3]), float4(x[4], x[5], x[6], x[7])); {LOOP} r += m[i % 2][i] * m[(i / 2) % 2][(i * i) % 4];", lambda x, n: sum(x[(i % 2) * 4 + i] * x[((i // 2) % 2) * 4 + (i * i) % 4] for i in range(4))),
    "rows": (f"{ROWS} {LOOP} r += dot(m[i], m[(i * i) % 4]) + m[i].x * m[(i + n) % 4][i % 2];", lambda x, n: sum(x[2 * i] * x[2 * ((i * i) % 4)] + x[2 * i + 1] * x[2 * ((i * i) % 4) + 1] + x[2 * i] * x[2 * ((i + n) % 4) + i % 2] for i in range(4))),
    "two dimensions": (f"float m[4][2]; {LOOP} {{ m[i][0] = x[2 * i]; m[i][1] = x[2 * i + 1]; }} {LOOP} r += m[i][0] * m[(i * i) % 4][1];", lambda x, n: sum(x[2 * i] * x[2 * ((i * i) % 4) + 1] for i in range(4))),
    "a field": (f"{BOX} {LOOP} r += s.z[i + 4] * s.z[(2 * i + 1) % 8];", pairs),
    "a field of a parameter": (f"{BOX} r = of_box(s);", pairs),
    "a field of this": (f"{BOX} r = s.pairs();", pairs),
    "a field outside of loops": (f"{BOX} r = s.z[n] * s.z[0] + sin(s.z[n / 2]);", lambda x, n: x[n] * x[0] + x[n // 2].sin()),
    "a field beside two that stay": (f"{BOX} {LOOP} r += s.z[i] * s.z[0] + s.z[n];", lambda x, n: sum(x[i] * x[0] + x[n] for i in range(4))),
    "a field that is changed": (f"{BOX} {LOOP} s.z[i] -= s.z[(i * i + 1) % 8] * 0.5; for (int i = 0; i < 8; i++) r += s.z[i] * s.z[i];", changed),
    "structs": (f"{ITEMS} {LOOP} r += e[i].p * e[(i * i) % 4].q.x;", lambda x, n: sum(x[i] * x[(i * i) % 4 + 4] for i in range(4))),
    "methods of structs": (f"{ITEMS} {LOOP} r += e[i].square() * e[(i * i) % 4].square();", lambda x, n: sum(x[i] ** 2 * x[(i * i) % 4] ** 2 for i in range(4))),
    "any size": ("r = of_size(x, n);", lambda x, n: x[n] * x[0] + sum(x[i + 4] * x[(2 * i + 1) % 8] for i in range(n))),
    "any type": ("r = of_type(x, n);", lambda x, n: x[n] * x[0]),
    "a generic struct": ("Net<float, 8> k; for (int i = 0; i < 8; i++) k.w[i] = x[i]; r = k.run(n);", lambda x, n: sum(x[i] * x[(i + n) % 8] for i in range(8))),
    "an alias": (f"Eight v = x; {LOOP} r += v[i + 4] * v[(2 * i + 1) % 8];", pairs),
    "var": (f"var v = x; {LOOP} r += v[i + 4] * v[(2 * i + 1) % 8];", pairs),
    "an index that changes": (f"int k = 0; {LOOP} {{ r += x[k]; k = (k + n) % 8; r += x[k] * x[i]; }}", walked),
    "an index that a call changes": (f"int k = 0; {LOOP} {{ r += x[k]; next(k, n); r += x[k] * x[i]; }}", walked),
    "an index that changes outside of loops": ("int k = n; r += x[k] * x[k]; k = k / 2; r += x[k];", lambda x, n: x[n] ** 2 + x[n // 2]),
    "an unrolled loop": ("[ForceUnroll] for (int j = 0; j < 3; j++) r += x[(n * j) % 8] * x[(n * j) % 8];", lambda x, n: sum(x[(n * j) % 8] ** 2 for j in range(3))),
    "an unrolled loop in a loop": (f"{LOOP} {{ [ForceUnroll] for (int j = 0; j < 3; j++) {{ int k = (i * j) % 8; r += x[k] * x[i + j] * x[i + j + 1]; }} }}", lambda x, n: sum(x[(i * j) % 8] * x[i + j] * x[i + j + 1] for i in range(4) for j in range(3))),
    "an element that a call writes": (f"float v[8] = x; {LOOP} {{ grown(v[i]); r += v[i] * v[(i * i + 1) % 8]; }}", passed),
    "a field that a call writes": (f"{BOX} {LOOP} {{ grown(s.z[i]); r += s.z[i] * s.z[(i * i + 1) % 8]; }}", passed),
    "updates": ("float a = sin(x[0] * x[0] + 0.5); x[n] += sin(a); x[0] *= 0.5 * sin(a + 0.7); r = a - x[n];", updated),
    "updates of a copy": ("float v[8] = x; float a = sin(v[1] * v[1]); v[n] *= 0.5 + a; if (a > 0.3) v[1] -= a; else v[1] /= 2.0 + a; r = a * v[n] + v[0];", branched),
    "updates of a vector": ("float4 v = float4(x[0], x[1], x[2], x[3]); float c = v.x * v.x; v[n % 4] -= c + v.y; v.x *= c; r = v.x + v[n % 4] * v.y;", rescaled),
    "updates of rows": (f"{ROWS} float c = m[0].x * m[0].y; m[n % 4].x += c; m[0].x *= 0.5 + c; m[n / 2][n % 2] *= c; m[0][0] -= m[1].y; r = dot(m[0], m[n % 4]);", of_rows),
    "updates by one": ("float a = sin(x[0] * x[0]); x[n]++; x[0] *= a; r = a - x[n];", stepped),
    "updates of a field": ("Box s; s.z = x; s.z[n] += x[7]; r = x[6] * s.z[(n)];", lambda x, n: x[6] * (x[n] + x[7])),
    "updates of a field beside others": (f"{BOX} float a = sin(s.z[0] * s.z[0]); s.z[(n % 4)] *= x[7] * a; s.z[0] -= a; r = a * s.z[(n % 4)];", of_field),
    "updates of structs": (f"{ITEMS} float a = e[0].p * e[1].q.y; e[n % 4].p += a; e[0].q *= a; e[n / 2].q[n % 2] -= e[0].q.x; r = e[n % 4].p * e[n / 2].q[n % 2] + e[0].q.y;", of_items),
    "neighbours": ("for (int i = 1; i < 7; i++) { float c = x[i]; r += x[i - 1] * c * x[i + 1]; }", lambda x, n: sum(x[i - 1] * x[i] * x[i + 1] for i in range(1, 7))),
    "integers and constants": (f"int q[4] = {{3, 1, 2, 0}}; {LOOP} r += x[q[i]] * x[q[(i + n) % 4]] * q[i] * q[(i + 1) % 4];", lambda x, n: sum(x[[3, 1, 2, 0][i]] * x[[3, 1, 2, 0][(i + n) % 4]] * [3, 1, 2, 0][i] * [3, 1, 2, 0][(i + 1) % 4] for i in range(4))),
}  # fmt: skip


def _check(f: Any, device: spy.Device, expected: Callable[[Any, int], Any]) -> None:
    values = np.random.default_rng(1).uniform(0.3, 1.5, (5, 8))
    counts, weights = np.arange(5, dtype=np.int32), np.linspace(0.5, 1.5, 5)
    exact = torch.tensor(values, requires_grad=True)
    results = torch.stack([expected(exact[k], k) + 0 * exact[k].sum() for k in range(5)])
    (results * torch.tensor(weights)).sum().backward()
    x = spy.Tensor.zeros(device, (5,), "float[8]")
    x.copy_from_numpy(values.astype(np.float32))
    x = x.with_grads(zero=True)
    y = f(x, counts).with_grads()
    np.testing.assert_allclose(y.to_numpy(), results.detach().numpy(), rtol=1e-4, atol=1e-5)
    y.grad.copy_from_numpy(weights.astype(np.float32))
    f.bwds(x, counts, _result=y)
    assert exact.grad is not None
    np.testing.assert_allclose(x.grad.to_numpy().reshape(5, 8), exact.grad.numpy(), rtol=3e-4, atol=3e-5)


@pytest.mark.needs_kernels
def test_gradients(device: spy.Device) -> None:
    at_once, names = AT_ONCE.get(device.info.type, len(CASES)), list(CASES)
    source = HEAD + "".join(
        f"[Differentiable] float f{k}(float x[8], int n)\n{{\n    float r = 0; {body}\n    return r;\n}}\n"
        for k, (body, _) in enumerate(CASES.values())
    )
    parts = [names[first : first + at_once] for first in range(0, len(names), at_once)]
    for part, forms in enumerate(parts):
        calls = "".join(f"r[{k}] = f{part * at_once + k}(x, n); " for k in range(len(forms)))
        size = len(forms)
        source += f"[Differentiable] float[{size}] part{part}(float x[8], int n) {{ float r[{size}]; {calls}return r; }}\n"
    module = spy.Module.load_from_source(device, "meeting_reads", source)
    for part, forms in enumerate(parts):
        _check_forms(getattr(module, f"part{part}"), device, forms)


def _check_forms(f: Any, device: spy.Device, forms: list[str]) -> None:
    """Row k of the invocations asks for the gradient of form k, with five values of n."""
    values = np.random.default_rng(1).uniform(0.3, 1.5, (len(forms), 5, 8))
    counts, weights = np.arange(5, dtype=np.int32), np.linspace(0.5, 1.5, 5)
    exact = torch.tensor(values, requires_grad=True)
    results = torch.stack(
        [torch.stack([CASES[form][1](exact[k, n], n) + 0 * exact[k, n].sum() for n in range(5)]) for k, form in enumerate(forms)]
    )
    (results * torch.tensor(weights)).sum().backward()
    assert exact.grad is not None
    x = spy.Tensor.zeros(device, (len(forms), 5), "float[8]")
    x.copy_from_numpy(values.astype(np.float32))
    x = x.with_grads(zero=True)
    y = spy.Tensor.zeros(device, (len(forms), 5, len(forms)), "float")
    f(x, counts, _result=y)
    seeds = (np.eye(len(forms))[:, None] * weights[:, None]).astype(np.float32)
    f.bwds(x, counts, _result=y.with_grads(spy.Tensor.from_numpy(device, seeds)))
    got, gradients = y.to_numpy(), x.grad.to_numpy().reshape(values.shape)
    for k, form in enumerate(forms):
        np.testing.assert_allclose(got[k, :, k], results[k].detach().numpy(), rtol=1e-4, atol=1e-5, err_msg=form)
        np.testing.assert_allclose(gradients[k], exact.grad[k].numpy(), rtol=3e-4, atol=3e-5, err_msg=form)


@pytest.mark.needs_kernels
def test_structs_of_an_imported_module(device: spy.Device) -> None:
    spy.Module.load_from_source(device, "meeting_reads_library", HEAD)
    body = f"{BOX} {ITEMS} float r = 0; {LOOP} r += s.z[i + 4] * s.z[(2 * i + 1) % 8] + e[i].p * e[(i * i) % 4].square();"
    source = f"import meeting_reads_library;\n[Differentiable] float f(float x[8], int n) {{ {body} return r; }}"
    module = spy.Module.load_from_source(device, "meeting_reads_importer", source)
    _check(module.f, device, lambda x, n: pairs(x, n) + sum(x[i] * x[(i * i) % 4] ** 2 for i in range(4)))


@pytest.mark.needs_kernels
def test_second_derivatives_are_refused(device: spy.Device) -> None:
    """Without calls for the reads they compile, and lose shares."""
    body = "float v[3] = { a, b, a * b }; float r = 0; [MaxIters(3)] for (int i = 0; i < 3; i++) r += v[i] * v[(i * i) % 3]; return r;"
    source = f"[Differentiable] float f(float a, float b) {{ {body} }}"
    f = spy.Module.load_from_source(device, "meeting_reads_second", source).f
    place = device.torch_device or torch.device("cpu")
    a, b = (torch.tensor(v, device=place, requires_grad=True) for v in ([0.3, 0.5, 0.9], [0.2, 0.7, 0.45]))
    by_a, _ = torch.autograd.grad(f(a, b).sum(), (a, b), create_graph=True)
    with pytest.raises(NotImplementedError, match="second derivatives"):
        torch.autograd.grad((by_a * by_a).sum(), (a, b))
