"""`Window`: one window of the desktop. GLFW's callbacks only note what happens; `process_events` tells it."""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from .._native import int2, uint2
from ..base.own_names import own_names
from ..base.typed import function_or_none, integer, member, text, truth
from .events import CursorMode, CursorShape, GamepadEvent, GamepadState, KeyboardEvent, MouseEvent, WindowMode
from .gamepad import Gamepad
from .queue import EventQueue
from .system import ask, glfw_for_windows

_CALLBACKS = ("on_resize", "on_keyboard_event", "on_mouse_event", "on_gamepad_event", "on_gamepad_state", "on_drop_files")


@own_names
class Window:
    """A window, and what its user does with it.

    width, height: in screen coordinates (pixels on X11 and Windows). Callbacks are attributes that are None or functions;
    they run inside `process_events()`, out of which their exceptions come. ImportError without the package glfw,
    RuntimeError without a display.
    """

    on_resize: Callable[[int, int], Any] | None
    """on_resize(width, height), when the size has changed, whoever changed it."""
    on_keyboard_event: Callable[[KeyboardEvent], Any] | None
    on_mouse_event: Callable[[MouseEvent], Any] | None
    on_gamepad_event: Callable[[GamepadEvent], Any] | None
    on_gamepad_state: Callable[[GamepadState], Any] | None
    """on_gamepad_state(state), in each process_events() while there is a gamepad."""
    on_drop_files: Callable[[list[str]], Any] | None

    def __init__(
        self,
        width: int = 1024,
        height: int = 1024,
        title: str = "slangpy",
        mode: WindowMode = WindowMode.normal,
        resizable: bool = True,
    ) -> None:
        for name in _CALLBACKS:
            object.__setattr__(self, name, None)
        size = _size("Window", width, height)
        text("Window 'title'", title)
        truth("Window 'resizable'", resizable)
        mode = member("Window 'mode'", WindowMode, mode)
        self._glfw = glfw = glfw_for_windows()
        _destroy_left(glfw)
        self._gamepad = Gamepad()
        self._title = title
        self._cursor_mode, self._cursor_shape = CursorMode.normal, CursorShape.arrow
        self._handle = _open(glfw, size, title, mode, resizable)
        self._told_size = self._size()
        self._is_resized = False
        self._cursors: dict[CursorShape, Any] = {}
        # At the end of the process surfaces go before windows, and the system closes these.
        weakref.finalize(self, _leave, glfw, self._handle, self._cursors).atexit = False
        self._events = EventQueue(glfw, self._handle)

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, function_or_none(f"Window.{name}", value) if name in _CALLBACKS else value)

    def __repr__(self) -> str:
        width, height = self._size()
        return f"Window(\n  title = {self._title!r},\n  size = {width} x {height},\n)"

    # --- properties

    def _size(self) -> tuple[int, int]:
        return self._glfw.get_window_size(self._handle)

    @property
    def width(self) -> int:
        """Of the content, in pixels."""
        return self._size()[0]

    @width.setter
    def width(self, width: int) -> None:
        self.resize(width, self.height)

    @property
    def height(self) -> int:
        """Of the content, in pixels."""
        return self._size()[1]

    @height.setter
    def height(self, height: int) -> None:
        self.resize(self.width, height)

    @property
    def size(self) -> uint2:
        """Width and height of the content, in pixels."""
        return uint2(*self._size())

    @size.setter
    def size(self, size: Sequence[int] | uint2) -> None:
        width, height = _pair("Window.size", size)
        self.resize(width, height)

    def resize(self, width: int, height: int) -> None:
        """`on_resize` is told by the next process_events(). The desktop may decide otherwise, or later."""
        ask("Window.resize", self._glfw.set_window_size, self._handle, *_size("Window.resize", width, height))
        self._is_resized = True  # where the system tells it later than the next poll

    @property
    def position(self) -> int2:
        """Of the upper left corner of the content on the screen; (0, 0) where windows do not know it (Wayland)."""
        return int2(*ask("Window.position", self._glfw.get_window_pos, self._handle, default=(0, 0), strict=False))

    @position.setter
    def position(self, position: Sequence[int] | int2) -> None:
        ask("Window.position", self._glfw.set_window_pos, self._handle, *_pair("Window.position", position))

    @property
    def title(self) -> str:
        """Text of the title bar; may be set."""
        return self._title

    @title.setter
    def title(self, title: str) -> None:
        if not isinstance(title, str):
            raise TypeError(f"Window.title: expected a str, got {title!r}")
        self._glfw.set_window_title(self._handle, title)
        self._title = title

    # --- its end

    def close(self) -> None:
        """Marks it: should_close() is true from now on."""
        self._glfw.set_window_should_close(self._handle, True)

    def should_close(self) -> bool:
        """Whether the user has asked to close the window."""
        return bool(self._glfw.window_should_close(self._handle))

    # --- events

    def process_events(self) -> None:
        """Polls, and runs the callbacks for what has happened. After an exception in one of them the next call goes on
        with what was not told yet."""
        _destroy_left(self._glfw)
        self._glfw.poll_events()
        if self._is_resized or self._events.is_resized:
            size = self._size()
            if size != self._told_size and all(size):
                self._told_size = size
                self._events.add("on_resize", *size)
            self._is_resized = self._events.is_resized = False
        for event in self._gamepad.poll(self._glfw):
            self._events.add("on_gamepad_event", event)
        if self._gamepad.state is not None:
            self._events.add("on_gamepad_state", self._gamepad.state)
        while (told := self._events.take()) is not None:
            name, arguments = told
            callback = getattr(self, name)
            if callback is not None:
                callback(*arguments)

    # --- clipboard and cursor

    def set_clipboard(self, text: str) -> None:
        """Puts a text into the clipboard."""
        if not isinstance(text, str):
            raise TypeError(f"Window.set_clipboard: expected a str, got {text!r}")
        ask("Window.set_clipboard", self._glfw.set_clipboard_string, None, text)

    def get_clipboard(self) -> str | None:
        """None where there is no text."""
        text = ask("Window.get_clipboard", self._glfw.get_clipboard_string, None, strict=False)
        return text.decode() if isinstance(text, bytes) else text

    @property
    def cursor_mode(self) -> CursorMode:
        """Whether the cursor is shown, hidden or held; may be set."""
        return self._cursor_mode

    @cursor_mode.setter
    def cursor_mode(self, mode: CursorMode) -> None:
        if not isinstance(mode, CursorMode):
            raise TypeError(f"Window.cursor_mode: expected a CursorMode, got {mode!r}")
        glfw = self._glfw
        values = (glfw.CURSOR_NORMAL, glfw.CURSOR_HIDDEN, glfw.CURSOR_DISABLED)
        ask("Window.cursor_mode", glfw.set_input_mode, self._handle, glfw.CURSOR, values[mode])
        self._cursor_mode = mode

    @property
    def cursor_shape(self) -> CursorShape:
        """Shape of the cursor; may be set."""
        return self._cursor_shape

    @cursor_shape.setter
    def cursor_shape(self, shape: CursorShape) -> None:
        if not isinstance(shape, CursorShape):
            raise TypeError(f"Window.cursor_shape: expected a CursorShape, got {shape!r}")
        glfw = self._glfw
        if shape not in self._cursors:
            values = (
                glfw.ARROW_CURSOR, glfw.IBEAM_CURSOR, glfw.CROSSHAIR_CURSOR, glfw.HAND_CURSOR, glfw.HRESIZE_CURSOR,
                glfw.VRESIZE_CURSOR,
            )  # fmt: skip
            self._cursors[shape] = ask("Window.cursor_shape", glfw.create_standard_cursor, values[shape])
        ask("Window.cursor_shape", glfw.set_cursor, self._handle, self._cursors[shape])
        self._cursor_shape = shape

    # --- for Device.create_surface

    def _vulkan_surface(self, instance: int) -> int:
        """A new VkSurfaceKHR of a VkInstance."""
        surface = ctypes.c_uint64()
        arguments = (ctypes.c_void_p(instance), self._handle, None, ctypes.byref(surface))
        result = ask("create_surface", self._glfw.create_window_surface, *arguments)
        if result != 0:
            raise RuntimeError(f"create_surface: GLFW made no surface of the window (VkResult {result})")
        return surface.value


def _open(glfw: Any, size: tuple[int, int], title: str, mode: WindowMode, resizable: bool) -> Any:
    monitor = glfw.get_primary_monitor() if mode == WindowMode.fullscreen else None
    glfw.default_window_hints()
    glfw.window_hint(glfw.CLIENT_API, glfw.NO_API)
    glfw.window_hint(glfw.RESIZABLE, bool(resizable))
    if monitor is not None:
        glfw.window_hint(glfw.DECORATED, False)
        resolution = glfw.get_video_mode(monitor).size
        size = (resolution.width, resolution.height)
    handle = ask("Window", glfw.create_window, *size, title, None, None)
    glfw.default_window_hints()
    if not handle:
        raise RuntimeError("Window: GLFW could not open a window")
    if monitor is not None:
        ask("Window", glfw.set_window_pos, handle, *glfw.get_monitor_pos(monitor), strict=False)
    if mode == WindowMode.minimized:
        glfw.iconify_window(handle)
    return handle


_left: deque[tuple[Any, dict[CursorShape, Any]]] = deque()
"""Windows that nobody holds, and their cursors: hidden, and destroyed by the next call of a window. Their surfaces, which may
be about to go, must go first."""


def _leave(glfw: Any, handle: Any, cursors: dict[CursorShape, Any]) -> None:
    _left.append((handle, cursors))
    if threading.current_thread() is threading.main_thread():  # collections of garbage run anywhere
        glfw.hide_window(handle)


def _destroy_left(glfw: Any) -> None:
    while _left:
        handle, cursors = _left.popleft()
        glfw.destroy_window(handle)
        for cursor in cursors.values():
            glfw.destroy_cursor(cursor)


_LAST_PIXEL = 32767
"""Coordinates of X11 have 16 bits, and it ends programs that ask for windows whose size is 0 in them."""


def _size(what: str, width: int, height: int) -> tuple[int, int]:
    return integer(f"{what} 'width'", width, 1, _LAST_PIXEL), integer(f"{what} 'height'", height, 1, _LAST_PIXEL)


def _pair(what: str, value: Any) -> tuple[int, int]:
    try:
        x, y = value
    except (TypeError, ValueError):
        raise TypeError(f"{what}: expected 2 numbers, got {value!r}") from None
    return integer(what, x, -_LAST_PIXEL, _LAST_PIXEL), integer(what, y, -_LAST_PIXEL, _LAST_PIXEL)
