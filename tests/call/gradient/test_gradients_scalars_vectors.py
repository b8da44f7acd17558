"""Gradients of sums and products of scalars with vectors and matrices, in every form that a program may write them.

Slang 2026.12 gives a scalar variable no gradient in most of them; the sources are rewritten before it sees them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import slangpy as spy

pytestmark = [pytest.mark.needs_kernels, pytest.mark.one]

SCALARS = {"parameter": "a", "local": "b", "bracket": "(a)", "cast": "float(a)", "field": "s.k", "element": "h[1]", "component": "u.x"}
OF_TWO = ("{0} + {1}", "{1} + {0}", "{0} - {1}", "{1} - {0}", "{0} * {1}", "{1} * {0}", "{0} / {1}", "{1} / {0}")
STEPS = ("+=", "-=", "*=", "/=")
SHAPES: dict[str, tuple[int, ...]] = {"a": (), "v": (3,), "u": (3,), "h": (2,), "k": (), "m": (2, 2)}
WORDS = {"float(a)": "a", "s.k": "k", "u.x": "u[0]", "b": "a", "(a)": "a"}


def bodies() -> list[tuple[str, str]]:
    """The body of each function, and its value as Python has it."""
    made = []
    for scalar in SCALARS.values():
        plain = WORDS.get(scalar, scalar)
        for form in OF_TWO:
            made.append((f"return ({form.format(scalar, 'v')}).y;", f"({form.format(plain, 'v')})[1]"))
        for step in STEPS:
            made.append((f"v {step} {scalar}; return v.z;", f"(v {step[0]} {plain})[2]"))
        for form in OF_TWO[::3]:
            for choice in (f"(true ? {scalar} : 0.5f)", f"(1 < 2 ? a < -9 ? 1 : {scalar} : 0.5f)"):
                made.append((f"return ({form.format(choice, 'v')}).x;", f"({form.format(plain, 'v')})[0]"))
    for form in OF_TWO:
        made.append((f"return ({form.format('a', 'm')})[1].x;", f"({form.format('a', 'm')})[1, 0]"))
    return [
        *made,
        *[(f"return ({form.format(f'({same})', 'v')}).y;", f"({form.format('a', 'v')})[1]")
          for same in ("1 * a", "a * float(1)", "ONE * a", "a / 1.0", "0.0 + a", "a - 0", "+a", "a * (2 - ONE) * 1", "h[1] * 0 + a")
          for form in OF_TWO[:5:2]],
        ("return (ONE * a * v).x * (v + float(1 * a)).y; ", "a * v[0] * (v[1] + a)"),
        ("v *= 1 * a; v += a + 0; return v.z;", "a * v[2] + a"),
        ("return (N * a * m)[1].x;", "a * m[1, 0]"),
        ("return dot(a * v, a + u);", "np.sum(a * v * (a + u))"),
        ("float3 w = a; return (w * v).x + (u - w).y;", "(a * v)[0] + u[1] - a"),
        ("float b2 = a; b2 += a; v = b2 * v; a = 1; return v.x - a;", "2 * a * v[0] - 1"),
        ("v += tanh(a * v); a += 2; return v.x + a;", "v[0] + np.tanh(a * v[0]) + a + 2"),
        ("for (int i = 0; i < 3; i++) { v = v * a + u; a = a * 0.5f; } return v.y;",
         "((v[1] * a + u[1]) * a / 2 + u[1]) * a / 4 + u[1]"),
        ("return twice(a, v).y;", "(2 * a * v)[1]"),
        ("v += true ? a : 0.5f; return v.x * v.x;", "(v[0] + a) ** 2"),
        ("float2 q = float2(a, 2 * a); return (q.x * v).y * (v - q[1]).x;", "a * v[1] * (v[0] - 2 * a)"),
        ("float q[2] = { a, u.x }; v += q[0]; return (q[1] * v).z;", "u[0] * (v[2] + a)"),
        ("float3 q = { a, u.yz }; float2 r = q.xy; return (r.x * v - r.y).x;", "a * v[0] - u[1]"),
        ("float q[2]; q[0] = a; q[1] = u.y; return (q[0] * (v + q[1])).x;", "a * (v[0] + u[1])"),
        ("S t; t.k = a; return (t.k * v).z * (v + t.k).x;", "a * v[2] * (v[0] + a)"),
        ("S t = s; t.k += a; return (t.k - v).z * (t.k * v).y;", "(k + a - v[2]) * (k + a) * v[1]"),
        ("S t[2] = { s, s }; t[1].k = a; return (t[1].k * v).y + (t[0].k + v).x;", "a * v[1] + k + v[0]"),
        ("var c = a; let d = c; return (c * v).z * (d + v).y;", "a * v[2] * (a + v[1])"),
        ("return (float2(a, v.x).x * v).z + ((v.x, a) * v).y;", "a * v[2] + a * v[1]"),
        ("var q = float2(a, u.x); let r = Pair(u.y, a); return (q.x * v).z * (v - r[1]).y;", "a * v[2] * (v[1] - a)"),
        ("float2 q = { a, u.x }; let c = q.x; var d = c; return (d * v).x * (v + c).y;", "a * v[0] * (v[1] + a)"),
        ("vector<float, 2> q = vector<float, 2>(a, u.x); return (q.x * v).z * (v - q[1]).y;", "a * v[2] * (v[1] - u[0])"),
        ("return spread(a, v).x * spread(u.x, v).y;", "(a * v[0] - a) * (u[0] * v[1] - u[0])"),
        ("Pair q = { a, u.x }; return (q.y * v).z * (v - q[0]).y;", "u[0] * v[2] * (v[1] - a)"),
        ("float2x2 q = { a, 1, 2, a }; return (q[0][0] * v - q[1].y).z;", "a * v[2] - a"),
        ("h[0] = a; u = float3(a, h[1], 1); return (h[0] * v - u.x).y + (v + u.y).x;", "a * v[1] - a + v[0] + h[1]"),
        ("return length(a * float3(1, 2, 2) + v * (h[0] - a));",
         "np.sqrt(np.sum((a * np.array([1, 2, 2]) + v * (h[0] - a)) ** 2))"),
    ]  # fmt: skip


PROGRAMS = bodies()
SOURCE = """
struct S : IDifferentiable { float k; }
static const float ONE = 1;
static const int N = 1;
typealias Pair = float2;
[Differentiable] vector<T, 3> spread<T : __BuiltinFloatingPointType>(T a, vector<T, 3> v)
{
    vector<T, 2> q = vector<T, 2>(a, a);
    T k[2] = { a, a };
    return q.x * v - k[1];
}
[Differentiable] vector<T, 3> twice<T : __BuiltinFloatingPointType>(T a, vector<T, 3> v) { return a * v + v * a; }
"""
SOURCE += "\n".join(
    f"[Differentiable] float f{i}(float a, float3 v, float3 u, float h[2], S s, float2x2 m) {{ float b = a; {body} }}"
    for i, (body, _) in enumerate(PROGRAMS)
)
SOURCE += f"""
[Differentiable] float chosen(float a, float3 v, float3 u, float h[2], S s, float2x2 m, no_diff float w[{len(PROGRAMS)}])
{{
    float sum = 0;
{chr(10).join(f"    sum += w[{i}] * f{i}(a, v, u, h, s, m);" for i in range(len(PROGRAMS)))}
    return sum;
}}
"""


def values() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(11)
    return {name: rng.uniform(0.5, 1.5, (len(PROGRAMS), *shape)).astype(np.float32) for name, shape in SHAPES.items()}


def derivative(text: str, row: dict[str, Any], name: str, at: tuple[int, ...]) -> float:
    """By a complex step, exact to float64."""
    wide = {n: np.array(x, dtype=np.complex128) for n, x in row.items()}
    wide[name][at] += 1e-30j
    return float(np.imag(eval(text, {"np": np, **wide})) / 1e-30)


def as_call(given: dict[str, Any]) -> dict[str, Any]:
    named = dict(given)
    return {**{n: x for n, x in named.items() if n != "k"}, "s": {"k": named["k"]}}


def test_gradients(device: spy.Device):
    module = spy.Module.load_from_source(device, "scalars_vectors", SOURCE)
    arrays = values()
    given = {name: spy.Tensor.from_numpy(device, array).with_grads() for name, array in arrays.items()}
    result = spy.Tensor.from_numpy(device, np.zeros(len(PROGRAMS), np.float32)).with_grads()
    result.grad.copy_from_numpy(np.ones(len(PROGRAMS), np.float32))
    module.chosen.bwds(**as_call(given), w=np.eye(len(PROGRAMS), dtype=np.float32), _result=result)
    wrong = []
    for i, (body, text) in enumerate(PROGRAMS):
        row = {name: array[i].astype(np.float64) for name, array in arrays.items()}
        for name, shape in SHAPES.items():
            got = given[name].grad.to_numpy()[i]
            for at in np.ndindex(*shape):
                want = derivative(text, row, name, at)
                if abs(got[at] - want) > 2e-4 * (1 + abs(want)):
                    wrong.append(f"{body}   {name}{list(at)}: got {got[at]:.6g}, expected {want:.6g}")
    assert not wrong, "\n".join(wrong)
