"""A few random programs with lanes and without, on the CPU device: the same bits; README.md says how to run more."""

from __future__ import annotations

import pytest

import slangpy as spy

from .hunt import Hunt
from .lanes.forward import FAMILY

SEED, PROGRAMS = 922169203782, 14


@pytest.mark.slow
@pytest.mark.one
@pytest.mark.needs_kernels
def test_lanes_give_the_same_bits(device_type: spy.DeviceType) -> None:
    if device_type != spy.DeviceType.cpu:
        pytest.skip("lanes are of the cpu device")
    hunt = Hunt(FAMILY, ["cpu"], count=PROGRAMS, optimized=False, limit=400)
    (record,) = hunt.batch(SEED)
    hunt.worker.close()
    assert not record["findings"], record["findings"][0]["text"]
    assert record["lanes"] >= 12 and record["loops"] >= 4, record
