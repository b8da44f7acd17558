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
    """In a context of its own: the screen of the program is not disturbed."""

    def __init__(self, device: Any) -> None:
        self._context = ui.Context(device)
        self._panel = ui.Window(self._context.screen, "error in the code")
        self._text = ui.Text(self._panel)

    @classmethod
    def on(cls, device: Any) -> Notice | None:
        """None on devices that do not rasterise, and without imgui-bundle: the terminal has the text."""
        if not device.has_feature(Feature.rasterization):
            return None
        try:
            return cls(device)
        except ImportError:
            return None

    def draw(self, text: str, image: Texture, encoder: Any) -> None:
        """Over what the image holds, as wide as it."""
        width = max(image.width - 2 * _MARGIN, 1)
        letters = max((width - _PADDING) // _LETTER, 10)
        lines = [part for line in text.splitlines() for part in textwrap.wrap(line, letters, drop_whitespace=False) or [""]]
        self._text.text = "\n".join(lines)
        self._panel.position = (_MARGIN, _MARGIN)
        self._panel.size = (width, max(image.height - 2 * _MARGIN, 1) / 2)
        self._context.begin_frame(image.width, image.height)
        self._context.end_frame(image, encoder)


__all__ = ["Notice"]
