"""Random programs with lanes and without, on the CPU device: the same bits; README.md says how to run more.

SLANGPY_ATTACK_LANES  programs; default: 14
"""

from __future__ import annotations

import os

import pytest

import slangpy as spy

pytest.importorskip("torch")

from .hunt import Hunt, seed_of
from .lanes.forward import FAMILY

BATCH, FIRST = 14, 1


@pytest.mark.slow
@pytest.mark.one
@pytest.mark.needs_kernels
def test_lanes_give_the_same_bits(device_type: spy.DeviceType) -> None:
    if device_type != spy.DeviceType.cpu:
        pytest.skip("lanes are of the cpu device")
    hunt = Hunt(FAMILY, ["cpu"], count=BATCH, optimized=False, limit=400)
    programs = int(os.environ.get("SLANGPY_ATTACK_LANES", BATCH))
    records = [record for batch in range((programs + BATCH - 1) // BATCH) for record in hunt.batch(seed_of(1, FIRST + batch))]
    hunt.worker.close()
    failures = [f"batch {finding['seed']}: {finding['text']}\n{finding['source']}" for r in records for finding in r["findings"]]
    assert not failures, "\n".join(failures)[:8000]
    lanes, loops = (sum(record[name] for record in records) for name in ("lanes", "loops"))
    assert lanes >= 0.7 * programs and loops >= 0.2 * programs, f"of {programs} programs {lanes} had lanes, {loops} such loops"
