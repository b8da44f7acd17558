"""Between Slang and the downstream compiler: what our library needs in front of the text, and what no text can do."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from . import _native
from .call.globals_used import used_slots

_FILES = {"cpp": "prelude_cpp.h", "cuda": "prelude_cuda.h"}


@cache
def _text(target: str) -> bytes:
    path = Path(__file__).resolve().parent / "slang" / _FILES[target]
    return path.read_bytes().replace(b"#pragma once", b"", 1) + b"\n"


def with_prelude(code: bytes, target: str) -> bytes:
    """Code of a compile target ("cpp", "cuda", "spirv", ...) as its downstream compiler takes it."""
    return _text(target) + code if target in _FILES else code


def check_resources(device: Any, layout: Any, text: bytes, label: str) -> None:
    """NotImplementedError for kernels that use textures on the CPU device; the C++ compiler would only say what it misses.

    Globals that the kernel (`text`, of the compile target) does not reach are no obstacle.
    """
    if device.compile_target.format != "cpp" or device.info.type is not _native.DeviceType.cpu:
        return
    used = used_slots(text, "cpp", layout)
    for index, slot in enumerate(layout.slots):
        if slot["kind"] in ("structured_buffer", "byte_address_buffer"):
            continue
        if index >= layout.entry_point_slot or index in used:
            raise NotImplementedError(
                f"{label} uses the parameter '{slot['path']}', a texture, sampler or acceleration structure, which the cpu "
                "device cannot run yet; use a cuda or vulkan device"
            )
