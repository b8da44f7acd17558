"""Sources that are odd, but right: values and gradients are those of the same formulas in Python, and of central differences.

The functions of a file of odd/ are one module: one kernel gives the values of all of them, one the gradients.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from odd_formulas import FORMULAS

import slangpy as spy

pytestmark = [
    pytest.mark.needs_kernels,
    pytest.mark.elsewhere(
        "control", "declarations",
    ),
]  # fmt: skip

FOLDER = Path(__file__).parent / "odd"
PLACES = np.array([[0.8, 0.6, 0.7, 0.4, 1.3], [0.5, 0.9, 0.3, 1.1, 0.6], [0.7, 0.2, 1.2, 0.5, 0.9]])
"""Values of a, b and v, at which all functions are differentiable."""
TRIPS = (3, 2, 1)
"""n at each place."""


def _source(file: str) -> str:
    """A file, and a function that calls all of its functions."""
    names = list(FORMULAS[file])
    calls = "\n".join(f"    r[{k}] = {name}(a, b, v, n);" for k, name in enumerate(names))
    head = f"[Differentiable] float[{len(names)}] all_of_them(float a, float b, float3 v, int n)"
    source = (FOLDER / f"{file}.slang").read_text("utf-8")
    return f"{source}\n{head}\n{{\n    float r[{len(names)}];\n{calls}\n    return r;\n}}\n"


def _formula(file: str, name: str, place: np.ndarray, n: int) -> float:
    a, b, *v = place.tolist()
    return FORMULAS[file][name](a, b, v, n)


def _right(file: str, name: str) -> np.ndarray:
    """Value and central differences at each place."""
    rows = []
    for place, n in zip(PLACES, TRIPS, strict=True):
        h = 1e-6 * np.eye(5)
        differences = [
            (_formula(file, name, place + d, n) - _formula(file, name, place - d, n)) / 2e-6 for d in h
        ]
        rows.append([_formula(file, name, place, n), *differences])
    return np.array(rows)


DETACHED = {"detached": lambda p: np.array([p[1], p[3], p[0] ** 3, 0, 0])}
"""Gradients that differences do not show."""


def check(device: spy.Device, file: str, change: Callable[[str], str] = str) -> None:
    names = list(FORMULAS[file])
    count, places = len(names), len(PLACES)
    function = spy.Module.load_from_source(device, f"odd_{file}", change(_source(file))).all_of_them
    rows = np.repeat(PLACES, count, 0).astype(np.float32)
    inputs = [spy.Tensor.from_numpy(device, np.ascontiguousarray(x)).with_grads() for x in (rows[:, 0], rows[:, 1], rows[:, 2:])]
    n = np.repeat(TRIPS, count).astype(np.int32)
    result = spy.Tensor.zeros(device, (places * count,), f"float[{count}]").with_grads()
    function(*inputs, n, _result=result)
    values = result.to_numpy().reshape(places, count, count)
    result.grad.copy_from_numpy(np.tile(np.eye(count, dtype=np.float32), (places, 1)))
    function.bwds(*inputs, n, _result=result)
    gradients = np.column_stack([x.grad.to_numpy().reshape(places * count, -1) for x in inputs]).reshape(places, count, 5)
    wrong = {}
    for k, name in enumerate(names):
        right = _right(file, name)
        if name in DETACHED:
            right[:, 1:] = [DETACHED[name](place) for place in PLACES]
        got = np.column_stack([values[:, k, k], gradients[:, k]])
        if not np.allclose(got, right, rtol=2e-4, atol=2e-4):
            wrong[name] = f"got\n{got.round(4)}\nfor\n{right.round(4)}"
    assert not wrong, "\n".join(f"{name}: {text}" for name, text in wrong.items())


@pytest.mark.parametrize("file", FORMULAS)
def test_values_and_gradients(device: spy.Device, file: str) -> None:
    check(device, file)


@pytest.mark.one
def test_lines_that_end_with_two_characters(device: spy.Device) -> None:
    check(device, "texts", lambda source: source.replace("\n", "\r\n"))


FILLING = """
/* {k} { */
[Differentiable] float filling_{k}(float a, float3 v, int n) // }
{
    float s = a;
    [MaxIters(4)] for (int i = n; i > 0; i--)
    {
        if (i == {k})
            continue;
        s = s * a + v[i % 3];
    }
    return s;
}
"""


@pytest.mark.one
def test_among_three_thousand_lines(device: spy.Device) -> None:
    filling = "".join(FILLING.replace("{k}", str(k)) for k in range(230))
    assert filling.count("\n") > 2900
    check(device, "newer", lambda source: f"{filling}\n{source}\n{filling.replace('filling_', 'more_')}")


PACKS = """
interface INumber : IDifferentiable { [Differentiable] float number(); }
struct Thrice : INumber { float x; [Differentiable] float number() { return 3 * x; } }
struct Squared : INumber { float x; [Differentiable] float number() { return x * x; } }
[Differentiable] void add(inout float s, float x, float by) { s = s + x * by; }
[Differentiable] float sum_of<each T : INumber>(float by, expand each T items)
{
    float s = 0;
    expand add(s, (each items).number(), by);
    return s;
}
[Differentiable] float variadic(float a, float b) { Thrice t = { a }; Squared q = { a * b }; return sum_of(b, t, q, t); }
"""


@pytest.mark.one
def test_derivatives_behind_packs_are_said_to_be_lost(device: spy.Device) -> None:
    """Slang 2026.12 takes them for zero, forward and backward."""
    function = spy.Module.load_from_source(device, "packs", PACKS).variadic
    assert function(0.5, 2.0) == pytest.approx((6 * 0.5 + 1) * 2)
    a = spy.Tensor.from_numpy(device, np.array([0.5], np.float32)).with_grads(zero=True)
    y = function(a, 2.0, _result="tensor").with_grads()
    with pytest.warns(RuntimeWarning, match=r"variadic\.bwds: 'sum_of' \(line 6\) takes a pack of parameters"):
        function.bwds(a, 2.0, _result=y)
    with pytest.warns(RuntimeWarning, match=r"variadic\.fwds: 'sum_of' \(line 6\) takes a pack of parameters"):
        function.fwds(a, 2.0, _result=y)
