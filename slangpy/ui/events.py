"""Events of windows, handed to the current context of ImGui. They are known by their methods, whoever made them."""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

from ..base.keys import KeyCode
from .library import load_imgui

_OTHER_NAMES = {
    "left": "left_arrow", "right": "right_arrow", "up": "up_arrow", "down": "down_arrow", "left_control": "left_ctrl",
    "right_control": "right_ctrl", "keypad_del": "keypad_decimal",
}  # fmt: skip
_BUTTONS = {"left": 0, "right": 1, "middle": 2}
_MODIFIERS = (("mod_shift", 1), ("mod_ctrl", 2), ("mod_alt", 4))


@cache
def _keys() -> dict[int, Any]:
    """ImGui's keys by ours."""
    imgui = load_imgui()
    names = {key: _OTHER_NAMES.get(key.name, key.name) for key in KeyCode}
    for key in KeyCode:
        if key.name.startswith("key") and key.name[3:].isdigit():
            names[key] = f"_{key.name[3:]}"
    return {int(key): getattr(imgui.Key, name) for key, name in names.items() if hasattr(imgui.Key, name)}


def _tell_modifiers(imgui: Any, event: Any) -> None:
    io, mods = imgui.get_io(), int(getattr(event, "mods", 0))
    for name, bit in _MODIFIERS:
        io.add_key_event(getattr(imgui.Key, name), bool(mods & bit))


def tell_keyboard(event: Any) -> bool:
    """True: ImGui wants the event. With a panel chosen it wants all keys, but Escape, which programs end with, only where it
    has a use for it: while a text is edited, or a list is open."""
    if not hasattr(event, "is_input"):
        raise TypeError(f"handle_keyboard_event: expected a KeyboardEvent, got {event!r}")
    imgui = load_imgui()
    io = imgui.get_io()
    if event.is_input():
        if 0 < int(event.codepoint) <= sys.maxunicode:
            io.add_input_character(int(event.codepoint))
    else:
        _tell_modifiers(imgui, event)
        key = _keys().get(int(event.key))
        if key is not None and not event.is_key_repeat():  # ImGui repeats by itself
            io.add_key_event(key, bool(event.is_key_press()))
        if key == imgui.Key.escape and not io.want_text_input and not imgui.is_popup_open("", imgui.PopupFlags_.any_popup.value):
            return False
    return bool(io.want_capture_keyboard)


def tell_mouse(event: Any) -> bool:
    """True: ImGui wants the mouse."""
    if not hasattr(event, "is_scroll"):
        raise TypeError(f"handle_mouse_event: expected a MouseEvent, got {event!r}")
    imgui = load_imgui()
    io = imgui.get_io()
    _tell_modifiers(imgui, event)
    x, y = event.pos
    io.add_mouse_pos_event(float(x), float(y))
    if event.is_scroll():
        dx, dy = event.scroll
        io.add_mouse_wheel_event(float(dx), float(dy))
    elif event.is_button_down() or event.is_button_up():
        number = _BUTTONS.get(getattr(event.button, "name", ""))
        if number is not None:
            io.add_mouse_button_event(number, bool(event.is_button_down()))
    return bool(io.want_capture_mouse)


__all__ = ["tell_keyboard", "tell_mouse"]
