"""Windows of the desktop with their events, over the package `glfw`, which is imported when the first one is opened."""

from __future__ import annotations

from .events import (
    CursorMode as CursorMode,
    CursorShape as CursorShape,
    GamepadButton as GamepadButton,
    GamepadEvent as GamepadEvent,
    GamepadEventType as GamepadEventType,
    GamepadState as GamepadState,
    KeyboardEvent as KeyboardEvent,
    KeyboardEventType as KeyboardEventType,
    KeyModifier as KeyModifier,
    KeyModifierFlags as KeyModifierFlags,
    MouseButton as MouseButton,
    MouseEvent as MouseEvent,
    MouseEventType as MouseEventType,
    WindowMode as WindowMode,
)
from .window import Window as Window

__all__ = [
    "CursorMode", "CursorShape", "GamepadButton", "GamepadEvent", "GamepadEventType", "GamepadState", "KeyboardEvent",
    "KeyboardEventType", "KeyModifier", "KeyModifierFlags", "MouseButton", "MouseEvent", "MouseEventType", "Window",
    "WindowMode",
]  # fmt: skip
