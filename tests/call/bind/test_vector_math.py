"""Elementary functions on the CPU device, where loops over them are vectorised."""

from __future__ import annotations

import numpy as np
import pytest

import slangpy as spy


@pytest.mark.parametrize("mode", [spy.SlangFloatingPointMode.default, spy.SlangFloatingPointMode.precise])
def test_functions_of_many_numbers(mode):
    """Vectorised or not: right to 4 units in the last place, at all sizes and for special values."""
    names = "sin cos tan asin acos atan sinh cosh tanh exp exp2 log log2 log10".split()
    numpy_names = {"asin": "arcsin", "acos": "arccos", "atan": "arctan"}
    device = spy.create_device(spy.DeviceType.cpu)
    if mode is spy.SlangFloatingPointMode.precise:
        device = spy.Device(type=spy.DeviceType.cpu, compiler_options={"floating_point_mode": mode})
    source = "".join(f"{t} {n}_{t}({t} x) {{ return {n}(x); }}\n" for n in names for t in ("float", "double"))
    module = spy.Module.load_from_source(device, f"functions_{mode.name}", source)
    rng = np.random.default_rng(8)
    special = np.array([0.0, -0.0, 1.0, np.inf, -np.inf, np.nan, 1e-40, 300.0, -300.0])
    for name in names:
        reference = getattr(np, numpy_names.get(name, name))
        for t, dtype in (("float", np.float32), ("double", np.float64)):
            if (name, t) == ("log10", "double"):
                continue  # Slang 2026.12 makes it from log and a constant of single precision
            for size in (1, 31, 33, 1003):
                x = np.concatenate([rng.uniform(0.01, 0.99, size), special]).astype(dtype)
                with np.errstate(all="ignore"):
                    expected = reference(x.astype(np.longdouble)).astype(dtype)
                got = module[f"{name}_{t}"](x, _result="numpy")
                np.testing.assert_allclose(got, expected, rtol=5 * np.finfo(dtype).eps, atol=1e-44, err_msg=name)
