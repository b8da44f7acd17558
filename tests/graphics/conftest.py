"""Devices that draw."""

from __future__ import annotations

import pytest
from drawing import draws_on

import slangpy as spy


@pytest.fixture
def drawer(device: spy.Device) -> spy.Device:
    """The shared device."""
    return draws_on(device)
