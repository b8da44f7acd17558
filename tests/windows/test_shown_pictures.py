"""`slangpy.show` in a window."""

from __future__ import annotations

import importlib
import threading

import numpy as np
import pytest
from screen import Screen, wait_until

import slangpy as spy
from slangpy.tools.view.show import Picture, PictureWindow

pytestmark = [pytest.mark.null, pytest.mark.draws]


def test_pixels_until_escape(screen: Screen) -> None:
    corners = np.array([[[255, 0, 0], [0, 255, 0]], [[0, 0, 255], [188, 137, 255]]], np.uint8)
    shown = PictureWindow(Picture(corners), "corners", 0.0, "color")
    assert (shown.window.width, shown.window.height) == (512, 512)
    shown.window.position = (60, 40)
    expected = corners.astype(int).repeat(256, 0).repeat(256, 1)

    def is_shown() -> bool:
        shown.frame()
        return bool(np.abs(screen.pixels()[40:552, 60:572] - expected).max() <= 1)

    assert wait_until(is_shown)
    number = importlib.import_module("glfw").get_x11_window(shown.window._handle)
    screen.do("windowraise", number, "windowfocus", number, "key", "Escape")

    def is_closed() -> bool:
        shown.frame()
        return shown.window.should_close()

    assert wait_until(is_closed)


def test_show_returns_when_closed(screen: Screen) -> None:
    def close() -> None:
        screen.do("search", "--sync", "--name", "^shown once$", "windowfocus", "--sync", "key", "Escape")

    user = threading.Thread(target=close)
    user.start()
    spy.show(np.zeros((64, 64), np.float32), "shown once")
    user.join()
