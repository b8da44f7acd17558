"""`App` and `AppWindow`: the loop of programs with windows, and the frame of a window."""

from __future__ import annotations

import os
import time
import weakref
from dataclasses import dataclass
from pathlib import Path

from .. import ui
from .._native import CommandEncoder, Device as NativeDevice, DeviceType, Format, Texture, TextureUsage, uint3
from ..base.keys import KeyCode
from ..base.own_names import own_names
from ..base.typed import named_member, truth
from ..device import Device, create_device
from ..device.live import LiveCode
from ..images import save_image
from .events import GamepadEvent, KeyboardEvent, MouseEvent, WindowMode
from .notice import Notice
from .window import Window

_PAUSE = 0.01
"""Seconds: of a loop whose windows show nothing."""
_KEEP_SECONDS = 0.25
"""The age of the picture that is kept for when the code fails, at most; a copy in each frame would cost too much."""
_BLACK = (0.0, 0.0, 0.0, 1.0)
_BYTES = {Format.bgra8_unorm: (2, 1, 0), Format.bgra8_unorm_srgb: (2, 1, 0), Format.rgba8_unorm: (0, 1, 2)}
_BYTES[Format.rgba8_unorm_srgb] = _BYTES[Format.rgba8_unorm]
"""Red, green and blue of the formats whose bytes are stored as they are."""


@own_names
@dataclass
class AppDesc:
    """device: None for one that the app makes."""

    device: Device | None = None


@dataclass(frozen=True)
class RenderContext:
    """What a frame is drawn with. surface_texture: the image, opaque black so far, to be used in this frame alone.
    command_encoder: submitted after `render`."""

    surface_texture: Texture
    command_encoder: CommandEncoder


@own_names
class App:
    """Runs the frames of its windows.

    device: None opens a vulkan device, which windows are drawn by; it is closed when nobody holds the app.
    """

    def __init__(self, device: Device | AppDesc | None = None) -> None:
        given = device.device if isinstance(device, AppDesc) else device
        if given is not None and not isinstance(given, NativeDevice):
            raise TypeError(f"App: 'device' must be a Device, an AppDesc or None, got {given!r}")
        self._device = create_device(DeviceType.vulkan) if given is None else given
        self._windows: list[AppWindow] = []
        self._is_over = False
        if given is None:
            weakref.finalize(self, self._device.close).atexit = False  # the end of the process closes devices itself

    @property
    def device(self) -> Device:
        """The device that draws all windows."""
        return self._device

    def run(self) -> None:
        """Frames until `terminate()`, or until all windows were closed."""
        while self._windows and not self._is_over:
            if not self._run_frame():
                time.sleep(_PAUSE)
        self._is_over = False

    def run_frame(self) -> None:
        """One frame of each window. Exceptions of hooks and of `render` come out."""
        self._run_frame()

    def terminate(self) -> None:
        """Ends `run()`, without another frame."""
        self._is_over = True

    def _run_frame(self) -> bool:
        """Whether any window has shown something."""
        shown = [window._frame() for window in list(self._windows) if not self._is_over]
        return any(shown)


@own_names
class AppWindow:
    """A window of an app, to be subclassed: `render` draws a frame, the hooks `on_...` are told what happens.

    width, height: pixels. surface_format: undefined for the window's preferred one. NotImplementedError on devices that
    have no surfaces (d3d12), RuntimeError without a display, ImportError without the package glfw.
    """

    def __init__(
        self,
        app: App,
        width: int = 1920,
        height: int = 1280,
        title: str = "slangpy",
        mode: WindowMode = WindowMode.normal,
        resizable: bool = True,
        surface_format: Format = Format.undefined,
        enable_vsync: bool = False,
    ) -> None:
        if not isinstance(app, App):
            raise TypeError(f"AppWindow: 'app' must be an App, got {app!r}")
        self._app = app
        self._format = named_member("AppWindow 'surface_format'", Format, surface_format)
        self._vsync = truth("AppWindow 'enable_vsync'", enable_vsync)
        self._window: Window | None = Window(width, height, title, mode, resizable)
        self._surface = app.device.create_surface(self._window)
        self._context: ui.Context | None = None
        self._live = LiveCode(app.device)
        self._notice = Notice(app.device)
        self._kept: Texture | None = None
        self._kept_of = (0, 0.0)
        self._screenshot: Path | None = None
        self._configure()
        self._listen(self._window)
        app._windows.append(self)

    @property
    def app(self) -> App:
        """The app that runs this window."""
        return self._app

    @property
    def device(self) -> Device:
        """The device that draws it."""
        return self._app.device

    @property
    def window(self) -> Window:
        """Its window. RuntimeError when the user has closed it."""
        if self._window is None:
            raise RuntimeError("AppWindow.window: the window was closed")
        return self._window

    @property
    def screen(self) -> ui.Screen:
        """What panels are put into; they are drawn over each frame. Needs a device that rasterises, and imgui-bundle."""
        if self._context is None:
            self._context = ui.Context(self.device)
        return self._context.screen

    # --- to be overridden

    def render(self, render_context: RenderContext) -> None:
        """Draws a frame. Code that was edited meanwhile is reloaded before; when it fails here, the last good picture
        stays, with the error over it."""

    def on_resize(self, width: int, height: int) -> None:
        """After images of the new size were made."""

    def on_keyboard_event(self, event: KeyboardEvent) -> None:
        """Escape ends the app; who overrides this may call it."""
        if event.is_key_press() and event.key == KeyCode.escape:
            self._app.terminate()

    def on_mouse_event(self, event: MouseEvent) -> None:
        """Override: a button, a move or the wheel."""

    def on_gamepad_event(self, event: GamepadEvent) -> None:
        """Override: a button, or a gamepad that comes or goes."""

    def on_drop_files(self, files: list[str]) -> None:
        """Override: files were dropped on the window; `files` are their paths."""

    # --- pictures

    def screenshot(self, path: str | os.PathLike[str]) -> None:
        """Writes the next frame with its panels (the current one, when called in `render`), as `save_image` does."""
        self._screenshot = Path(path)

    # --- events

    def _listen(self, window: Window) -> None:
        window.on_resize = self._resized
        window.on_keyboard_event = self._keyboard
        window.on_mouse_event = self._mouse
        window.on_gamepad_event = lambda event: self.on_gamepad_event(event)
        window.on_drop_files = lambda files: self.on_drop_files(files)

    def _resized(self, width: int, height: int) -> None:
        self._configure()
        self.on_resize(width, height)

    def _keyboard(self, event: KeyboardEvent) -> None:
        if self._context is None or not self._context.handle_keyboard_event(event):
            self.on_keyboard_event(event)

    def _mouse(self, event: MouseEvent) -> None:
        if self._context is None or not self._context.handle_mouse_event(event):
            self.on_mouse_event(event)

    # --- the surface

    def _configure(self) -> None:
        width, height = self.window.width, self.window.height
        self.device.wait()
        if width == 0 or height == 0:  # minimised, on some systems
            self._surface.unconfigure()
        else:
            self._surface.configure(width=width, height=height, format=self._format, vsync=self._vsync)

    def _acquire(self) -> Texture | None:
        is_empty = 0 in (self.window.width, self.window.height)
        if is_empty != (self._surface.config is None):
            self._configure()
        return None if is_empty else self._surface.acquire_next_image()

    def _close(self) -> None:
        self._app._windows.remove(self)
        self.device.wait()
        self._surface.unconfigure()
        del self._surface
        self._window = None

    # --- a frame

    def _frame(self) -> bool:
        """False where nothing was shown."""
        self.window.process_events()
        if self.window.should_close():
            self._close()
            return False
        image = None if self._app._is_over else self._acquire()
        if image is None:
            return False
        try:
            self._draw(image)
        finally:  # whatever came out, the next frame finds the surface in order
            if not self.device.is_closed:
                self._surface.present()
        return True

    def _draw(self, image: Texture) -> None:
        self._live.refresh()
        if self._context is not None:
            self._context.begin_frame(image.width, image.height, self.window)
        encoder = self.device.create_command_encoder()
        encoder.clear_texture_float(image, clear_value=_BLACK)
        self.device.submit_command_buffer(encoder.finish())  # at once: calls of functions may write into the image
        encoder = self.device.create_command_encoder()
        context = RenderContext(image, encoder)
        if self._live.attempt(lambda: self.render(context)):
            self._keep(image, encoder)
        else:
            encoder = self.device.create_command_encoder()  # without what was recorded by half
            if self._kept is not None:
                encoder.blit(image, self._kept)
        if self._context is not None:
            self._context.end_frame(image, encoder)
        self._notice.draw(self._live.error, image, encoder)
        self.device.submit_command_buffer(encoder.finish())
        if self._screenshot is not None:
            path, self._screenshot = self._screenshot, None
            _save(path, image)

    def _keep(self, image: Texture, encoder: CommandEncoder) -> None:
        """A copy, for when the code fails: of the first frame after a reload, and from time to time."""
        kept, now = self._kept, time.perf_counter()
        reloads, then = self._kept_of
        is_new = kept is not None and reloads == self._live.reloads and now - then < _KEEP_SECONDS
        if is_new or not self.device.desc.enable_hot_reload:
            return
        if kept is None or (kept.width, kept.height, kept.format) != (image.width, image.height, image.format):
            kept = self._kept = self.device.create_texture(
                format=image.format, width=image.width, height=image.height,
                usage=TextureUsage.shader_resource | TextureUsage.copy_destination,
            )  # fmt: skip
        encoder.copy_texture(kept, 0, 0, uint3(0), image, 0, 0, uint3(0))
        self._kept_of = (self._live.reloads, now)


def _save(path: Path, image: Texture) -> None:
    if image.format in _BYTES:
        save_image(path, image.to_numpy()[..., list(_BYTES[image.format])])
    else:
        save_image(path, image)


__all__ = ["App", "AppDesc", "AppWindow", "RenderContext"]
