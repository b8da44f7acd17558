"""Frame captures, where the program runs in RenderDoc (https://renderdoc.org), through its in-application API 1.0."""

from __future__ import annotations

import ctypes
import os
import sys
from typing import Any

from .._native import Device

_LIBRARY = "renderdoc.dll" if sys.platform == "win32" else "librenderdoc.so"
_VERSION = 10000
_START, _IS_CAPTURING, _END = 19, 20, 21
"""Places of functions in the table that RENDERDOC_GetAPI gives."""
_TABLE_SIZE = 22


def _library() -> Any:
    """What RenderDoc put into this process; None without. It is never loaded from here: it must come before Vulkan."""
    try:
        if sys.platform == "win32":
            handle = ctypes.windll.kernel32.GetModuleHandleW(_LIBRARY)
            return ctypes.CDLL(_LIBRARY, handle=handle) if handle else None
        return ctypes.CDLL(_LIBRARY, mode=os.RTLD_NOW | os.RTLD_NOLOAD)
    except OSError:
        return None


def _function(place: int, result: Any, *parameters: Any) -> Any:
    """A function of RenderDoc's table; None where it is not loaded."""
    library = _library()
    if library is None:
        return None
    table = ctypes.POINTER(ctypes.c_void_p)()
    if library.RENDERDOC_GetAPI(_VERSION, ctypes.byref(table)) != 1:
        return None
    return ctypes.CFUNCTYPE(result, *parameters)(table[:_TABLE_SIZE][place])


def is_available() -> bool:
    """Whether the program runs in RenderDoc."""
    return _function(_IS_CAPTURING, ctypes.c_uint32) is not None


def start_frame_capture(device: Device, window: Any = None) -> bool:
    """Captures what is submitted from here to `end_frame_capture()`, of all devices and windows. False without
    RenderDoc."""
    if not isinstance(device, Device):
        raise TypeError(f"start_frame_capture: 'device' must be a Device, got {device!r}")
    del window
    start = _function(_START, None, ctypes.c_void_p, ctypes.c_void_p)
    if start is None:
        return False
    start(None, None)
    return is_frame_capturing()


def end_frame_capture() -> bool:
    """Writes the capture. False where there is none."""
    end = _function(_END, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_void_p)
    return end is not None and bool(end(None, None))


def is_frame_capturing() -> bool:
    """Whether a capture has begun."""
    capturing = _function(_IS_CAPTURING, ctypes.c_uint32)
    return capturing is not None and bool(capturing())


__all__ = ["end_frame_capture", "is_available", "is_frame_capturing", "start_frame_capture"]
