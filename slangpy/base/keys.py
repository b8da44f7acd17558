"""Keys of a keyboard, by the numbers of GLFW."""

from __future__ import annotations

import enum

_KEYS = {
    "space": 32, "apostrophe": 39, "comma": 44, "minus": 45, "period": 46, "slash": 47,
    **{f"key{i}": 48 + i for i in range(10)}, "semicolon": 59, "equal": 61,
    **{chr(97 + i): 65 + i for i in range(26)}, "left_bracket": 91, "backslash": 92, "right_bracket": 93,
    "grave_accent": 96, "escape": 256, "enter": 257, "tab": 258, "backspace": 259, "insert": 260, "delete": 261,
    "right": 262, "left": 263, "down": 264, "up": 265, "page_up": 266, "page_down": 267, "home": 268, "end": 269,
    "caps_lock": 280, "scroll_lock": 281, "num_lock": 282, "print_screen": 283, "pause": 284,
    **{f"f{i}": 289 + i for i in range(1, 13)}, **{f"keypad{i}": 320 + i for i in range(10)}, "keypad_del": 330,
    "keypad_divide": 331, "keypad_multiply": 332, "keypad_subtract": 333, "keypad_add": 334, "keypad_enter": 335,
    "keypad_equal": 336, "left_shift": 340, "left_control": 341, "left_alt": 342, "left_super": 343, "right_shift": 344,
    "right_control": 345, "right_alt": 346, "right_super": 347, "menu": 348, "unknown": -1,
}  # fmt: skip

KeyCode = enum.IntEnum("KeyCode", _KEYS, module=__name__)
