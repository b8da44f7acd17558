"""`DiffPair` passed to a parameter of type `DifferentialPair<T>`."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from gradcheck import same, seeded, with_grad

import slangpy as spy

pytestmark = [pytest.mark.needs_kernels, pytest.mark.one]
SOURCE = """
import slangpy;
float both(DifferentialPair<float> p) { return p.p + 10 * p.d; }
float3 vectors(DifferentialPair<float3> p, float k) { return p.p * k + p.d; }
double wide(DifferentialPair<double> p) { return p.p * p.d; }
void change(inout DifferentialPair<float> p) { p = diffPair(p.p * 2, p.d * 3); }
void make(float x, out DifferentialPair<float2> p) { p = diffPair(float2(x, 1), float2(2 * x, 3)); }
[Differentiable] float square(float x) { return x * x; }
float derivative(DifferentialPair<float> p, float seed) { var q = p; bwd_diff(square)(q, seed); return q.d; }
struct Ray : IDifferentiable { float t; float2 uv; no_diff int id; };
float of_struct(DifferentialPair<Ray> p) { return p.p.t + p.d.uv.y + p.p.id; }
void change_struct(inout DifferentialPair<Ray> p) { Ray r = p.p; r.t = 7; var d = p.d; d.uv = float2(8, 9); p = diffPair(r, d); }
float added(DifferentialPair<float> p) { return p.p + p.d; }
[Differentiable] float constant(no_diff DifferentialPair<float> p, float x) { return no_diff added(p) * x; }
"""


@cache
def load(device: Any) -> Any:
    return spy.Module.load_from_source(device, "differential_pairs", SOURCE)


@pytest.fixture
def m(device: Any) -> Any:
    return load(device)


def test_both_halves_arrive(device, m):
    assert m.both(spy.diffPair(2.0, 3.0)) == 32
    assert m.both(spy.diffPair(2, 3)) == 32
    assert m.both(spy.diffPair(2.0)) == 2  # no gradient: zero
    assert list(m.vectors(spy.diffPair(spy.float3(1, 2, 3), spy.float3(4, 5, 6)), 2.0)) == [6, 9, 12]
    assert m.wide(spy.diffPair(2.5, 1e-300)) == 2.5e-300
    pair = spy.diffPair({"_type": "Ray", "t": 1.0, "uv": (1.0, 2.0), "id": 5}, {"t": 1.0, "uv": (3.0, 4.0)})
    assert m.of_struct(pair) == 10


def test_vectorised(device, m):
    seeds = np.arange(3, dtype=np.float32)
    same(m.derivative(spy.diffPair(2.0, 99.0), seeds, _result="numpy"), [0, 4, 8])


def test_written_back(device, m):
    pair = spy.diffPair(2.0, 3.0)
    m.change(pair)
    assert (pair.primal, pair.grad) == (4, 9)
    kept = spy.diffPair(2.0, 3.0, needs_grad=False)
    m.change(kept)
    assert (kept.primal, kept.grad) == (4, 3)
    made = spy.diffPair(None, None)
    m.make(4.0, made)
    assert [*made.primal, *made.grad] == [4, 1, 8, 3]
    struct = spy.diffPair({"_type": "Ray", "t": 1.0, "uv": (1.0, 2.0), "id": 5}, {"t": 1.0, "uv": (3.0, 4.0)})
    m.change_struct(struct)
    assert struct.primal["t"] == 7 and struct.primal["id"] == 5
    assert [*struct.grad["uv"]] == [8, 9] and struct.grad["t"] == 1


def test_backward_calls_are_refused(device, m):
    pair, x = spy.diffPair(2.0, 3.0), with_grad(device, [1, 2])
    with pytest.raises(
        NotImplementedError, match=r"p: Slang cannot differentiate .* DifferentialPair<float>.*two parameters"
    ):
        m.constant.bwds(pair, x, _result=seeded(device, [1, 10]))


def test_other_values_are_refused(device, m):
    with pytest.raises(ValueError, match=r"DifferentialPair<float>"):
        m.both(2.0)
    with pytest.raises(ValueError, match=r"pass a spy.diffPair"):
        m.both(spy.floatRef(2.0))
