"""Outputs that several invocations share: one of them writes each element, and nothing else is touched."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import slangpy as spy

pytestmark = pytest.mark.needs_kernels

SOURCE = """
float add(float a, float b) { return a + b; }
void split(float a, out float b) { b = 2 * a; }
float3 spread(float a) { return float3(a, a + 1, a + 2); }
"""
FIRST = 16


@pytest.fixture
def m(device: Any) -> Any:
    return spy.Module.load_from_source(device, "broadcast_outputs", SOURCE)


def touched(guard: Any) -> list[int]:
    return np.flatnonzero(guard.to_numpy()).tolist()


@pytest.mark.parametrize("count", [1, 31, 33, 4096, 1_000_003])
@pytest.mark.parametrize("shape", [(), (1,)])
def test_one_element(device: Any, m: Any, count: int, shape: tuple[int, ...]) -> None:
    x = spy.Tensor.from_numpy(device, np.arange(1, count + 1, dtype=np.float32))
    for call in (lambda out: m.add(x, 0, _result=out), lambda out: m.split(x, out)):
        guard = spy.Tensor.zeros(device, count + 64, float)
        out = guard[FIRST : FIRST + 1] if shape else guard[FIRST].reshape()
        call(out)
        assert touched(guard) == [FIRST]
        value = guard.to_numpy()[FIRST]
        assert 1 <= value <= 2 * count and value == int(value)


@pytest.mark.parametrize("rows", [2, 64, 1001])
def test_one_row(device: Any, m: Any, rows: int) -> None:
    x = spy.Tensor.from_numpy(device, np.tile(np.arange(1, 65, dtype=np.float32), (rows, 1)))
    guard = spy.Tensor.zeros(device, 64 * rows + 64, float)
    m.add(x, 0, _result=guard[FIRST : FIRST + 64])
    assert guard.to_numpy()[FIRST : FIRST + 64].tolist() == list(range(1, 65))
    assert touched(guard) == list(range(FIRST, FIRST + 64))


def test_one_vector(device: Any, m: Any) -> None:
    x = spy.Tensor.from_numpy(device, np.full(4096, 5, np.float32))
    guard = spy.Tensor.zeros(device, 3 * 4096 + 64, float)
    m.spread(x, _result=guard[FIRST : FIRST + 3])
    assert guard.to_numpy()[FIRST : FIRST + 3].tolist() == [5, 6, 7]
    assert touched(guard) == [FIRST, FIRST + 1, FIRST + 2]


def test_arrays(device: Any, m: Any) -> None:
    x = np.full(4096, 3, np.float32)
    out = np.zeros(3, np.float32)
    m.add(x, 1, _result=out[1:2])
    assert out.tolist() == [0, 4, 0]
