"""`slangpy.show`: what is shown of a picture, in a notebook and in a window."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import slangpy as spy
from slangpy.tools.view.show import Picture, controls

pytestmark = pytest.mark.null
RNG = np.random.default_rng(5)


def decoded(data: bytes) -> np.ndarray[Any, Any]:
    return np.asarray(pytest.importorskip("PIL.Image").open(io.BytesIO(data)))


def curve(light: Any) -> Any:
    """Of sRGB (IEC 61966-2-1)."""
    light = np.clip(np.asarray(light, np.float64), 0, 1)
    return 255 * np.where(light <= 0.0031308, 12.92 * light, 1.055 * light ** (1 / 2.4) - 0.055)


@pytest.mark.parametrize("channels", [None, 1, 2, 3, 4])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_floats_are_light(channels: int | None, dtype: str) -> None:
    pixels = RNG.uniform(0, 1, (33, 31) if channels is None else (33, 31, channels)).astype(dtype)
    shown = decoded(Picture(pixels).png(0.0, "color", 1))
    full = pixels[:, :, None] if channels is None else pixels
    grey = full.shape[2] < 3  # two channels are grey and alpha
    expected = curve(full[:, :, [0, 0, 0] if grey else [0, 1, 2]])
    assert shown.shape == (33, 31, 3) and np.abs(shown - expected).max() <= 1


def test_bytes_stay_and_exposure_doubles() -> None:
    pixels = RNG.integers(0, 256, (9, 11, 4), np.uint8)
    assert np.array_equal(decoded(Picture(pixels).png(0.0, "color", 1)), pixels[:, :, :3])
    light = RNG.uniform(0, 0.3, (9, 11, 3)).astype(np.float32)
    assert np.abs(decoded(Picture(light).png(1.0, "color", 1)) - curve(2 * light)).max() <= 1
    assert (decoded(Picture(light).png(900.0, "color", 1)) == np.where(light > 0, 255, 0)).all()


def test_channels_alone() -> None:
    pixels = RNG.uniform(0, 1, (9, 11, 4)).astype(np.float32)
    for i, channel in enumerate(("red", "green", "blue", "alpha")):
        shown = decoded(Picture(pixels).png(0.0, channel, 1))
        assert np.abs(shown - curve(pixels[:, :, [i]])).max() <= 1


def test_red_and_green_alone() -> None:
    pixels = RNG.integers(0, 256, (9, 11, 2), np.uint8)
    shown = decoded(Picture(spy.Bitmap(pixels, pixel_format=spy.PixelFormat.rg)).png(0.0, "color", 1))
    assert np.array_equal(shown, np.concatenate([pixels, np.zeros((9, 11, 1), np.uint8)], axis=2))


def test_sizes() -> None:
    small, large = Picture(np.zeros((4, 7))), Picture(RNG.uniform(0, 1, (3000, 10)))
    assert (small.zoom, small.step) == (73, 1) and (large.zoom, large.step) == (1, 3)
    assert decoded(small.png(0.0, "color", 3)).shape == (12, 21, 3) and decoded(large.png(0.0, "color", 1)).shape == (1000, 4, 3)


def test_numbers_that_are_no_light() -> None:
    pixels = np.array([[np.nan, np.inf, -np.inf, -1.0, 2.0]], np.float32)
    assert decoded(Picture(pixels).png(0.0, "color", 1))[0, :, 0].tolist() == [0, 255, 0, 0, 255]


def test_controls_of_a_notebook() -> None:
    pytest.importorskip("ipywidgets")
    pixels = RNG.uniform(0, 0.5, (9, 11, 4)).astype(np.float32)
    box = controls(Picture(pixels), 0.0, "color")
    (exposure, channel, zoom), image = box.children[0].children, box.children[1]
    zoom.value = 2
    exposure.value = 1.0
    channel.value = "green"
    expected = curve(2 * pixels[:, :, [1]]).repeat(2, 0).repeat(2, 1)
    assert np.abs(decoded(bytes(image.value)) - expected).max() <= 1


@pytest.mark.parametrize("widgets", [True, False])
def test_in_a_notebook(monkeypatch: pytest.MonkeyPatch, widgets: bool) -> None:
    pytest.importorskip("ipywidgets")
    display = pytest.importorskip("IPython.display")
    shown: list[Any] = []
    monkeypatch.setattr(display, "display", shown.append)
    monkeypatch.setattr("IPython.get_ipython", lambda: SimpleNamespace(kernel=1))
    if not widgets:
        monkeypatch.setitem(sys.modules, "ipywidgets", None)
        monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    spy.show(np.full((8, 8, 3), 0.5, np.float32))
    assert len(shown) == 1 and (type(shown[0]).__name__ == ("VBox" if widgets else "Image"))


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        (("text",), TypeError, "show: expected a Bitmap, a Texture, a Tensor or an array, got str"),
        ((np.zeros(4),), ValueError, r"show: expected the shape \(height, width\) .* got \(4,\)"),
        ((np.zeros((3, 9, 9)),), ValueError, r"channels come last: permute the axes to \(1, 2, 0\)"),
        ((np.zeros((4, 4), bool),), ValueError, "numbers of bool are no colours"),
        ((np.zeros((4, 4)), "x", "1"), ValueError, "'exposure' must be a number of stops, got '1'"),
        ((np.zeros((4, 4)), "x", float("nan")), ValueError, "'exposure' must be a number of stops, got nan"),
        ((np.zeros((4, 4)), "x", 0, "yellow"), ValueError, "'channel' must be one of color, red, .*, got 'yellow'"),
    ],
)
def test_bad_input(arguments: tuple[Any, ...], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        spy.show(*arguments)


def test_without_display() -> None:
    """In a process of its own: here a window may have found one before."""
    pytest.importorskip("glfw")
    if sys.platform != "linux":
        pytest.skip("displays of X11")
    code = "import numpy, slangpy as spy\nspy.show(numpy.zeros((8, 8, 3)))"
    kept = {name: text for name, text in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")}
    done = subprocess.run([sys.executable, "-c", code], env=kept, capture_output=True, text=True, timeout=120, check=False)
    assert "RuntimeError: show: " in done.stderr and "save_image(path, picture) writes the picture" in done.stderr
