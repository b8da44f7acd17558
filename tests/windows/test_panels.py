"""A panel of widgets over a picture, in a window, with a real mouse and keyboard."""

from __future__ import annotations

import importlib
import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from screen import Screen, wait_until

import slangpy as spy

pytestmark = pytest.mark.draws


def test_a_panel_in_a_window(screen: Screen, shower: spy.Device, window: spy.Window) -> None:
    if importlib.util.find_spec("imgui_bundle") is None and os.environ.get("SLANGPY_TEST_REQUIRE_WINDOWS") != "1":
        pytest.skip("imgui-bundle is not installed")
    surface = shower.create_surface(window)
    surface.configure(width=window.width, height=window.height)
    context = spy.ui.Context(shower)
    panel = spy.ui.Window(context.screen, "panel", (20, 10), (150, 100))
    pressed: list[Any] = []
    spy.ui.Button(panel, "press", lambda: pressed.append(1))
    text = spy.ui.InputText(panel, "##text")
    wanted: list[bool] = []
    window.on_mouse_event = lambda event: wanted.append(context.handle_mouse_event(event))
    window.on_keyboard_event = context.handle_keyboard_event

    def frame() -> None:
        window.process_events()
        context.begin_frame(window.width, window.height, window)
        image = surface.acquire_next_image()
        assert image is not None
        encoder = shower.create_command_encoder()
        encoder.clear_texture_float(image, clear_value=(0, 0.5, 0, 1))
        context.end_frame(image, encoder)
        shower.submit_command_buffer(encoder.finish())
        surface.present()

    def frames_until(is_so: Any) -> bool:
        return wait_until(lambda: frame() or is_so())

    for _ in range(4):
        frame()
    green = [0, 188, 0]

    def is_panel() -> bool:
        outside = np.abs(screen.pixels()[40:160, 60:260].astype(int) - green).max(-1) <= 1
        rows, columns = np.nonzero(~outside)
        return len(rows) > 0 and (columns.min(), columns.max(), rows.min(), rows.max()) == (20, 169, 10, 109)

    assert frames_until(is_panel)
    number = importlib.import_module("glfw").get_x11_window(window._handle)
    screen.do("windowraise", number, "windowfocus", number, "mousemove", 60 + 45, 40 + 46)
    frame()
    screen.do("mousedown", 1)
    frame()
    screen.do("mouseup", 1)
    assert frames_until(lambda: pressed == [1]) and wanted[-1]
    screen.do("mousemove", 60 + 60, 40 + 69)
    frame()
    screen.do("mousedown", 1)
    frame()
    screen.do("mouseup", 1)
    frame()
    screen.do("type", "ab3")
    assert frames_until(lambda: text.value == "ab3")
    window.on_mouse_event = window.on_keyboard_event = None


def test_the_example(screen: Screen, shower: spy.Device, tmp_path: Path) -> None:
    pytest.importorskip("OpenImageIO")
    script = Path(__file__).parents[2] / "examples" / "13_window" / "window.py"
    arguments = ["--device", shower.type.name, "--frames", "3", "--save", str(tmp_path / "waves.png")]
    done = subprocess.run(
        [sys.executable, str(script), *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0 and done.stdout.startswith("3 frames, "), done.stdout + done.stderr
    image = np.asarray(spy.Bitmap(str(tmp_path / "waves.png"))).astype(int)[..., :3]
    assert image.shape == (400, 640, 3) and image[350, 600].argmax() == 2  # blue waves
    assert image[20, 100, 2] < 140 and np.ptp(image[20, 20:250, 0]) > 100  # under a panel with a white title
