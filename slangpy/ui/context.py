"""`Context`: one screen of widgets, drawn into textures or images of a window."""

from __future__ import annotations

import time
import weakref
from typing import Any

from .._native import Device, Texture, TextureView
from ..base.own_names import own_names
from ..base.typed import integer
from .events import tell_keyboard, tell_mouse
from .library import current, leave, load_imgui, set_up
from .renderer import Renderer
from .textures import sync_textures
from .widgets import Calls, Screen

_LEAST_STEP = 1e-4
"""Seconds: ImGui wants time to go on."""


@own_names
class Context:
    """Widgets below `screen`, on a device that rasterises. No window is needed.

    ImportError without the package imgui-bundle, NotImplementedError on devices without the feature `rasterization`.
    """

    def __init__(self, device: Any) -> None:
        if not isinstance(device, Device):
            raise TypeError(f"ui.Context: 'device' must be a Device, got {device!r}")
        self._imgui = imgui = load_imgui()
        self._renderer = Renderer(device)
        self._device = device
        with current(imgui):
            self._context = imgui.create_context()
            weakref.finalize(self, leave, imgui, self._context).atexit = False
        with current(imgui, self._context):
            set_up(imgui, 1, 1)
        self._screen = Screen()
        self._is_open = False
        self._time: float | None = None

    @property
    def device(self) -> Any:
        """The device that draws."""
        return self._device

    @property
    def screen(self) -> Screen:
        """What windows and other widgets are put into."""
        return self._screen

    def begin_frame(self, width: int, height: int, window: Any = None) -> None:
        """Lays the widgets out for a target of so many pixels, and then runs the callbacks of those that the user has
        changed. window: whose clipboard is used."""
        width, height = integer("begin_frame 'width'", width, 1), integer("begin_frame 'height'", height, 1)
        if window is not None and not hasattr(window, "get_clipboard"):
            raise TypeError(f"begin_frame 'window': expected a Window or None, got {window!r}")
        imgui, calls = self._imgui, Calls()
        with current(imgui, self._context):
            if self._is_open:
                imgui.end_frame()
            io = imgui.get_io()
            io.display_size = imgui.ImVec2(width, height)
            io.delta_time = self._step()
            if window is not None:
                self._use_clipboard(window)
            imgui.new_frame()
            self._is_open = True
            self._screen._show(imgui, calls)
        for callback, arguments in calls:
            callback(*arguments)

    def end_frame(self, target: Texture | TextureView, command_encoder: Any) -> None:
        """Records the drawing over what the target (usage render_target) holds."""
        if not self._is_open:
            raise RuntimeError("end_frame: no frame was begun; call begin_frame(width, height) first")
        self._renderer.check("end_frame", target, command_encoder)
        imgui = self._imgui
        with current(imgui, self._context):
            imgui.render()
            self._is_open = False
            self.render_draw_data(imgui.get_draw_data(), target, command_encoder)

    def handle_keyboard_event(self, event: Any) -> bool:
        """Hands it to the widgets. True: they want it; Escape only while a text is edited or a list is open."""
        with current(self._imgui, self._context):
            return tell_keyboard(event)

    def handle_mouse_event(self, event: Any) -> bool:
        """Hands it to the widgets. True: they want the mouse."""
        with current(self._imgui, self._context):
            return tell_mouse(event)

    def render_draw_data(self, draw_data: Any, target: Texture | TextureView, encoder: Any) -> None:
        """What anybody's ImGui made, over what the target holds; makes the textures that it asks for."""
        self._renderer.check("render_draw_data", target, encoder)
        sync_textures(self._device, self._imgui.ImTextureStatus, draw_data)
        self._renderer.draw(draw_data, self._imgui.INDEX_SIZE, target, encoder)

    def _step(self) -> float:
        now = time.perf_counter()
        step = 1 / 60 if self._time is None else now - self._time
        self._time = now
        return max(step, _LEAST_STEP)

    def _use_clipboard(self, window: Any) -> None:
        """ImGui's package keeps the functions beyond the context, and they must not keep the window."""
        reference = weakref.ref(window)

        def get_text(_: Any) -> str:
            owner = reference()
            return "" if owner is None else owner.get_clipboard() or ""

        def set_text(_: Any, text: str) -> None:
            owner = reference()
            if owner is not None:
                owner.set_clipboard(text)

        platform = self._imgui.get_platform_io()
        platform.platform_get_clipboard_text_fn, platform.platform_set_clipboard_text_fn = get_text, set_text


__all__ = ["Context"]
