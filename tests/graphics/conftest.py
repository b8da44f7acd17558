"""Devices that draw."""

from __future__ import annotations

import pytest

import slangpy as spy


def draws_on(device: spy.Device) -> spy.Device:
    """The device, unless it has no rasterisation: then the test is skipped."""
    if not device.has_feature(spy.Feature.rasterization):
        pytest.skip(f"{device.info.adapter_name} does not rasterise")
    return device


@pytest.fixture
def drawer(device: spy.Device) -> spy.Device:
    """The shared device."""
    return draws_on(device)
