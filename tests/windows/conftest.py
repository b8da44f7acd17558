"""A display for windows, and devices that show something on it."""

from __future__ import annotations

import gc
import importlib
import importlib.util
import os
import shutil
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest
from screen import Screen

import slangpy as spy


@pytest.fixture(scope="session")
def screen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Screen]:
    """The display that windows of this process open on."""
    missing = [name for name in ("Xvfb", "xdotool") if shutil.which(name) is None]
    missing += ["glfw"] if importlib.util.find_spec("glfw") is None else []
    missing += [f"X11 on {sys.platform}"] if sys.platform != "linux" else []
    if missing:
        message = f"windows are not tested here: no {', '.join(missing)}"
        if os.environ.get("SLANGPY_TEST_REQUIRE_WINDOWS") == "1":
            pytest.fail(message)
        pytest.skip(message)
    screen = Screen(tmp_path_factory.mktemp("screen"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DISPLAY", screen.display)
        patch.delenv("WAYLAND_DISPLAY", raising=False)
        yield screen


@pytest.fixture(autouse=True)
def empty_screen(request: pytest.FixtureRequest) -> Iterator[None]:
    """What a test leaves on the screen, in a cycle of references or in frozen memory, lies under no later window."""
    yield
    if "screen" in request.fixturenames:
        shown: Screen = request.getfixturevalue("screen")
        for number in shown.do("search", "--onlyvisible", "--name", ".*").split():
            shown.do("windowunmap", number)


@pytest.fixture
def glfw(screen: Screen) -> ModuleType:
    """The package that windows need."""
    return importlib.import_module("glfw")


@pytest.fixture
def window(screen: Screen) -> spy.Window:
    """At (60, 40), 200 x 120, under the mouse and with the keyboard."""
    gc.collect()  # no other window lies under it
    window = spy.Window(200, 120, "a window")
    window.position = (60, 40)
    window.process_events()
    return window


@pytest.fixture
def shower(device: spy.Device, screen: Screen) -> spy.Device:
    """The shared device, where it can show something."""
    if device.info.type is spy.DeviceType.d3d12:
        pytest.skip("d3d12 devices have no surfaces on this system")
    return device
