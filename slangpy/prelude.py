"""Between Slang and the downstream compiler: what our library needs in front of the text, and what no text can do."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from . import _native
from .cache import digest
from .call.globals_used import used_slots

_FILES = {"cpp": ("prelude_integers.h", "prelude_cpp.h"), "cuda": ("prelude_integers.h", "prelude_cuda.h")}


@cache
def _text(target: str) -> bytes:
    folder = Path(__file__).resolve().parent / "slang"
    return b"".join((folder / name).read_bytes().replace(b"#pragma once", b"", 1) + b"\n" for name in _FILES[target])


@cache
def prelude_key(target: str) -> str:
    """Hash of all that `with_prelude` adds for a target; part of what names a kernel in the disk cache."""
    return digest(Path(__file__).read_bytes(), _text(target) if target in _FILES else b"")


def with_prelude(code: bytes, target: str) -> bytes:
    """Code of a compile target ("cpp", "cuda", "spirv", ...) as its downstream compiler takes it."""
    if target == "cpp":
        code = _half_operators(code)
    return _text(target) + code if target in _FILES else code


def _half_operators(code: bytes) -> bytes:
    """Slang's own C++ prelude defines the operators of vectors and matrices for float and double alone."""
    for kind, macro in ((b"Vector<half", b"SLANG_FLOAT_VECTOR_OPS"), (b"Matrix<half", b"SLANG_FLOAT_MATRIX_OPS")):
        line = b"\n" + macro + b"(double)\n"
        if kind in code:
            code = code.replace(line, line + macro + b"(half)\n", 1)
    return code


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
