"""f.prepare(...) where nothing runs: everything but the kernel."""

from __future__ import annotations

import pytest

import slangpy as spy


def test_null_device() -> None:
    device = spy.create_device(type=spy.DeviceType.null)
    module = spy.Module.load_from_source(device, "prepared_null", "float add(float a, float b) { return a + b; }")
    x = spy.Tensor.zeros(device, (3,), "float")
    prepared = module.add.prepare(x, 1.0)
    assert prepared().shape == (3,)
    assert prepared(a=spy.Tensor.zeros(device, (3,), "float"), b=2.0) is prepared()
    with pytest.raises(ValueError, match="argument a: expected a Tensor of float with shape"):
        prepared(a=spy.Tensor.zeros(device, (4,), "float"))
    device.close()
    with pytest.raises(RuntimeError, match="closed"):
        prepared()
