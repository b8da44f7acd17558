"""`Window`: what it is, and the events of a real keyboard and mouse."""

from __future__ import annotations

import ctypes
import gc
import importlib
import os
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from screen import HEIGHT, WIDTH, Screen, wait_until

import slangpy as spy

pytestmark = pytest.mark.null
PRESS, RELEASE, REPEAT, INPUT = spy.KeyboardEventType
DOWN, UP, MOVE, SCROLL = spy.MouseEventType
SHIFT, CTRL, ALT = spy.KeyModifier
NONE = spy.KeyModifierFlags.none


def told(window: spy.Window, name: str) -> list[Any]:
    """The list that a callback of a window fills."""
    events: list[Any] = []
    setattr(window, name, lambda *arguments: events.append(arguments if len(arguments) > 1 else arguments[0]))
    return events


def events_of(window: spy.Window, events: list[Any], count: int) -> list[Any]:
    """Processes events until there are so many."""

    def enough() -> bool:
        window.process_events()
        return len(events) >= count

    assert wait_until(enough), events
    return events


def focus(screen: Screen, window: spy.Window) -> None:
    """Mouse and keyboard are the window's."""
    number = importlib.import_module("glfw").get_x11_window(window._handle)
    screen.do("windowraise", number, "windowfocus", number, "mousemove", 100, 80)
    window.process_events()


# --- what it is


def test_defaults(screen: Screen) -> None:
    window = spy.Window()
    assert (window.width, window.height, window.title) == (1024, 1024, "slangpy")
    assert window.size == spy.uint2(1024, 1024) and not window.should_close()
    assert all(getattr(window, name) is None for name in ("on_resize", "on_keyboard_event", "on_mouse_event"))
    window.close()
    assert window.should_close()
    window.process_events()


def test_size_position_and_title(screen: Screen, window: spy.Window) -> None:
    assert window.position == spy.int2(60, 40) and window.size == spy.uint2(200, 120)
    sizes = told(window, "on_resize")
    window.process_events()
    assert sizes == []
    window.resize(300, 150)
    window.process_events()
    window.size = (310, 160)
    window.process_events()
    window.width = 320
    window.height = 170
    window.process_events()
    assert sizes == [(300, 150), (310, 160), (320, 170)]
    window.title = "another title"
    window.position = spy.int2(5, 7)
    number = screen.do("search", "--sync", "--name", "^another title$")
    geometry = screen.do("getwindowgeometry", "--shell", number)
    assert {"X=5", "Y=7", "WIDTH=320", "HEIGHT=170"} <= set(geometry.split())
    assert window.position == spy.int2(5, 7) and window.title == "another title"


def test_somebody_else_resizes(screen: Screen, window: spy.Window) -> None:
    sizes = told(window, "on_resize")
    screen.do("windowsize", importlib.import_module("glfw").get_x11_window(window._handle), 123, 234)
    assert events_of(window, sizes, 1) == [(123, 234)]


def test_full_screen(screen: Screen) -> None:
    window = spy.Window(64, 64, mode=spy.WindowMode.fullscreen)
    assert window.size == spy.uint2(WIDTH, HEIGHT) and window.position == spy.int2(0, 0)
    assert spy.Window(80, 90, mode=spy.WindowMode.minimized, resizable=False).size == spy.uint2(80, 90)


def test_windows_close_when_nobody_holds_them(screen: Screen) -> None:
    window = spy.Window(64, 64, "short")
    assert screen.do("search", "--sync", "--onlyvisible", "--name", "^short$")
    del window
    gc.collect()
    spy.Window(32, 32).process_events()
    with pytest.raises(subprocess.CalledProcessError):
        screen.do("search", "--onlyvisible", "--name", "^short$")


@pytest.mark.parametrize(
    "make, error, text",
    [
        (lambda w: spy.Window(0, 10), ValueError, "Window 'width': expected 1 to 32767, got 0"),
        (lambda w: spy.Window(10, 2.5), TypeError, "Window 'height': expected an int, got 2.5"),
        (lambda w: spy.Window(10, 10, 3), TypeError, "Window 'title': expected a str, got 3"),
        (lambda w: spy.Window(10, 10, mode="full"), ValueError, r"Window 'mode': expected a WindowMode \(normal, minimized, fullscreen\), got 'full'"),
        (lambda w: w.resize(-1, 1), ValueError, "Window.resize 'width': expected 1 to 32767, got -1"),
        (lambda w: spy.Window(10, 1 << 16), ValueError, "Window 'height': expected 1 to 32767, got 65536"),
        (lambda w: setattr(w, "width", 1 << 32), ValueError, "Window.resize 'width': expected 1 to 32767, got 4294967296"),
        (lambda w: setattr(w, "position", (0, -(1 << 40))), ValueError, r"Window.position: expected -32767 to 32767, got -1099511627776"),
        (lambda w: setattr(w, "size", 3), TypeError, "Window.size: expected 2 numbers, got 3"),
        (lambda w: setattr(w, "title", None), TypeError, "Window.title: expected a str, got None"),
        (lambda w: setattr(w, "on_resize", 3), TypeError, "Window.on_resize: expected a function or None, got 3"),
        (lambda w: setattr(w, "cursor_mode", 1), TypeError, "Window.cursor_mode: expected a CursorMode, got 1"),
        (lambda w: setattr(w, "cursor_shape", 1), TypeError, "Window.cursor_shape: expected a CursorShape, got 1"),
        (lambda w: w.set_clipboard(3), TypeError, "Window.set_clipboard: expected a str, got 3"),
    ],
)
def test_errors(window: spy.Window, make: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=f"^{text}"):
        make(window)


# --- events


def test_typing(screen: Screen, window: spy.Window) -> None:
    keys = told(window, "on_keyboard_event")
    focus(screen, window)
    screen.do("key", "a")
    assert events_of(window, keys, 3) == [
        spy.KeyboardEvent(PRESS, spy.KeyCode.a, NONE),
        spy.KeyboardEvent(INPUT, spy.KeyCode.unknown, NONE, 97),
        spy.KeyboardEvent(RELEASE, spy.KeyCode.a, NONE),
    ]
    assert keys[0].is_key_press() and keys[1].is_input() and keys[2].is_key_release() and not keys[2].is_key_repeat()


def test_modifiers_of_keys(screen: Screen, window: spy.Window) -> None:
    keys = told(window, "on_keyboard_event")
    focus(screen, window)
    screen.do("keydown", "shift", "key", "b", "keyup", "shift")
    shift = spy.KeyModifierFlags.shift
    left = spy.KeyCode.left_shift
    assert events_of(window, keys, 5) == [
        spy.KeyboardEvent(PRESS, left, shift),
        spy.KeyboardEvent(PRESS, spy.KeyCode.b, shift),
        spy.KeyboardEvent(INPUT, spy.KeyCode.unknown, shift, ord("B")),
        spy.KeyboardEvent(RELEASE, spy.KeyCode.b, shift),
        spy.KeyboardEvent(RELEASE, left, NONE),
    ]
    keys.clear()
    screen.do("key", "ctrl+alt+Escape")
    escape = events_of(window, keys, 6)[2]
    assert escape.key == spy.KeyCode.escape and escape.is_key_press()
    assert [escape.has_modifier(one) for one in (SHIFT, CTRL, ALT)] == [False, True, True]


@pytest.mark.parametrize(
    "name, code",
    [("F12", "f12"), ("Left", "left"), ("KP_Add", "keypad_add"), ("Return", "enter"), ("7", "key7"), ("bracketleft", "left_bracket")],
)
def test_names_of_keys(screen: Screen, window: spy.Window, name: str, code: str) -> None:
    keys = told(window, "on_keyboard_event")
    focus(screen, window)
    screen.do("key", name)
    assert events_of(window, keys, 2)[0].key == spy.KeyCode[code]


def test_mouse(screen: Screen, window: spy.Window) -> None:
    focus(screen, window)
    mouse = told(window, "on_mouse_event")
    screen.do("mousemove", 60 + 25, 40 + 30)
    moved = events_of(window, mouse, 1)[-1]
    assert (moved.type, moved.pos, moved.is_move()) == (MOVE, spy.float2(25, 30), True)
    mouse.clear()
    for number in (1, 2, 3, 4, 5, 9):
        screen.do("click", number)
    events = events_of(window, mouse, 8)
    at = [(event.type, event.button) for event in events[:6]]
    assert at == [(type, button) for button in list(spy.MouseButton)[:3] for type in (DOWN, UP)]
    assert [event.scroll for event in events[6:]] == [spy.float2(0, 1), spy.float2(0, -1)]
    assert all(event.pos == spy.float2(25, 30) for event in events) and len(events) == 8


def test_modifiers_of_the_mouse(screen: Screen, window: spy.Window) -> None:
    focus(screen, window)
    mouse = told(window, "on_mouse_event")
    screen.do("keydown", "ctrl", "click", 1, "keyup", "ctrl")
    down = events_of(window, mouse, 2)[0]
    assert down.is_button_down() and down.mods == spy.KeyModifierFlags.ctrl and down.has_modifier(CTRL)


def test_exceptions_come_out(screen: Screen, window: spy.Window) -> None:
    """Whatever was not told yet is told by the next call."""
    seen: list[spy.KeyboardEvent] = []

    def fail(event: spy.KeyboardEvent) -> None:
        seen.append(event)
        if len(seen) == 1:
            raise KeyError("of the callback")

    window.on_keyboard_event = fail
    focus(screen, window)
    screen.do("key", "x")
    with pytest.raises(KeyError, match="of the callback"):
        events_of(window, seen, 3)
    assert [event.type for event in events_of(window, seen, 3)] == [PRESS, INPUT, RELEASE]


def test_callbacks_may_be_taken_away(screen: Screen, window: spy.Window) -> None:
    keys = told(window, "on_keyboard_event")
    window.on_keyboard_event = None
    focus(screen, window)
    mouse = told(window, "on_mouse_event")
    screen.do("key", "q", "click", 1)
    events_of(window, mouse, 2)
    assert keys == []


def test_events_go_to_their_window(screen: Screen, window: spy.Window) -> None:
    other = spy.Window(100, 100, "the other")
    other.position = (400, 300)
    here, there = told(window, "on_keyboard_event"), told(other, "on_keyboard_event")
    focus(screen, window)
    screen.do("key", "m")
    other.process_events()
    assert len(events_of(window, here, 3)) == 3 and there == []


def test_dropped_files(window: spy.Window, glfw: Any) -> None:
    files = told(window, "on_drop_files")
    callback = glfw.set_drop_callback(window._handle, None)
    paths = (ctypes.c_char_p * 2)(b"/tmp/a.png", b"/tmp/b.exr")  # as the library passes them
    callback(window._handle, 2, paths)
    assert files == []
    window.process_events()
    assert files == [["/tmp/a.png", "/tmp/b.exr"]]


def test_clipboard(window: spy.Window) -> None:
    window.set_clipboard("text with ü")
    assert window.get_clipboard() == "text with ü"
    assert spy.Window(10, 10).get_clipboard() == "text with ü"


def test_cursor(window: spy.Window, glfw: Any) -> None:
    assert (window.cursor_mode, window.cursor_shape) == (spy.CursorMode.normal, spy.CursorShape.arrow)
    for mode, value in zip(spy.CursorMode, (glfw.CURSOR_NORMAL, glfw.CURSOR_HIDDEN, glfw.CURSOR_DISABLED), strict=True):
        window.cursor_mode = mode
        assert window.cursor_mode == mode and glfw.get_input_mode(window._handle, glfw.CURSOR) == value
    window.cursor_mode = spy.CursorMode.normal
    for shape in spy.CursorShape:
        window.cursor_shape = shape
        assert window.cursor_shape == shape


def test_gamepad(window: spy.Window, glfw: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """With pads that GLFW would report; the machine has none."""
    pads: dict[int, Any] = {}
    monkeypatch.setattr(glfw, "joystick_is_gamepad", lambda place: place in pads)
    monkeypatch.setattr(glfw, "get_gamepad_state", pads.get)
    events, states = told(window, "on_gamepad_event"), told(window, "on_gamepad_state")
    window.process_events()
    assert events == states == []
    buttons = [0] * 15
    pads[3] = SimpleNamespace(buttons=buttons, axes=[0.5, -0.25, 0.0, 1.0, -1.0, 0.75])
    window.process_events()
    buttons[1] = buttons[14] = 1
    window.process_events()
    buttons[1] = 0
    window.process_events()
    pads.clear()
    window.process_events()
    window.process_events()
    kinds = spy.GamepadEventType
    assert [(event.type, event.button) for event in events] == [
        (kinds.connect, spy.GamepadButton.unknown),
        (kinds.button_down, spy.GamepadButton.b),
        (kinds.button_down, spy.GamepadButton.left),
        (kinds.button_up, spy.GamepadButton.b),
        (kinds.disconnect, spy.GamepadButton.unknown),
    ]
    assert events[0].is_connect() and events[1].is_button_down() and events[3].is_button_up() and events[4].is_disconnect()
    assert len(states) == 3 and states[1].buttons == (1 << 2) | (1 << 15)
    assert states[1].is_button_down(spy.GamepadButton.b) and not states[2].is_button_down(spy.GamepadButton.b)
    assert (states[0].left_x, states[0].left_y, states[0].right_y, states[0].right_trigger) == (0.5, -0.25, 1.0, 0.75)


def test_events_are_values() -> None:
    event = spy.MouseEvent(pos=spy.float2(1, 2), mods=spy.KeyModifierFlags.shift | spy.KeyModifierFlags.alt)
    event.type = SCROLL
    event.scroll = spy.float2(0, -1)
    assert event.is_scroll() and [event.has_modifier(one) for one in (SHIFT, CTRL, ALT)] == [True, False, True]
    assert [int(button) for button in spy.GamepadButton] == list(range(16))
    assert [int(spy.MouseButton[name]) for name in ("left", "middle", "right", "unknown")] == [0, 1, 2, 3]
    assert (spy.KeyCode.world_2, spy.KeyCode.f1, spy.KeyCode.keypad0, spy.KeyCode.left_shift, spy.KeyCode.unknown) == (
        162, 275, 287, 304, 313,
    )  # fmt: skip


# --- without


def run_without(code: str, **variables: str) -> str:
    kept = {name: text for name, text in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")}
    done = subprocess.run(
        [sys.executable, "-c", code], env={**kept, **variables}, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_without_display() -> None:
    pytest.importorskip("glfw")
    text = run_without(
        "import slangpy as spy\n"
        "try:\n    spy.Window()\nexcept RuntimeError as error:\n    print(error)\n"
        "device = spy.Device(type=spy.DeviceType.null)\nprint(device.info.type.name)"
    )
    assert "no display was found (DISPLAY is not set, WAYLAND_DISPLAY is not set;" in text
    assert "drawing into textures and ui.Context work without one" in text and text.endswith("null\n")


def test_without_the_package() -> None:
    text = run_without(
        "import sys\nsys.modules['glfw'] = None\nimport slangpy as spy\nspy.KeyboardEvent()\n"
        "try:\n    spy.Window()\nexcept ImportError as error:\n    print(error)"
    )
    assert text == "Window needs glfw: pip install slangpy[window]\n"
