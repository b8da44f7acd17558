"""Functions of double have the precision of double, or are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tiers import gate

import slangpy as spy

pytestmark = [pytest.mark.needs_kernels, pytest.mark.one]

X = np.array([0.123456789012345, 0.5, 0.9, 1 / 3])
FUNCTIONS: dict[str, Any] = {
    "log10": np.log10, "log2": np.log2, "log": np.log, "exp": np.exp, "exp2": np.exp2, "exp10": lambda x: 10.0**x,
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
    "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh, "acosh": lambda x: np.arccosh(x + 1),
    "atanh": np.arctanh, "degrees": np.degrees, "radians": np.radians, "sqrt": np.sqrt, "rsqrt": lambda x: x**-0.5,
    "rcp": lambda x: 1 / x, "frac": lambda x: x - np.floor(x),
}  # fmt: skip
EXACT_EVERYWHERE = ("degrees", "radians", "sqrt", "rsqrt", "rcp", "frac")


def argument(name: str) -> str:
    return "x + 1" if name == "acosh" else "x"


def source(names: Any) -> str:
    scalars = [f"double {n}_of(double x) {{ return {n}({argument(n)}); }}" for n in names]
    vectors = [f"double2 {n}_of2(double2 x) {{ return {n}({argument(n)}); }}" for n in names]
    return "\n".join([*scalars, *vectors, *[f"float {n}_of1(float x) {{ return {n}({argument(n)}); }}" for n in names]])


@pytest.fixture(scope="module")
def modules() -> dict[Any, Any]:
    return {}


def test_all_at_once(device):
    """The precision of all functions of double and of vectors of it, by one kernel for each."""
    if device.info.type is spy.DeviceType.vulkan:
        pytest.skip("refuses most of them")
    names = list(FUNCTIONS)
    for kind, end, x, tolerance in (
        ("double", "of", X, 1e-14), ("double2", "of2", X.reshape(2, 2), 1e-14), ("float", "of1", X.astype(np.float32), 2e-6)
    ):  # fmt: skip
        outs = ", ".join(f"out {kind} r{i}" for i in range(len(names)))
        calls = " ".join(f"r{i} = {name}_{end}(x);" for i, name in enumerate(names))
        text = f"{source(names)}\nvoid all({kind} x, {outs}) {{ {calls} }}"
        module = spy.Module.load_from_source(device, f"double_functions_{kind}", text)
        results = [np.zeros_like(x) for _ in names]
        module.all(x, *results)
        for name, result in zip(names, results, strict=True):
            expected = FUNCTIONS[name](X).reshape(x.shape)
            np.testing.assert_allclose(result, expected, rtol=tolerance, err_msg=f"{kind}: {name}")


@pytest.mark.parametrize("name", gate(FUNCTIONS, lambda name: name in ("log10", "asinh", "rsqrt")))
def test_precision(device, modules, name):
    if device not in modules:
        modules[device] = spy.Module.load_from_source(device, "double_functions", source(FUNCTIONS))
    module, expected = modules[device], FUNCTIONS[name](X)
    of_float = getattr(module, f"{name}_of1")(X.astype(np.float32), _result="numpy")
    # Vulkan and D3D12 let asin, acos and others be off by 4096 units
    is_loose = device.info.type in (spy.DeviceType.vulkan, spy.DeviceType.d3d12)
    np.testing.assert_allclose(of_float, expected, rtol=1e-3 if is_loose else 2e-6)
    if device.info.type is spy.DeviceType.vulkan and name not in EXACT_EVERYWHERE:
        with pytest.raises(NotImplementedError, match=rf"double_functions::{name}_of uses \w+ of double.*float only"):
            getattr(module, f"{name}_of")(X)
        return
    np.testing.assert_allclose(getattr(module, f"{name}_of")(X, _result="numpy"), expected, rtol=1e-14)
    pairs = getattr(module, f"{name}_of2")(X.reshape(2, 2), _result="numpy")
    np.testing.assert_allclose(np.reshape(pairs, (2, 2)), expected.reshape(2, 2), rtol=1e-14)
