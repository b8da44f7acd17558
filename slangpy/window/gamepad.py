"""The gamepad that is found first, polled."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .events import GamepadEvent, GamepadEventType, GamepadState
from .system import GAMEPAD_BUTTONS

_PLACES = 16
"""Joysticks that GLFW knows at most."""


class Gamepad:
    """Compares a pad's state with the one before."""

    def __init__(self) -> None:
        self._place: int | None = None
        self.state: GamepadState | None = None
        """None while no pad is there."""

    def poll(self, glfw: Any) -> Iterator[GamepadEvent]:
        """What has happened since the last call."""
        place = next((i for i in range(_PLACES) if glfw.joystick_is_gamepad(i)), None)
        if place != self._place and self._place is not None:
            self.state = None
            yield GamepadEvent(GamepadEventType.disconnect)
        if place != self._place and place is not None:
            self.state = GamepadState()
            yield GamepadEvent(GamepadEventType.connect)
        self._place = place
        pad = None if place is None else glfw.get_gamepad_state(place)
        if pad is None:
            return
        before = self.state.buttons if self.state is not None else 0
        self.state = _state(pad)
        for button in GAMEPAD_BUTTONS.values():
            is_down, was_down = (bool(bits & (1 << button)) for bits in (self.state.buttons, before))
            if is_down != was_down:
                type = GamepadEventType.button_down if is_down else GamepadEventType.button_up
                yield GamepadEvent(type, button)


def _state(pad: Any) -> GamepadState:
    buttons = sum(1 << button for number, button in GAMEPAD_BUTTONS.items() if pad.buttons[number])
    return GamepadState(*(float(axis) for axis in pad.axes[:6]), buttons=buttons)
