"""Loops that are rewritten before Slang sees them keep their values: against the same loops in Python, and differences of these."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

import slangpy as spy
from slangpy.errors import KernelGenException

pytestmark = [pytest.mark.needs_kernels, pytest.mark.one]

SOURCE = """
#define NEXT continue
[Differentiable] float macro_step(float a, float b, int n)
{
    float s = 1;
    [MaxIters(8)] for (int i = n; i > 0; i--) { if (i == 2) NEXT; s = s * a + b; }
    return s;
}
#define ADD s = s + a
[Differentiable] float with_macro(float a, float b, int n)
{
    float s = b; ADD; return s * a;
}
[Differentiable] float calls_macro(float a, float b, int n) { return with_macro(a, b, n) * b; }
#if 1
[Differentiable] float split(float a, float b, int n) {
#else
[Differentiable] float split(float a, float b, int n, int m) {
#endif
    float s = 1;
    [MaxIters(8)] for (int i = n; i > 0; i--) { if (i == 2) continue; s = s * a + b; }
    return s;
}
[Differentiable] float beside(float a, float b, int n)
{
    float s = 1;
    [MaxIters(8)] for (int i = n; i > 0; i--) { if (i == 2) continue; s = s * a + b; }
    return s;
}
[Differentiable] float do_down(float a, float b, int n)
{
    float s = 1; int i = n;
    [MaxIters(8)] do { s = s * a + b; i--; } while (i > 0);
    return s * i + s;
}
[Differentiable] float do_in_condition(float a, float b, int n)
{
    float s = 1; int i = n;
    [MaxIters(8)] do s = s * a + b; while (--i > 0);
    return s * i + s;
}
[Differentiable] float do_in_do(float a, float b, int n)
{
    float s = 1; int i = n;
    [MaxIters(4)] do { int k = i; [MaxIters(4)] do { s = s * a + b; k--; } while (k > 0); i--; } while (i > 0);
    return s;
}
[Differentiable] float count(float a, inout int k)
{
    float s = 1;
    [MaxIters(8)] while (k-- > 0) s = s * a + k;
    return s;
}
[Differentiable] float inout_parameter(float a, float b, int n)
{
    int k = n;
    float s = count(a, k);
    return s + b * k;
}
[Differentiable] void count_out(float a, int n, out int k, out float s)
{
    k = n; s = 1;
    [MaxIters(8)] while (--k >= 0) { if (k == 1) continue; s = s * a + k; }
}
[Differentiable] float out_parameter(float a, float b, int n)
{
    int k; float s;
    count_out(a, n, k, s);
    return s + b * k;
}
struct Counter : IDifferentiable
{
    int k;
    [Differentiable] [mutating] float run(float a)
    {
        float s = 1;
        [MaxIters(8)] while (k-- > 0) s = s * a + k;
        return s;
    }
    [Differentiable] [mutating] float run_this(float a)
    {
        float s = 1;
        [MaxIters(8)] while (this.k-- > 0) s = s * a + this.k;
        return s;
    }
}
[Differentiable] float field(float a, float b, int n)
{
    Counter c; c.k = n;
    float s = c.run(a);
    return s + b * c.k;
}
[Differentiable] float field_of_this(float a, float b, int n)
{
    Counter c; c.k = n;
    float s = c.run_this(a);
    return s + b * c.k;
}
[Differentiable] float in_a_loop(float a, float b, int n)
{
    float s = 1; int k = n;
    [MaxIters(3)] for (int i = 0; i < 3; i++)
    {
        [MaxIters(8)] while (k-- > 0) s = s * a + k;
        s += b * k; k = i + 1;
    }
    return s * k;
}
[Differentiable] float with_break(float a, float b, int n)
{
    float s = 1; int k = n;
    [MaxIters(8)] while (k-- > 0) { if (k == 1) break; s = s * a + k; }
    return s + b * k;
}
[Differentiable] float behind_if(float a, float b, int n)
{
    float s = 1; int k = n;
    if (a > 0) [MaxIters(8)] while (k-- > 0) s = s * a + k; else s = b;
    return s + b * k;
}
"""


def _count(a: float, k: int, s: float = 1) -> tuple[float, int]:
    for i in range(k - 1, -1, -1):
        s = s * a + i
    return s, -1


def _counted(a: float, b: float, n: int) -> float:
    s, k = _count(a, n)
    return s + b * k


def _skipping(a: float, b: float, n: int) -> float:
    s = 1
    for k in range(n - 1, -1, -1):
        s = s if k == 1 else s * a + k
    return s - b


def _in_a_loop(a: float, b: float, n: int) -> float:
    s, k = 1.0, n
    for i in range(3):
        s, k = _count(a, k, s)
        s, k = s + b * k, i + 1
    return s * k


def _with_break(a: float, b: float, n: int) -> float:
    s, k = 1.0, n - 1
    while k > 1:
        s, k = s * a + k, k - 1
    return s + b * k


def _without_two(a: float, b: float, n: int) -> float:
    s = 1.0
    for i in range(n, 0, -1):
        s = s if i == 2 else s * a + b
    return s


def _trips(a: float, b: float, n: int) -> float:
    s = 1.0
    for _ in range(n):
        s = s * a + b
    return s


FORMULAS: dict[str, Callable[[float, float, int], float]] = {
    "inout_parameter": _counted,
    "out_parameter": _skipping,
    "field": _counted,
    "field_of_this": _counted,
    "in_a_loop": _in_a_loop,
    "with_break": _with_break,
    "behind_if": _counted,
    "beside": _without_two,
    "calls_macro": lambda a, b, n: (b + a) * a * b,
    "do_down": _trips,
    "do_in_condition": _trips,
    "do_in_do": lambda a, b, n: _trips(a, b, n * (n + 1) // 2),
}
A, B, N, H = 0.8, 0.6, 3, 1e-6


@cache
def _module(device: spy.Device) -> spy.Module:
    return spy.Module.load_from_source(device, "rewritten_loops", SOURCE)


@pytest.mark.parametrize("name", FORMULAS)
def test_values_and_gradients(device: spy.Device, name: str) -> None:
    module = _module(device)
    function, formula = getattr(module, name), FORMULAS[name]
    assert function(A, B, N) == pytest.approx(formula(A, B, N), rel=1e-5)
    a, b = (spy.Tensor.from_numpy(device, np.array([x], np.float32)).with_grads(zero=True) for x in (A, B))
    y = function(a, b, N, _result="tensor").with_grads()
    y.grad.copy_from_numpy(np.ones(1, np.float32))
    function.bwds(a, b, N, _result=y)
    got = [float(x.grad.to_numpy()[0]) for x in (a, b)]
    wanted = [
        (formula(A + H, B, N) - formula(A - H, B, N)) / (2 * H),
        (formula(A, B + H, N) - formula(A, B - H, N)) / (2 * H),
    ]
    assert got == pytest.approx(wanted, rel=1e-4)


def _line_of(text: str) -> int:
    return SOURCE[: SOURCE.index(text)].count("\n") + 1


@pytest.mark.parametrize("name", ["macro_step", "split"])
def test_what_is_not_understood_is_left_alone(device: spy.Device, name: str) -> None:
    function = getattr(_module(device), name)
    assert function(A, B, N) == pytest.approx(_without_two(A, B, N), rel=1e-5)
    a = spy.Tensor.from_numpy(device, np.array([A], np.float32)).with_grads(zero=True)
    y = function(a, B, N, _result="tensor").with_grads()
    line = _line_of("#if 1" if name == "split" else f"[Differentiable] float {name}")
    with (
        pytest.warns(RuntimeWarning, match=rf"{name}\.bwds: '{name}' \(line {line + (name == 'split')}\)"),
        pytest.raises((RuntimeError, KernelGenException)),  # of Slang or, on CUDA, of NVRTC ("_S24 is undefined")
    ):
        function.bwds(a, B, N, _result=y)


def test_backward_calls_name_what_is_not_understood(device: spy.Device) -> None:
    function = spy.Module.load_from_source(device, "rewritten_loops_names", SOURCE).calls_macro
    a = spy.Tensor.from_numpy(device, np.array([A], np.float32)).with_grads(zero=True)
    y = function(a, B, N, _result="tensor").with_grads()
    line = _line_of("[Differentiable] float with_macro")
    with pytest.warns(RuntimeWarning, match=rf"calls_macro\.bwds: 'with_macro' \(line {line}\)"):
        function.bwds(a, B, N, _result=y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        function.bwds(a, B, N, _result=y)
