"""What the gradient tests share: tensors from arrays, and comparison with float64."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import slangpy as spy

SOURCE = Path(__file__).parent / "gradients.slang"
_DTYPES = {"float": np.float32, "double": np.float64, "half": np.float16, "int": np.int32}


@cache
def load(device: Any) -> Any:
    return spy.Module.load_from_file(device, str(SOURCE))


def tensor(device: Any, values: Any, dtype: str = "float", element: Any = None) -> Any:
    """A tensor of the scalar `dtype` (or of `element`, from trailing dimensions)."""
    return spy.Tensor.from_numpy(device, np.array(values, _DTYPES[dtype]), target_slang_dtype=element)


def with_grad(device: Any, values: Any, dtype: str = "float", element: Any = None) -> Any:
    return tensor(device, values, dtype, element).with_grads()


def seeded(device: Any, values: Any, dtype: str = "float", element: Any = None) -> Any:
    """An output whose incoming gradient is `values`; its own content does not matter."""
    array = np.array(values, _DTYPES[dtype])
    result = spy.Tensor.from_numpy(device, np.full_like(array, 77), target_slang_dtype=element).with_grads()
    result.grad.copy_from_numpy(array)
    return result


def finite_difference(f: Callable[..., Any], x: np.ndarray, seed: Any = 1.0, h: float = 1e-5) -> np.ndarray:
    """Gradient of sum(seed * f(x)) by central differences in float64."""
    x = np.array(x, np.float64)
    grad = np.zeros_like(x)
    for at in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[at] += h
        down[at] -= h
        grad[at] = np.sum(seed * (f(up) - f(down))) / (2 * h)
    return grad


def check(value: Any, expected: Any, tolerance: float = 1e-5) -> None:
    """Relative to the largest expected magnitude."""
    got = np.asarray(value.to_numpy() if hasattr(value, "to_numpy") else value, np.float64)
    want = np.asarray(expected, np.float64)
    assert got.shape == want.shape, f"{got.shape} != {want.shape}"
    scale = max(float(np.max(np.abs(want), initial=0.0)), 1e-30)
    np.testing.assert_allclose(got, want, rtol=0, atol=tolerance * scale)


def same(value: Any, expected: Any) -> None:
    """Exactly equal."""
    got = value.to_numpy() if hasattr(value, "to_numpy") else np.asarray(value)
    np.testing.assert_array_equal(got, np.asarray(expected, got.dtype))
