"""Signs of matrices: Slang's own C++ prelude has operators that no compiler takes."""

from __future__ import annotations

import numpy as np
import pytest

import slangpy as spy

pytestmark = pytest.mark.needs_kernels
TEXT = """
[Differentiable] float2x3 less(float2x3 a, float2x3 b) { return a - b; }
[Differentiable] float2x3 minus(float2x3 a) { return -a; }
[Differentiable] double3x3 less_double(double3x3 a, double3x3 b) { return a * a - b; }
int2x2 minus_int(int2x2 a) { return -a; }
int2x2 not_int(int2x2 a) { return ~a; }
"""


@pytest.fixture
def m(device: spy.Device) -> spy.Module:
    return spy.Module.load_from_source(device, "matrix_signs", TEXT)


@pytest.mark.parametrize("rows", [1, 31])
def test_gradients(m: spy.Module, rows: int) -> None:
    rng = np.random.default_rng(rows)
    a, b, w = (rng.normal(size=(rows, 2, 3)).astype(np.float32) for _ in range(3))
    y, (ga, gb) = spy.vjp(m.less, (a, b), w)
    np.testing.assert_allclose(y, a - b, rtol=1e-6)
    np.testing.assert_array_equal(ga, w)
    np.testing.assert_array_equal(gb, -w)
    y, (ga,) = spy.vjp(m.minus, (a,), w)
    np.testing.assert_array_equal(y, -a)
    np.testing.assert_array_equal(ga, -w)


def test_double(m: spy.Module) -> None:
    a, b, w = np.random.default_rng(0).normal(size=(3, 33, 3, 3))
    y, (ga, gb) = spy.vjp(m.less_double, (a, b), w)
    np.testing.assert_allclose(y, a * a - b, rtol=1e-12)
    np.testing.assert_allclose(ga, 2 * a * w, rtol=1e-12)
    np.testing.assert_array_equal(gb, -w)


def test_integers(m: spy.Module) -> None:
    a = np.arange(8, dtype=np.int32).reshape(2, 2, 2)
    np.testing.assert_array_equal(m.minus_int(a, _result="numpy"), -a)
    np.testing.assert_array_equal(m.not_int(a, _result="numpy"), ~a)
