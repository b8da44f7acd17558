"""The way to GLFW: it is loaded once, and its complaints become exceptions where they matter."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from types import ModuleType
from typing import Any

from ..base.dialogs import displays
from ..base.keys import KeyCode
from ..base.optional import find_package
from .events import GamepadButton, MouseButton

_OTHER_NAMES = {"keypad_del": "KP_DECIMAL"}
_lock = threading.Lock()


@cache
def _load() -> ModuleType:
    glfw = find_package("glfw")
    if glfw is None:
        raise ImportError("Window needs glfw: pip install slangpy[window]")
    return glfw


@contextmanager
def _complaints(glfw: Any) -> Iterator[list[str]]:
    """What GLFW complains of inside the block, instead of telling the process's own handler."""
    said: list[str] = []

    def note(code: int, text: bytes | str) -> None:
        said.append(text.decode(errors="replace") if isinstance(text, bytes) else text)

    with _lock:
        before = glfw.set_error_callback(note)
        try:
            yield said
        finally:
            glfw.set_error_callback(before)


def glfw_for_windows() -> Any:
    """GLFW, initialised. ImportError without the package; RuntimeError without a display."""
    glfw = _load()
    with _complaints(glfw) as said:
        if glfw.init():
            return glfw
    raise RuntimeError(
        f"Window: no display was found ({_displays()}; {'; '.join(said)}). Compute, drawing into textures and ui.Context "
        "work without one; under Linux, `xvfb-run python ...` gives a program a display that nobody sees"
    )


def _displays() -> str:
    if sys.platform != "linux":
        return "GLFW could not be initialised"
    return displays()


def ask(what: str, function: Callable[..., Any], *args: Any, default: Any = None, strict: bool = True) -> Any:
    """What a function of GLFW returns. RuntimeError with its complaint, or the default where that is no failure."""
    with _complaints(_load()) as said:
        result = function(*args)
    if said and strict:
        raise RuntimeError(f"{what}: {'; '.join(said)}")
    return default if said else result


@cache
def key_codes() -> dict[int, KeyCode]:
    """Our keys by GLFW's numbers."""
    glfw = _load()
    names = {key: _OTHER_NAMES.get(key.name, _upper(key.name)) for key in KeyCode if key != KeyCode.unknown}
    return {getattr(glfw, f"KEY_{name}"): key for key, name in names.items()}


def _upper(name: str) -> str:
    for prefix, theirs in (("keypad", "KP"), ("key", "")):
        rest = name[len(prefix) :].strip("_")
        if name.startswith(prefix) and rest:
            return f"{theirs}_{rest.upper()}".strip("_")
    return name.upper()


MOUSE_BUTTONS = {0: MouseButton.left, 1: MouseButton.right, 2: MouseButton.middle}
"""By GLFW's numbers; others are not told."""
GAMEPAD_BUTTONS = {number: GamepadButton(number + 1) for number in range(15)}
"""By GLFW's numbers."""
