"""Devices that draw."""

from __future__ import annotations

import pytest

import slangpy as spy


@pytest.fixture
def drawer(device: spy.Device) -> spy.Device:
    """The shared device, where it has rasterisation."""
    if not device.has_feature(spy.Feature.rasterization):
        pytest.skip(f"{device.info.adapter_name} does not rasterise")
    return device
