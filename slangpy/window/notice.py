"""Text over the picture of a window, for what is wrong with the code that draws it."""

from __future__ import annotations

import textwrap
from typing import Any

from .. import ui
from .._native import Feature, Texture

_MARGIN = 10
_PADDING = 40
_LETTER = 8
"""Pixels of a letter, at most."""


class Notice:
    """Drawn by a device. Not on those that do not rasterise, nor without imgui-bundle: the terminal has the text."""

    def __init__(self, device: Any) -> None:
        self._device = device
        self._panel: _Panel | None = None
        self._is_tried = False

    def draw(self, text: str, image: Texture, encoder: Any) -> None:
        """Over the upper half of what the image holds; nothing for the text ""."""
        if not text:
            return
        if not self._is_tried:
            self._panel, self._is_tried = _panel_on(self._device), True
        if self._panel is not None:
            self._panel.draw(text, image, encoder)


class _Panel:
    """In a context of its own: the screen of the program is not disturbed."""

    def __init__(self, device: Any) -> None:
        self._context = ui.Context(device)
        self._panel = ui.Window(self._context.screen, "error in the code")
        self._text = ui.Text(self._panel)

    def draw(self, text: str, image: Texture, encoder: Any) -> None:
        width = max(image.width - 2 * _MARGIN, 1)
        letters = max((width - _PADDING) // _LETTER, 10)
        lines = [part for line in text.splitlines() for part in textwrap.wrap(line, letters, drop_whitespace=False) or [""]]
        self._text.text = "\n".join(lines)
        self._panel.position = (_MARGIN, _MARGIN)
        self._panel.size = (width, max(image.height - 2 * _MARGIN, 1) / 2)
        self._context.begin_frame(image.width, image.height)
        self._context.end_frame(image, encoder)


def _panel_on(device: Any) -> _Panel | None:
    if not device.has_feature(Feature.rasterization):
        return None
    try:
        return _Panel(device)
    except ImportError:
        return None


__all__ = ["Notice"]
