"""`Device.create_surface`: what a window shows, for devices that can show and, through one of these, for those that cannot."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

from slangpy._native import DeviceType, Surface
from slangpy.base.typed import integer
from slangpy.device import current

_USE = "use a vulkan device, or cpu and cuda devices, which show images through one"


@dataclass(frozen=True)
class WindowHandle:
    """A window that somebody else opened: of X11 a `Display*` and the number of the window, of Windows an HWND."""

    if sys.platform == "win32":
        hwnd: int
    else:
        xdisplay: int
        xwindow: int

    def __post_init__(self) -> None:
        for field in fields(self):
            object.__setattr__(self, field.name, integer(f"WindowHandle '{field.name}'", getattr(self, field.name), 0))


def create_surface(device: Any, window: Any, open_shower: Callable[[], Any]) -> Surface:
    """open_shower: opens the Vulkan device through which others show."""
    if not isinstance(window, WindowHandle) and not hasattr(window, "_vulkan_surface"):
        raise TypeError(f"create_surface: expected a Window or a WindowHandle, got {window!r}")
    kind = device.info.type
    if kind == DeviceType.vulkan:
        return _holding(window, _of_window(device, window))
    if kind not in (DeviceType.cpu, DeviceType.cuda):
        raise NotImplementedError(f"create_surface: {kind.name} devices have no surfaces (feature 'surface'); {_USE}")
    state = device._state
    if state.shower is None or state.shower.is_closed:
        state.shower = _open_shower(kind, open_shower)
    return _holding(window, device._create_upload_surface(_of_window(state.shower, window)))


def _holding(window: Any, surface: Surface) -> Surface:
    """The surface, which keeps the window open. Where garbage is collected, it sees that."""
    vars(surface)["_window"] = window
    return surface


def _open_shower(kind: DeviceType, open_shower: Callable[[], Any]) -> Any:
    try:
        shower = open_shower()
    except RuntimeError as error:
        raise RuntimeError(
            f"create_surface: {kind.name} devices show images through a vulkan device, and none opens here: {error}"
        ) from None
    current.leave(shower)  # the user's own stays the current one
    return shower


def _of_window(device: Any, window: Any) -> Surface:
    device._require_feature("surface", "create_surface")
    if not isinstance(window, WindowHandle):
        return device._create_surface("vulkan", 0, window._vulkan_surface(device.native_handles[0].value))
    if sys.platform == "win32":
        return device._create_surface("win32", 0, window.hwnd)
    else:
        if not window.xdisplay:
            raise ValueError("create_surface: WindowHandle.xdisplay is null; pass the Display* that opened the window")
        return device._create_surface("xlib", window.xdisplay, window.xwindow)


__all__ = ["WindowHandle", "create_surface"]
