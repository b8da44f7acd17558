"""`show`: a picture in a notebook, or in a window."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from typing import Any

import numpy as np

from ..._native import Format, TextureFilteringMode, TextureUsage
from ...base.keys import KeyCode
from ...device import create_device
from ...images import Bitmap, PixelFormat
from ...images.pictures import bitmap_of
from ...images.png import encode_png
from ...window import KeyboardEvent, Window

_CHANNELS = ("color", "red", "green", "blue", "alpha")
_SMALL, _LARGE = 512, 1280
"""Pixels on the screen: smaller pictures are shown larger, by whole numbers, and larger ones with pixels left out."""
_STOPS = 10.0
"""Of exposure, each way."""


def show(picture: Any, title: str = "picture", exposure: float = 0.0, channel: str = "color") -> None:
    """Shows a `Bitmap`, a `Texture`, a `Tensor`, a torch tensor or another array of the shape (height, width) or (height,
    width, 1 to 4 channels): in a notebook below the cell, with controls of exposure, channel and zoom where ipywidgets is
    installed; else in a window, until its user closes it or presses Escape.

    Floats are light, bytes follow the curve of sRGB; alpha is not blended. exposure: stops; each doubles the light.
    channel: "color", or "red", "green", "blue" or "alpha" alone, in grey. ImportError without the package glfw, RuntimeError
    without a display; `save_image(path, picture)` needs neither.
    """
    seen = Picture(picture)
    seen.check(exposure, channel)
    shell = sys.modules.get("IPython") and importlib.import_module("IPython").get_ipython()
    if shell is not None and hasattr(shell, "kernel"):
        show_in_notebook(seen, exposure, channel)
        return
    try:
        window = PictureWindow(seen, title, exposure, channel)
    except (ImportError, RuntimeError) as error:
        raise type(error)(f"show: {error}. save_image(path, picture) writes the picture without a display") from None
    while not window.window.should_close():
        window.frame()


class Picture:
    """Linear light of shape (height, width, 4)."""

    def __init__(self, data: Any) -> None:
        bitmap = bitmap_of("show", data)
        if bitmap.pixel_format == PixelFormat.rg:
            pixels = np.asarray(bitmap)
            bitmap = Bitmap(np.concatenate([pixels, np.zeros_like(pixels[:, :, :1])], axis=2), srgb_gamma=bitmap.srgb_gamma)
        linear = bitmap.convert(PixelFormat.rgba, Bitmap.ComponentType.float32, False)
        self.pixels = np.asarray(linear).reshape(linear.height, linear.width, 4)
        sides = max(linear.width, linear.height)
        self.step = -(-sides // _LARGE)
        self.zoom = max(_SMALL // sides, 1)

    def check(self, exposure: Any, channel: Any) -> None:
        if isinstance(exposure, bool) or not isinstance(exposure, (int, float)) or not abs(exposure) <= 1000:
            raise ValueError(f"show: 'exposure' must be a number of stops, got {exposure!r}")
        if channel not in _CHANNELS:
            raise ValueError(f"show: 'channel' must be one of {', '.join(_CHANNELS)}, got {channel!r}")

    def light(self, exposure: float, channel: str) -> np.ndarray[Any, Any]:
        """(height, width, 4) floats, opaque: what is shown."""
        kept = self.pixels[:: self.step, :: self.step]
        if channel != "color":
            kept = np.repeat(kept[:, :, _CHANNELS.index(channel) - 1, None], 4, axis=2)
        with np.errstate(over="ignore", invalid="ignore"):
            shown = kept * np.float32(2.0**exposure)
        shown[:, :, 3] = 1
        return shown

    def png(self, exposure: float, channel: str, zoom: int) -> bytes:
        light = np.nan_to_num(self.light(exposure, channel)[:, :, :3].clip(0, 1), nan=0)
        bytes_ = np.asarray(Bitmap(light, srgb_gamma=False).convert(component_type=Bitmap.ComponentType.uint8, srgb_gamma=True))
        return encode_png(bytes_.repeat(zoom, axis=0).repeat(zoom, axis=1))


def show_in_notebook(picture: Picture, exposure: float, channel: str) -> None:
    display = importlib.import_module("IPython.display")
    if importlib.util.find_spec("ipywidgets") is None:
        display.display(display.Image(picture.png(exposure, channel, picture.zoom)))
        return
    display.display(controls(picture, exposure, channel))


def controls(picture: Picture, exposure: float, channel: str) -> Any:
    """An image of ipywidgets below its controls."""
    widgets = importlib.import_module("ipywidgets")
    stops = widgets.FloatSlider(value=exposure, min=-_STOPS, max=_STOPS, step=0.1, description="exposure")
    chosen = widgets.Dropdown(options=_CHANNELS, value=channel, description="channel")
    zoom = widgets.IntSlider(value=picture.zoom, min=1, max=max(8, picture.zoom), description="zoom")
    image = widgets.Image(value=picture.png(exposure, channel, picture.zoom), format="png")

    def again(_: Any) -> None:
        image.value = picture.png(stops.value, chosen.value, zoom.value)

    for control in (stops, chosen, zoom):
        control.observe(again, names="value")
    return widgets.VBox([widgets.HBox([stops, chosen, zoom]), image])


class PictureWindow:
    """As large as the picture is shown; its size is fixed."""

    def __init__(self, picture: Picture, title: str, exposure: float, channel: str) -> None:
        light = np.ascontiguousarray(picture.light(exposure, channel))
        height, width = light.shape[:2]
        self.window = Window(width * picture.zoom, height * picture.zoom, title, resizable=False)
        device = create_device("vulkan")
        self._device = device
        self._surface = device.create_surface(self.window)
        self._surface.configure(width=self.window.width, height=self.window.height)
        self._texture = device.create_texture(
            format=Format.rgba32_float, width=width, height=height, usage=TextureUsage.shader_resource, data=light
        )
        self.window.on_keyboard_event = self._on_key

    def _on_key(self, event: KeyboardEvent) -> None:
        if event.is_key_press() and event.key == KeyCode.escape:
            self.window.close()

    def frame(self) -> None:
        self.window.process_events()
        image = self._surface.acquire_next_image()
        if image is None:  # minimised
            return
        encoder = self._device.create_command_encoder()
        encoder.blit(image, self._texture, TextureFilteringMode.point)
        self._device.submit_command_buffer(encoder.finish())
        del image
        self._surface.present()


__all__ = ["show"]
