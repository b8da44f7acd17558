"""A context with its texture, and a user who points and types."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

import slangpy as spy

USAGE = spy.TextureUsage.render_target | spy.TextureUsage.shader_resource


class Panel:
    """Pictures of `width` x `height` on opaque black."""

    def __init__(
        self, device: spy.Device, width: int = 128, height: int = 96, format: spy.Format = spy.Format.rgba8_unorm
    ) -> None:
        self.device = device
        self.context = spy.ui.Context(device)
        self.screen = self.context.screen
        self.target = device.create_texture(format=format, width=width, height=height, usage=USAGE)

    def frame(self, count: int = 1) -> npt.NDArray[Any]:
        """The picture after so many frames."""
        for _ in range(count):
            self.context.begin_frame(self.target.width, self.target.height)
            encoder = self.device.create_command_encoder()
            encoder.clear_texture_float(self.target, clear_value=(0, 0, 0, 1))
            self.context.end_frame(self.target, encoder)
            self.device.submit_command_buffer(encoder.finish())
        return self.target.to_numpy()

    def point(self, x: float, y: float) -> bool:
        event = spy.MouseEvent(spy.MouseEventType.move, spy.float2(x, y))
        return self.context.handle_mouse_event(event)

    def click(self, x: float, y: float) -> None:
        self.point(x, y)
        self.frame()
        for type in (spy.MouseEventType.button_down, spy.MouseEventType.button_up):
            self.context.handle_mouse_event(spy.MouseEvent(type, spy.float2(x, y), button=spy.MouseButton.left))
            self.frame()

    def press(self, key: spy.KeyCode, mods: spy.KeyModifierFlags = spy.KeyModifierFlags.none) -> None:
        types = spy.KeyboardEventType
        for type, held in ((types.key_press, mods), (types.key_release, mods), (types.key_release, mods & 0)):
            self.context.handle_keyboard_event(spy.KeyboardEvent(type, key, held))
            self.frame()

    def type(self, text: str) -> None:
        for letter in text:
            event = spy.KeyboardEvent(spy.KeyboardEventType.input, codepoint=ord(letter))
            self.context.handle_keyboard_event(event)
            self.frame()


def box(image: npt.NDArray[Any]) -> tuple[int, int, int, int]:
    """First and last column, first and last row that are not black."""
    rows, columns = np.nonzero(image[..., :3].any(-1))
    return int(columns.min()), int(columns.max()), int(rows.min()), int(rows.max())
