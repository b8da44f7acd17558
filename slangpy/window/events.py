"""What windows tell their callbacks. Events may be made and changed by anybody, as tests and recordings do."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from .._native import float2
from ..base.keys import KeyCode
from ..base.own_names import own_names
from ..base.typed import member, typed_fields


class _Named(enum.IntEnum):
    __str__ = enum.Enum.__str__


class WindowMode(_Named):
    """fullscreen: without decoration, as large as the primary monitor."""

    normal = 0
    minimized = 1
    fullscreen = 2


class CursorMode(_Named):
    """disabled: hidden and held, so that the mouse moves without end."""

    normal = 0
    hidden = 1
    disabled = 2


class CursorShape(_Named):
    arrow = 0
    ibeam = 1
    crosshair = 2
    hand = 3
    hresize = 4
    vresize = 5


class KeyModifier(_Named):
    shift = 1
    ctrl = 2
    alt = 4


class KeyModifierFlags(enum.IntFlag):
    none = 0
    shift = 1
    ctrl = 2
    alt = 4


class KeyboardEventType(_Named):
    """input: a character was typed."""

    key_press = 0
    key_release = 1
    key_repeat = 2
    input = 3


class MouseEventType(_Named):
    button_down = 0
    button_up = 1
    move = 2
    scroll = 3


class MouseButton(_Named):
    left = 0
    middle = 1
    right = 2
    unknown = 3


class GamepadEventType(_Named):
    button_down = 0
    button_up = 1
    connect = 2
    disconnect = 3


class GamepadButton(_Named):
    unknown = 0
    a = 1
    b = 2
    x = 3
    y = 4
    left_bumper = 5
    right_bumper = 6
    back = 7
    start = 8
    guide = 9
    left_thumb = 10
    right_thumb = 11
    up = 12
    right = 13
    down = 14
    left = 15


@own_names
@typed_fields
@dataclass
class KeyboardEvent:
    """A key, or with the type `input` a character: its number in Unicode."""

    type: KeyboardEventType = KeyboardEventType.key_press
    key: KeyCode = KeyCode.unknown
    mods: KeyModifierFlags = KeyModifierFlags.none
    codepoint: int = 0

    def is_key_press(self) -> bool:
        """Whether a key went down."""
        return self.type == KeyboardEventType.key_press

    def is_key_release(self) -> bool:
        """Whether a key came up."""
        return self.type == KeyboardEventType.key_release

    def is_key_repeat(self) -> bool:
        """Whether a key that is held repeats."""
        return self.type == KeyboardEventType.key_repeat

    def is_input(self) -> bool:
        """Whether a character was typed."""
        return self.type == KeyboardEventType.input

    def has_modifier(self, modifier: KeyModifier | str) -> bool:
        """Whether that modifier key is held."""
        return bool(self.mods & member("has_modifier 'modifier'", KeyModifierFlags, modifier))


@own_names
@typed_fields
@dataclass
class MouseEvent:
    """pos: pixels from the upper left corner. scroll: steps of the wheel, away from the user positive in y."""

    type: MouseEventType = MouseEventType.button_down
    pos: float2 = field(default_factory=float2)
    scroll: float2 = field(default_factory=float2)
    button: MouseButton = MouseButton.unknown
    mods: KeyModifierFlags = KeyModifierFlags.none

    def is_button_down(self) -> bool:
        """Whether a button went down."""
        return self.type == MouseEventType.button_down

    def is_button_up(self) -> bool:
        """Whether a button came up."""
        return self.type == MouseEventType.button_up

    def is_move(self) -> bool:
        """Whether the mouse moved."""
        return self.type == MouseEventType.move

    def is_scroll(self) -> bool:
        """Whether the wheel turned."""
        return self.type == MouseEventType.scroll

    def has_modifier(self, modifier: KeyModifier | str) -> bool:
        """Whether that modifier key is held."""
        return bool(self.mods & member("has_modifier 'modifier'", KeyModifierFlags, modifier))


@own_names
@typed_fields
@dataclass
class GamepadEvent:
    type: GamepadEventType = GamepadEventType.button_down
    button: GamepadButton = GamepadButton.unknown

    def is_button_down(self) -> bool:
        """Whether a button went down."""
        return self.type == GamepadEventType.button_down

    def is_button_up(self) -> bool:
        """Whether a button came up."""
        return self.type == GamepadEventType.button_up

    def is_connect(self) -> bool:
        """Whether a gamepad came."""
        return self.type == GamepadEventType.connect

    def is_disconnect(self) -> bool:
        """Whether a gamepad went."""
        return self.type == GamepadEventType.disconnect


@own_names
@typed_fields
@dataclass
class GamepadState:
    """Sticks from -1 to 1, right and down positive; triggers from -1 (free) to 1. buttons: bits, `1 << button`."""

    left_x: float = 0.0
    left_y: float = 0.0
    right_x: float = 0.0
    right_y: float = 0.0
    left_trigger: float = 0.0
    right_trigger: float = 0.0
    buttons: int = 0

    def is_button_down(self, button: GamepadButton | str) -> bool:
        """Whether that button is held."""
        return bool(self.buttons & (1 << member("is_button_down 'button'", GamepadButton, button)))
