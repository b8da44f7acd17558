"""The viewer in a window: a real mouse on a slider, and a file that changes while it is shown."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pytest
from screen import Screen, wait_until

import slangpy as spy
from slangpy.tools.view import Viewer
from slangpy.tools.view.command import Shown

pytestmark = pytest.mark.draws

SOURCE = """
import slangpy.view;
float3 f(uint2 pixel, [Range(0, 1)] float red = 0) { return float3(red > 0.5 ? 1 : 0, 1, 0); }
"""


@pytest.mark.one
def test_a_slider_and_a_change_of_the_file(screen: Screen, shower: spy.Device, window: spy.Window, tmp_path: Path) -> None:
    pytest.importorskip("imgui_bundle")
    device = spy.create_device(shower.info.type)  # the shared one does not reload
    file = tmp_path / "shown.slang"
    file.write_text(SOURCE)
    window.resize(400, 240)
    viewer = Viewer(device, str(file))
    shown = Shown(viewer, window)

    def corner(color: list[int]) -> bool:
        """Whether the picture has the color on the screen where no panel is."""
        shown.frame()
        return bool(np.all(screen.pixels()[40 + 230, 60 + 380] == color))

    def is_told() -> bool:
        """Whether a dark panel with light text lies over the upper half, and is wider than that of the parameters."""
        upper = screen.pixels()[40 + 30 : 40 + 110, 60 + 15 : 60 + 385]
        return bool((upper[:, 310:].max(-1) < 250).all() and (upper.min(-1) > 200).sum() > 100)

    assert wait_until(lambda: corner([0, 255, 0]))
    number = importlib.import_module("glfw").get_x11_window(window._handle)
    screen.do("windowraise", number, "windowfocus", number, "mousemove", 60 + 40, 40 + 47)
    shown.frame()
    screen.do("mousedown", 1)
    shown.frame()
    screen.do("mousemove", 60 + 190, 40 + 47)
    assert wait_until(lambda: corner([255, 255, 0]))
    screen.do("mouseup", 1)
    shown.frame()
    assert viewer.values["red"] > 0.6

    viewer.set({"red": 0.25})
    slider = viewer._panel.children[0]
    assert isinstance(slider, spy.ui.SliderFloat) and slider.value == 0.25 and wait_until(lambda: corner([0, 255, 0]))
    viewer.set({"red": 0.75})
    file.write_text(SOURCE.replace("1, 0);", "1, blue);"))
    assert wait_until(lambda: corner([255, 255, 0]) and "blue" in viewer.error and is_told())
    file.write_text(SOURCE.replace("uint2", "uint3"))
    assert wait_until(lambda: corner([255, 255, 0]) and "shown.slang has no function of a pixel" in viewer.error and is_told())
    file.write_text(SOURCE.replace("1, 0);", "0, 1);").replace(" = 0)", " = 0, bool on = false)"))
    assert wait_until(lambda: corner([255, 0, 255]) and not is_told())
    assert viewer.error == "" and viewer.values["red"] == 0.75
    assert [child.label for child in viewer._panel.children] == ["red", "on"]

    screen.do("keydown", "ctrl", "click", 1)  # the number becomes a text
    for _ in range(3):
        shown.frame()
    screen.do("keyup", "ctrl", "key", "Escape")
    for _ in range(3):
        shown.frame()
    assert not window.should_close()
    screen.do("key", "Escape")
    assert wait_until(lambda: shown.frame() or window.should_close())
    window.on_mouse_event = window.on_keyboard_event = window.on_resize = None
    device.close()
