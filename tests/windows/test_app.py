"""`App` and `AppWindow`: their frames on the screen, hooks, reloads while they run."""

from __future__ import annotations

import ctypes
import gc
import importlib
import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from screen import Screen, wait_until

import slangpy as spy

pytestmark = pytest.mark.needs_kernels
AT = 60, 40
WIDTH, HEIGHT = 320, 200
CODE = "float4 paint(uint2 pixel) { return float4(%s, 1); }"
BLUE, GREEN, BLACK = (0, 0, 255), (0, 255, 0), (0, 0, 0)
THREE: Any = 3


class Painted(spy.AppWindow):
    """Filled with what a function says, or with a colour; notes what its hooks are told."""

    def __init__(self, app: spy.App, folder: Path | None = None, at: tuple[int, int] = AT, **options: Any) -> None:
        gc.collect()  # no other window lies over it
        super().__init__(app, WIDTH, HEIGHT, title=f"at {at}", **options)
        self.window.position = at
        self.at = at
        self.told: list[Any] = []
        self.color = (0.0, 0.0, 1.0, 1.0)
        self.module = None if folder is None else spy.Module.load_from_file(app.device, folder / "paint.slang")
        self.picture = app.device.create_texture(
            format=spy.Format.rgba32_float, width=WIDTH, height=HEIGHT,
            usage=spy.TextureUsage.shader_resource | spy.TextureUsage.unordered_access,
        )  # fmt: skip

    def render(self, render_context: spy.RenderContext) -> None:
        if self.module is None:
            render_context.command_encoder.clear_texture_float(render_context.surface_texture, clear_value=self.color)
        else:
            self.module.paint(pixel=spy.call_id(), _result=self.picture)
            render_context.command_encoder.blit(render_context.surface_texture, self.picture)

    def on_resize(self, width: int, height: int) -> None:
        self.told.append(("resize", width, height))

    def on_keyboard_event(self, event: spy.KeyboardEvent) -> None:
        self.told.append(event)
        super().on_keyboard_event(event)

    def on_mouse_event(self, event: spy.MouseEvent) -> None:
        self.told.append(event)

    def focus(self, screen: Screen, x: int, y: int) -> None:
        number = importlib.import_module("glfw").get_x11_window(self.window._handle)
        screen.do("windowraise", number, "windowfocus", number, "mousemove", self.at[0] + x, self.at[1] + y)


class _ClientMessage(ctypes.Structure):
    """XClientMessageEvent, as long as an XEvent."""

    _fields_ = [
        ("type", ctypes.c_int), ("serial", ctypes.c_ulong), ("send_event", ctypes.c_int), ("display", ctypes.c_void_p),
        ("window", ctypes.c_ulong), ("message_type", ctypes.c_ulong), ("format", ctypes.c_int), ("data", ctypes.c_long * 17),
    ]  # fmt: skip


def press_close(window: spy.Window) -> None:
    """What a desktop's close button does."""
    glfw, x11 = importlib.import_module("glfw"), ctypes.CDLL("libX11.so.6")
    display, number = ctypes.c_void_p(glfw.get_x11_display()), glfw.get_x11_window(window._handle)
    protocols, delete = (x11.XInternAtom(display, name, 0) for name in (b"WM_PROTOCOLS", b"WM_DELETE_WINDOW"))
    message = _ClientMessage(33, 0, 1, display, number, protocols, 32, (delete, 0))
    assert x11.XSendEvent(display, ctypes.c_ulong(number), 0, ctypes.c_long(0), ctypes.byref(message))
    x11.XFlush(display)


def pixels(screen: Screen, at: tuple[int, int] = AT, width: int = WIDTH, height: int = HEIGHT) -> npt.NDArray[np.uint8]:
    return screen.pixels()[at[1] : at[1] + height, at[0] : at[0] + width]


def shows(screen: Screen, app: spy.App, is_so: Callable[[], bool]) -> bool:
    """Frames until the screen is so."""
    return wait_until(lambda: app.run_frame() or is_so())


def is_all(screen: Screen, color: tuple[int, ...], *place: Any) -> Callable[[], bool]:
    return lambda: bool((pixels(screen, *place) == color).all())


def close_all(app: spy.App) -> None:
    """No window stays for the next test, whatever holds it."""
    for window in app._windows:
        window.window.close()
    app.run()


@pytest.fixture
def app(shower: spy.Device) -> Iterator[spy.App]:
    app = spy.App(shower)
    yield app
    close_all(app)


def test_a_window(screen: Screen, shower: spy.Device, app: spy.App, tmp_path: Path) -> None:
    """Its pixels, hooks, a screenshot, another size, and Escape."""
    pytest.importorskip("OpenImageIO")
    window = Painted(app)
    assert app.device is window.device is shower and window.app is app
    assert shows(screen, app, is_all(screen, BLUE))
    assert (pixels(screen, (AT[0] - 1, AT[1] - 1), WIDTH + 2, HEIGHT + 2)[0] == 0).all()
    window.screenshot(tmp_path / "shot.png")
    app.run_frame()
    shot = np.asarray(spy.Bitmap(str(tmp_path / "shot.png")))
    assert shot.shape == (HEIGHT, WIDTH, 3) and (shot == BLUE).all()

    window.told.clear()
    window.window.resize(150, 90)
    assert shows(screen, app, is_all(screen, BLUE, AT, 150, 90)) and window.told[0] == ("resize", 150, 90)
    window.focus(screen, 20, 30)
    assert shows(screen, app, lambda: window.told[-1] != window.told[0])
    moved = window.told[-1]
    assert moved.is_move() and moved.pos == spy.float2(20, 30)

    def fail(context: spy.RenderContext) -> None:
        raise KeyError("of render")

    window.render = fail  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(KeyError, match="of render"):
        app.run_frame()
    del window.render
    assert shows(screen, app, is_all(screen, BLUE, AT, 150, 90))  # the loop can go on
    screen.do("key", "a", "key", "Escape")
    app.run()
    assert [event.key.name for event in window.told if isinstance(event, spy.KeyboardEvent) and event.is_key_press()] == [
        "a", "escape",
    ]  # fmt: skip


def test_two_windows(screen: Screen, app: spy.App) -> None:
    """One closes, the other goes on; with the last the loop ends."""
    first, second = Painted(app), Painted(app, at=(500, 300), surface_format=spy.Format.bgra8_unorm, enable_vsync=True)
    second.color = (0.0, 1.0, 0.0, 1.0)
    there = (500, 300)
    assert shows(screen, app, lambda: is_all(screen, BLUE)() and is_all(screen, GREEN, there)())
    press_close(first.window)
    assert shows(screen, app, is_all(screen, BLACK))
    with pytest.raises(RuntimeError, match="AppWindow.window: the window was closed"):
        _ = first.window
    second.color = (0.0, 0.0, 1.0, 1.0)
    assert shows(screen, app, is_all(screen, BLUE, there))
    second.window.close()
    app.run()
    assert is_all(screen, BLACK, there)()


def test_reload(screen: Screen, shower: spy.Device, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The next frame shows the new code; code that does not compile, or fails, leaves the picture, with text over it where
    the device draws; the terminal has the text as well."""
    source = tmp_path / "paint.slang"
    source.write_text(CODE % "0, 0, 1")
    device = spy.create_device(shower.type)  # the shared one does not reload
    app = spy.App(spy.AppDesc(device))
    Painted(app, tmp_path)
    has_panel = device.has_feature(spy.Feature.rasterization) and importlib.util.find_spec("imgui_bundle") is not None

    def is_told() -> bool:
        """The lower half is the old picture, the upper has a panel."""
        found = pixels(screen)
        upper = (found[15:100, 15:-15] != GREEN).any(-1)
        is_white = (found[15:100, 15:-15] > 200).all(-1)
        is_there = upper.all() and is_white.sum() > 100 if has_panel else not upper.any()
        return bool(is_there and (found[115:] == GREEN).all())

    assert shows(screen, app, is_all(screen, BLUE))
    source.write_text(CODE % "0, 1, 0")
    app.run_frame()
    assert wait_until(is_all(screen, GREEN))  # after one frame
    source.write_text(CODE % "0, 1, nothing")
    assert shows(screen, app, is_told) and "undefined identifier" in caplog.text
    source.write_text("float4 another(uint2 pixel) { return 0; }")
    assert shows(screen, app, is_told) and "no function or type named 'paint'" in caplog.text
    assert caplog.text.count("the code that was reloaded fails") == 1
    source.write_text(CODE % "0, 0, 1")
    assert shows(screen, app, is_all(screen, BLUE))
    close_all(app)
    device.close()


def test_the_example(screen: Screen, shower: spy.Device) -> None:
    script = Path(__file__).parents[2] / "examples" / "15_hot_reload" / "hot_reload.py"
    arguments = [sys.executable, str(script), "--device", shower.type.name, "--frames", "3"]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout) == (0, "3 frames\n"), done.stderr


@pytest.mark.draws
def test_panels_come_first(screen: Screen, app: spy.App) -> None:
    if importlib.util.find_spec("imgui_bundle") is None and os.environ.get("SLANGPY_TEST_REQUIRE_WINDOWS") != "1":
        pytest.skip("imgui-bundle is not installed")
    window = Painted(app)
    pressed: list[int] = []
    panel = spy.ui.Window(window.screen, "panel", (10, 10), (150, 100))
    spy.ui.Button(panel, "press", lambda: pressed.append(1))

    def has_panel() -> bool:
        found = pixels(screen)
        return bool((found[15:105, 15:155] != BLUE).any(-1).all() and (found[115:] == BLUE).all())

    assert shows(screen, app, has_panel)
    window.focus(screen, 35, 46)
    app.run_frame()
    window.told.clear()
    screen.do("mousedown", 1)
    app.run_frame()
    screen.do("mouseup", 1)
    assert shows(screen, app, lambda: pressed == [1])
    assert [event for event in window.told if event.type != spy.MouseEventType.move] == []
    screen.do("mousemove", AT[0] + 250, AT[1] + 150)
    app.run_frame()
    screen.do("click", 1)
    assert shows(screen, app, lambda: any(event.is_button_up() for event in window.told))
    window.focus(screen, 35, 46)
    app.run_frame()
    screen.do("click", 1)
    assert shows(screen, app, lambda: pressed == [1, 1])
    window.told.clear()
    screen.do("key", "a", "key", "Escape")
    app.run()  # it ends, though the panel has the keyboard
    keys = [event.key.name for event in window.told if isinstance(event, spy.KeyboardEvent) and event.is_key_press()]
    assert keys == ["escape"]


@pytest.mark.null
@pytest.mark.parametrize(
    "make, error, text",
    [
        (lambda app: spy.App(THREE), TypeError, "App: 'device' must be a Device, an AppDesc or None, got 3"),
        (lambda app: spy.AppWindow(THREE), TypeError, "AppWindow: 'app' must be an App, got 3"),
        (lambda app: spy.AppWindow(app, 0, 3), ValueError, "Window 'width': expected 1 to 32767, got 0"),
        (lambda app: spy.AppWindow(app, surface_format=THREE), TypeError, "AppWindow 'surface_format': expected a Format .*, got 3"),
        (lambda app: spy.AppWindow(app, 9, 9), NotImplementedError, "null devices have no surfaces .*use a vulkan device"),
    ],
)
def test_errors(screen: Screen, make: Callable[[spy.App], Any], error: type[Exception], text: str) -> None:
    app = spy.App(spy.Device(type=spy.DeviceType.null))
    with pytest.raises(error, match=text):
        make(app)
    app.run()  # without a window: at once
    app.device.close()


@pytest.mark.null
def test_without_display() -> None:
    pytest.importorskip("glfw")
    code = (
        "import slangpy as spy\napp = spy.App(spy.Device(type=spy.DeviceType.null))\n"
        "try:\n    spy.AppWindow(app)\nexcept RuntimeError as error:\n    print(error)"
    )
    kept = {name: text for name, text in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")}
    done = subprocess.run([sys.executable, "-c", code], env=kept, capture_output=True, text=True, timeout=120, check=False)
    assert "no display was found" in done.stdout and "ui.Context work without one" in done.stdout, done.stderr


@pytest.mark.draws
def test_devices_that_apps_make(shower: spy.Device) -> None:
    """They are closed with the app, and those of others stay."""
    app = spy.App()
    device = app.device
    assert device.has_feature(spy.Feature.surface)
    spy.App(device)
    gc.collect()
    assert not device.is_closed
    del app
    gc.collect()
    assert device.is_closed
