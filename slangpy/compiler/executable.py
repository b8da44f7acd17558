"""From target code to what a device runs: the one way there, and its one key in the disk cache."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..config import config
from .cache import cache_of, digest
from .reports import report_step
from .text.prelude import check_resources, prelude_key, with_prelude
from .text.short import compile_kernel

_DECIDING = ("SPY_WAVE_LANES", "SPY_BOUNDS_CHECKS")
"""Defines of the target that the text in front of its code depends on."""


@dataclass(frozen=True)
class Executable:
    """Code for `device.create_kernel`. `key` names it in the cache; `is_new`: a compiler made it just now."""

    code: bytes
    key: str
    is_new: bool


def executable_key(device: Any, options: dict[str, Any], *parts: Any) -> str:
    """Key of compiled code: its sources and tools. parts: text, and what else decides the code."""
    format = device.compile_target.format
    return digest(*parts, format, prelude_key(format), device.compiler_fingerprint, repr(sorted(options.items())))


def cached_executable(
    device: Any, key: str, label: str, compile: Callable[[], bytes], kind: str = "kernel"
) -> Executable:
    """The code that the disk cache has under a key, or that of a compiler."""
    cache, start = cache_of(device), time.perf_counter()
    code = cache.read_bytes(kind, key)
    if code is not None:
        if device.desc.enable_compilation_reports:
            report_step(device, "cache_read", label, time.perf_counter() - start, len(code))
        return Executable(code, key, False)
    code = compile()
    cache.write_bytes(kind, key, code)
    return Executable(code, key, True)


def make_executable(device: Any, text: bytes, layout: Any, label: str, options: dict[str, Any]) -> Executable:
    """Compiles target code (C++, CUDA, SPIR-V, ...) that Slang emitted, or takes the result from the disk cache.

    layout: of the entry point's arguments. options: for the downstream compiler.
    """
    format = device.compile_target.format
    defines = dict(device.compile_target.defines)
    key = executable_key(device, options, text, *(defines.get(name, "") for name in _DECIDING), layout.serialize())

    def compile() -> bytes:
        check_resources(device, layout, text, label)
        code = with_prelude(text, format, defines)
        if config.dump_slang_intermediates:
            dump(f"{label}.{format}", code)
        if format == "cpp":
            return compile_kernel(
                device, code, layout.entry_point_name, label=label, group_size=layout.group_size, **options
            )
        return type(device).compile(
            device,
            code,
            layout.entry_point_name,
            stage=layout.stage,
            label=label,
            group_size=layout.group_size,
            **options,
        )

    return cached_executable(device, key, label, compile)


def dump(name: str, data: bytes) -> None:
    """Writes a file of that name into .temp/ of the working folder."""
    safe = "".join(c if c.isalnum() or c in "._-" else "_" for c in name)
    folder = Path(".temp")
    folder.mkdir(exist_ok=True)
    (folder / safe).write_bytes(data)
