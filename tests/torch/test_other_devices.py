"""CPU tensors on devices that copy them."""

from __future__ import annotations

from typing import Any

import pytest

import slangpy as spy

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.needs_kernels

SOURCE = """
bool positive(float x) { return x > 0; }
bool2 both(float2 x) { return x > 0; }
int64_t wide(int x) { return int64_t(x) << 33; }
int16_t narrow(int x) { return int16_t(x); }
"""


def test_results_by_type(device: Any) -> None:
    """Elements take the size that torch gives them, whatever the device stores."""
    if device.info.type is spy.DeviceType.cuda:
        pytest.skip("takes CUDA tensors")
    m = spy.Module.load_from_source(device, "torch_results_by_type", SOURCE)
    x = torch.randn(100_001)
    assert torch.equal(m.positive(x), x > 0)
    pairs = torch.randn(5001, 2)
    assert torch.equal(m.both(pairs), pairs > 0)
    i = torch.arange(-500, 501, dtype=torch.int32)
    assert torch.equal(m.wide(i), i.long() << 33)
    assert torch.equal(m.narrow(i), i.short())
