"""What GLFW's callbacks tell, kept until somebody asks."""

from __future__ import annotations

from collections import deque
from typing import Any

from .._native import float2
from ..base.keys import KeyCode
from .events import KeyboardEvent, KeyboardEventType, KeyModifierFlags, MouseEvent, MouseEventType
from .system import MOUSE_BUTTONS, key_codes

_MODIFIERS = {
    KeyCode.left_shift: KeyModifierFlags.shift,
    KeyCode.right_shift: KeyModifierFlags.shift,
    KeyCode.left_control: KeyModifierFlags.ctrl,
    KeyCode.right_control: KeyModifierFlags.ctrl,
    KeyCode.left_alt: KeyModifierFlags.alt,
    KeyCode.right_alt: KeyModifierFlags.alt,
}
_ALL_MODIFIERS = KeyModifierFlags.shift | KeyModifierFlags.ctrl | KeyModifierFlags.alt


class EventQueue:
    """Of one window of GLFW, which holds it; it does not hold the `Window`."""

    def __init__(self, glfw: Any, handle: Any) -> None:
        self._glfw = glfw
        self._handle = handle
        self._told: deque[tuple[str, tuple[Any, ...]]] = deque()
        self._mods = KeyModifierFlags.none
        self.is_resized = False
        """The system has told another size; whoever asks the window for it sets it back."""
        glfw.set_window_size_callback(handle, lambda _, width, height: self._note_size())
        glfw.set_key_callback(handle, lambda _, *event: self._note_key(*event))
        glfw.set_char_callback(handle, lambda _, codepoint: self._note_character(codepoint))
        glfw.set_mouse_button_callback(handle, lambda _, *event: self._note_button(*event))
        glfw.set_cursor_pos_callback(handle, lambda _, x, y: self._note_move(x, y))
        glfw.set_scroll_callback(handle, lambda _, x, y: self._note_scroll(x, y))
        glfw.set_drop_callback(handle, lambda _, paths: self._note_drop(paths))

    def add(self, callback: str, *arguments: Any) -> None:
        """For the callback of this name."""
        self._told.append((callback, arguments))

    def take(self) -> tuple[str, tuple[Any, ...]] | None:
        """The oldest: the name of a callback, and its arguments."""
        return self._told.popleft() if self._told else None

    def _note_size(self) -> None:
        self.is_resized = True

    def _note_key(self, key: int, scancode: int, action: int, mods: int) -> None:
        code = key_codes().get(key, KeyCode.unknown)
        self._mods = KeyModifierFlags(mods) & _ALL_MODIFIERS
        own = _MODIFIERS.get(code, KeyModifierFlags.none)
        # Systems differ in whether a modifier counts for its own press and release.
        self._mods = self._mods & ~own if action == self._glfw.RELEASE else self._mods | own
        types = (KeyboardEventType.key_release, KeyboardEventType.key_press, KeyboardEventType.key_repeat)
        self.add("on_keyboard_event", KeyboardEvent(types[action], code, self._mods))

    def _note_character(self, codepoint: int) -> None:
        event = KeyboardEvent(KeyboardEventType.input, KeyCode.unknown, self._mods, codepoint)
        self.add("on_keyboard_event", event)

    def _note_mouse(self, type: MouseEventType, **fields: Any) -> None:
        fields.setdefault("pos", float2(*self._glfw.get_cursor_pos(self._handle)))
        self.add("on_mouse_event", MouseEvent(type, mods=self._mods, **fields))

    def _note_button(self, button: int, action: int, mods: int) -> None:
        if button not in MOUSE_BUTTONS:
            return
        self._mods = KeyModifierFlags(mods) & _ALL_MODIFIERS
        is_down = action == self._glfw.PRESS
        self._note_mouse(MouseEventType.button_down if is_down else MouseEventType.button_up, button=MOUSE_BUTTONS[button])

    def _note_move(self, x: float, y: float) -> None:
        self._note_mouse(MouseEventType.move, pos=float2(x, y))

    def _note_scroll(self, x: float, y: float) -> None:
        self._note_mouse(MouseEventType.scroll, scroll=float2(x, y))

    def _note_drop(self, paths: list[str]) -> None:
        self.add("on_drop_files", list(paths))
