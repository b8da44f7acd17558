"""Functions that may end without a value. Slang refuses them for SPIR-V, and warns elsewhere; there the CPU device gives zeros."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import slangpy as spy

pytestmark = pytest.mark.needs_kernels

SOURCE = """
struct Pair { float p; float2 q; }
float scalar(int n) { switch (n) { case 1: return 2; case 2: return 3; } }
float2 vector(int n) { if (n > 2) return float2(1, 2); }
float3x3 matrix(int n) { for (int i = 0; i < n; i++) { if (i == n - 1) return float3x3(1); } }
Pair pair(int n) { if (n > 3) { Pair s = { 1, float2(2, 3) }; return s; } }
float[3] array(int n) { if (n > 3) { float y[3] = { 1, 2, 3 }; return y; } }
float never(int n) { n += 1; }
float always(int n) { if (n > 1) { return 1; } else { return 2; } }
struct Box { float x; [mutating] float set(int y) { x = y; } }
float method(int n) { Box k = { 1 }; k.set(n); return k.x; }
[Differentiable] float square(float x) { if (x > 1) return x * x; }
"""
CASES: dict[str, tuple[int, int]] = {
    "scalar": (2, 7), "vector": (3, 1), "matrix": (2, 0), "pair": (4, 1), "array": (4, 1), "never": (0, 0), "always": (2, 0),
}  # fmt: skip


def numbers(value: Any) -> list[float]:
    if isinstance(value, dict):
        return [x for part in value.values() for x in numbers(part)]
    return np.asarray(value, dtype=np.float64).reshape(-1).tolist()


@pytest.mark.parametrize("name", CASES)
def test_no_value(device: spy.Device, name: str) -> None:
    module = spy.Module.load_from_source(device, "missing_returns", SOURCE)
    there, missing = CASES[name]
    if device.type is spy.DeviceType.vulkan and name != "always":
        with pytest.raises(spy.KernelGenException, match="must return"):
            getattr(module, name)(there)
        return
    function = getattr(module, name)
    expected = {
        "scalar": [3],
        "vector": [1, 2],
        "matrix": [1] * 9,
        "pair": [1, 2, 3],
        "array": [1, 2, 3],
        "always": [1],
    }
    if name in expected:
        assert numbers(function(there)) == expected[name]
    other = numbers(function(missing))
    if device.type is spy.DeviceType.cpu and name not in ("always", "array"):  # arrays come through a pointer
        assert other == [0] * len(other)


def test_methods_and_derivatives() -> None:
    device = spy.Device(type="cpu")
    module = spy.Module.load_from_source(device, "missing_returns", SOURCE)
    assert module.method(3) == 3
    with pytest.raises(spy.KernelGenException, match="square"):  # an internal error of Slang
        module.square.bwds(2.0, _result=1.0)
