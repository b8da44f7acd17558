"""Panels on devices that draw."""

from __future__ import annotations

import importlib.util
import os

import pytest
from panel import Panel

import slangpy as spy


@pytest.fixture
def drawer(device: spy.Device) -> spy.Device:
    """The shared device, if it draws and the package is there."""
    if importlib.util.find_spec("imgui_bundle") is None:
        if os.environ.get("SLANGPY_TEST_REQUIRE_WINDOWS") == "1":
            pytest.fail("imgui-bundle is not installed")
        pytest.skip("imgui-bundle is not installed")
    if not device.has_feature(spy.Feature.rasterization):
        pytest.skip(f"{device.info.adapter_name} does not rasterise")
    return device


@pytest.fixture
def panel(drawer: spy.Device) -> Panel:
    return Panel(drawer)
