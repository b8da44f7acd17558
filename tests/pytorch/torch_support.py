"""Shared by the torch tests: devices that torch shares, and modules made from templates for each scalar type."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any

import torch

import slangpy as spy

HERE = Path(__file__).parent
DTYPES = {"half": torch.float16, "float": torch.float32, "double": torch.float64}
TOLERANCE = {torch.float16: 2e-2, torch.bfloat16: 1e-1, torch.float32: 1e-5, torch.float64: 1e-12}

TEMPLATE = """
[Differentiable] T poly(T a, T b, T c, T x) { return a * x * x + b * x + c; }
[Differentiable] void poly_out(T a, T b, T c, T x, out T y) { y = a * x * x + b * x + c; }
[Differentiable] void poly_inout(T a, T b, T c, inout T x) { x = a * x * x + b * x + c; }
[Differentiable] void poly_whole(int2 at, T a, T b, T c, ITensor<T, 2> x, IWTensor<T, 2> y)
{
    y[at] = a * x[at] * x[at] + b * x[at] + c;
}
"""


def torch_devices() -> list[str]:
    return ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]


@cache
def device_of(name: str) -> Any:
    debug = os.environ.get("SLANGPY_TEST_DEBUG") == "1"
    return spy.create_torch_device(type=spy.DeviceType[name], enable_hot_reload=False, enable_debug_layers=debug)


@cache
def module_of(name: str) -> Any:
    """torch_calls.slang on the device whose tensors are on `name`."""
    return spy.Module.load_from_file(device_of(name), HERE / "torch_calls.slang")


@cache
def template_of(name: str, scalar: str, convert: str = "none") -> Any:
    source = TEMPLATE.replace("T ", scalar + " ").replace("<T,", f"<{scalar},")
    return spy.Module.load_from_source(device_of(name), f"torch_template_{scalar}", source, options={"convert": convert})


def polynomial(a: Any, x: Any) -> Any:
    return a * x * x + 8 * x - 1


def check(actual: Any, expected: Any) -> None:
    tolerance = TOLERANCE[expected.dtype] if expected.dtype in TOLERANCE else 0
    assert actual is not None and actual.shape == expected.shape and actual.dtype == expected.dtype
    assert actual.device == expected.device
    torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance)
