"""Where a result lies between two numbers: the nearest one, and of two the even one."""

from __future__ import annotations

import numpy as np
import pytest

import slangpy as spy

pytestmark = pytest.mark.needs_kernels

SOURCE = """
float of_float(float x) { return round(x); }
float3 of_vector(float3 x) { return round(x); }
half of_half(half x) { return round(x); }
uint bits(float x) { return f32tof16(x); }
float number(uint x) { return f16tof32(x); }
"""
TIES = np.array([0.5, 1.5, 2.5, 7.5, 0.49999997, 0.0, 8388609.0, 1e30, np.inf, 4.25, 1234.5], np.float32)
TIES = np.concatenate([TIES, -TIES])


def halves() -> tuple[np.ndarray, np.ndarray]:
    """All halves that are numbers, by size, and floats beside and between them."""
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    exact = np.sort(every[np.isfinite(every)]).astype(np.float32)
    between = (exact[1:] + exact[:-1]) / 2
    beside = [np.nextafter(between, np.float32(to)) for to in (np.inf, -np.inf)]
    limits = np.array([65504, 65519.996, 65520, 1e9, np.inf, 1e-40], np.float32)
    return every, np.concatenate([exact, between, *beside, limits, -limits])


def test_round(device: spy.Device) -> None:
    module = spy.Module.load_from_source(device, "rounding", SOURCE)
    np.testing.assert_array_equal(module.of_float(TIES, _result="numpy"), np.rint(TIES))
    np.testing.assert_array_equal(
        module.of_vector(TIES[:21].reshape(7, 3), _result="numpy"), np.rint(TIES[:21].reshape(7, 3))
    )
    small = TIES[np.abs(TIES) < 6e4].astype(np.float16)
    np.testing.assert_array_equal(module.of_half(small, _result="numpy"), np.rint(small))


def test_round_of_double(device: spy.Device) -> None:
    if device.type is spy.DeviceType.d3d12:
        pytest.skip("HLSL has float's functions only")
    module = spy.Module.load_from_source(device, "rounding_doubles", "double of_double(double x) { return round(x); }")
    wide = TIES.astype(np.float64)
    np.testing.assert_array_equal(module.of_double(wide, _result="numpy"), np.rint(wide))


def test_bits_of_halves(device: spy.Device) -> None:
    module = spy.Module.load_from_source(device, "rounding", SOURCE)
    every, floats = halves()
    with np.errstate(over="ignore", under="ignore"):
        expected = floats.astype(np.float16).view(np.uint16)
    np.testing.assert_array_equal(module.bits(floats, _result="numpy"), expected)
    got = module.number(np.arange(1 << 16, dtype=np.uint32), _result="numpy")
    np.testing.assert_array_equal(got, every.astype(np.float32))
