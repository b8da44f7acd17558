"""The command `view`: a picture in a file, or the window and its loop."""

from __future__ import annotations

import argparse
import os
import time
from typing import Any

from ...base.keys import KeyCode
from ...device import Device, create_device
from ...images import save_image
from ...ui.library import load_imgui
from ...window import KeyboardEvent, MouseEvent, Window
from .controls import parse_settings
from .program import Program
from .viewer import Viewer

_MOST = 16384
"""Pixels of a side."""


def run(options: argparse.Namespace) -> int:
    width, height = parse_size(options.size)
    if options.save:
        save(options, width, height)
        return 0
    window = _window(width, height, os.path.basename(options.file))  # before all that takes time: there may be no display
    device = _open(options, "vulkan", reloads=True)
    viewer = Viewer(device, options.file, options.function)
    values = parse_settings(viewer.program.function, options.set)
    shown = Shown(viewer, window, values.pop("time", 0.0), values.pop("mouse", None))
    viewer.set(values)
    while not window.should_close():  # the close button, or Escape
        shown.frame()
    return 0


def _window(width: int, height: int, title: str) -> Window:
    load_imgui()
    try:
        return Window(width, height, title=title)
    except RuntimeError as error:
        raise RuntimeError(f"{error}. `view --save picture.png` writes the picture without a display") from None


def parse_size(text: str) -> tuple[int, int]:
    parts = text.lower().split("x")
    if len(parts) != 2 or not all(part.isdecimal() and 1 <= int(part) <= _MOST for part in parts):
        raise ValueError(f"view: --size {text}: expected WIDTHxHEIGHT, each from 1 to {_MOST}, as 640x480")
    return int(parts[0]), int(parts[1])


def save(options: argparse.Namespace, width: int, height: int) -> None:
    program = Program(_open(options, "automatic"), options.file, options.function)
    values = parse_settings(program.function, options.set)
    given = {name: values.pop(name) for name in ("time", "mouse") if name in values}
    save_image(options.save, program.render(width, height, values, **given))
    print(f"{options.save}: {program.function.name}, {width} x {height}, {program.device.type.name}")


def _open(options: argparse.Namespace, kind: str, reloads: bool = False) -> Device:
    folders = [os.path.abspath(path) for path in options.include]
    return create_device(options.device or kind, include_paths=folders, enable_hot_reload=reloads)


class Shown:
    """A viewer in a window: what its user does goes to the panel, the mouse beside it to the picture."""

    def __init__(self, viewer: Viewer, window: Window, start: float = 0.0, mouse: Any = None) -> None:
        self._viewer, self._window = viewer, window
        self._surface = viewer.shower.create_surface(window)
        self._resize(window.width, window.height)
        self._mouse: Any = mouse
        self._start = time.perf_counter() - start
        window.on_resize = self._resize
        window.on_keyboard_event = self._on_key
        window.on_mouse_event = self._on_mouse

    def frame(self) -> None:
        viewer, window = self._viewer, self._window
        window.process_events()
        image = self._surface.acquire_next_image()
        if image is None:  # the window has just changed its size, or is minimised
            return
        encoder = viewer.shower.create_command_encoder()
        viewer.draw(image, encoder, time.perf_counter() - self._start, self._mouse, window)
        viewer.shower.submit_command_buffer(encoder.finish())
        del image
        self._surface.present()

    def _resize(self, width: int, height: int) -> None:
        self._surface.configure(width=width, height=height)

    def _on_key(self, event: KeyboardEvent) -> None:
        if self._viewer.context.handle_keyboard_event(event):
            return
        if event.is_key_press() and event.key == KeyCode.escape:
            self._window.close()

    def _on_mouse(self, event: MouseEvent) -> None:
        if not self._viewer.context.handle_mouse_event(event):
            self._mouse = (event.pos.x, event.pos.y)


__all__ = ["Shown", "run"]
