"""The first call of a plan builds one kernel: the one that its values need, whatever the plan's shapes suggest."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import slangpy as spy
import slangpy.plan.compile as compile_stage

pytestmark = [pytest.mark.needs_kernels, pytest.mark.one]
SOURCE = """
[Differentiable] float scale(float w, float x) { return w * x * x; }
"""


@pytest.fixture
def module(device: spy.Device, request: Any) -> spy.Module:
    name = f"first_kernel_{request.node.callspec.indices.get('case', 0)}_{request.function.__name__}"
    return spy.Module.load_from_source(device, name, "// " + request.node.name + SOURCE)


def arrays() -> dict[str, np.ndarray]:
    base = np.random.default_rng(3).uniform(0.5, 1.5, (8, 10)).astype(np.float32)
    return {
        "plain": base, "every other": base[:, ::2], "reversed": base[::-1], "transposed": base.T,
        "one row": base[:1], "one column": base[:, :1], "broadcast": np.broadcast_to(base[0], (8, 10)),
    }  # fmt: skip


@pytest.mark.parametrize("case", list(arrays()))
def test_values(module: spy.Module, case: str):
    x = arrays()[case]
    w = np.linspace(1, 2, x.shape[1], dtype=np.float32)
    before = compile_stage.builds
    got = module.scale(w, x, _result="numpy")
    assert compile_stage.builds - before <= 1
    np.testing.assert_allclose(got, w.astype(np.float64) * x.astype(np.float64) ** 2, rtol=1e-5)


@pytest.mark.parametrize("case", list(arrays()))
def test_gradients(device: spy.Device, module: spy.Module, case: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(device, "check_gradients", False)  # it has a kernel of its own
    x = arrays()[case].copy()
    w = np.linspace(1, 2, x.shape[1], dtype=np.float32)
    given, weights = (spy.Tensor.from_numpy(device, array).with_grads() for array in (x, w))
    y = spy.Tensor.from_numpy(device, np.zeros(x.shape, np.float32)).with_grads()
    seed = np.random.default_rng(4).uniform(-1, 1, x.shape).astype(np.float32)
    y.grad.copy_from_numpy(seed)
    before = compile_stage.builds
    module.scale.bwds(weights, given, _result=y)
    assert compile_stage.builds - before <= 1
    np.testing.assert_allclose(given.grad.to_numpy(), 2.0 * w * x * seed, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(weights.grad.to_numpy(), (seed * x.astype(np.float64) ** 2).sum(0), rtol=1e-4, atol=1e-5)


def test_precompile_builds_what_the_call_needs(module: spy.Module):
    x = arrays()["reversed"]
    spy.precompile([(module.scale, 2.0, x)])
    before = compile_stage.builds
    module.scale(2.0, x, _result="numpy")
    module.scale(2.0, x)
    assert compile_stage.builds - before <= 1  # the second result has a kernel of its own


def test_plans_of_calls_that_run_nothing_are_shown(module: spy.Module):
    before = compile_stage.builds
    view = module.scale.debug_build_call_data(2.0, arrays()["plain"])
    assert "scale(" in view.code and compile_stage.builds == before
    assert view.pipeline is module.scale.debug_build_call_data(2.0, arrays()["plain"]).pipeline
    assert compile_stage.builds - before <= 1
