"""Integers of all widths against NumPy: comparisons after widening, mad()."""

from __future__ import annotations

import operator
from collections.abc import Callable

import numpy as np
import pytest

import slangpy as spy

NAMES = {
    "int8_t": np.int8, "uint8_t": np.uint8, "int16_t": np.int16, "uint16_t": np.uint16,
    "int": np.int32, "uint": np.uint32, "int64_t": np.int64, "uint64_t": np.uint64,
}  # fmt: skip
COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
WIDER = [(a, b) for a in NAMES for b in NAMES if np.iinfo(NAMES[b]).bits > np.iinfo(NAMES[a]).bits and a[0] == b[0]]


def values(name: str) -> np.ndarray:
    info = np.iinfo(NAMES[name])
    return np.array([info.min, info.max, info.max - 1, 0, 1, 7, 8, 100], NAMES[name])


def comparing(name: str, wide: str, constant: int) -> str:
    """A function whose bits say how the widened number and the constant compare."""
    tests = [f"({wide}(x) {op} {wide}({constant}) ? {1 << at}u : 0u)" for at, op in enumerate(COMPARISONS)]
    return f"uint compare_{name}_{wide}({name} x) {{ return {' | '.join(tests)}; }}\n"


@pytest.mark.needs_kernels
def test_widened_numbers_compare(device: spy.Device) -> None:
    """llvmpipe (Mesa 22) takes int64_t(i) < 7 for the same whatever i is."""
    source = "".join(comparing(a, b, 7) for a, b in WIDER)
    module = spy.Module.load_from_source(device, "widened", source)
    for a, b in WIDER:
        x = values(a)
        bits = [sum(1 << at for at, holds in enumerate(COMPARISONS.values()) if holds(int(v), 7)) for v in x]
        assert getattr(module, f"compare_{a}_{b}")(x, _result="numpy").tolist() == bits, (a, b)


@pytest.mark.needs_kernels
def test_widened_vectors_compare(device: spy.Device) -> None:
    module = spy.Module.load_from_source(device, "widened_vectors", "bool3 f(int3 x) { return vector<int64_t, 3>(x) < int64_t(-3); }")
    x = np.array([[-(2**31), -4, -3], [-2, 0, 2**31 - 1]], np.int32)
    assert module.f(x, _result="numpy").tolist() == (x < -3).tolist()


MADS = "".join(f"{name} mad_{name}({name} x, {name} y) {{ return mad(x, y, {name}(3)); }}\n" for name in NAMES)
MAD_VECTOR = "vector<uint16_t, 3> mad_vector(vector<uint16_t, 3> x) { return mad(x, x, x); }\n"


@pytest.mark.needs_kernels
def test_mad_of_integers(device: spy.Device) -> None:
    """It was Fma of floats in SPIR-V, over which Mesa's driver ended the process, and a function that no prelude had."""
    module = spy.Module.load_from_source(device, "mads", MADS + MAD_VECTOR)
    for name, dtype in NAMES.items():
        x, y = values(name), values(name)[::-1].copy()
        with np.errstate(over="ignore"):
            want = x * y + dtype(3)
        np.testing.assert_array_equal(getattr(module, f"mad_{name}")(x, y, _result="numpy"), want)
    v = np.arange(6, dtype=np.uint16).reshape(2, 3) * 1000
    np.testing.assert_array_equal(module.mad_vector(v, _result="numpy"), v * v + v)
