"""Kernels that will be compiled soon: on the CPU, GCC begins with what they all begin with, while Slang makes the rest."""

from __future__ import annotations

from functools import cache
from typing import Any

from .. import _native
from .generated import with_bounds
from .library import shipped_prelude
from .options import target_options
from .text.prelude import with_prelude
from .text.short import beginning


def expect_kernel(device: Any, source: str = "") -> None:
    """Gets ready for a kernel. source: its Slang text, or what is known of it."""
    if device.info.type is not _native.DeviceType.cpu:
        return
    options = target_options(device)
    if options["debug_info"] or options["downstream_args"]:  # they would name the files of a compile
        return
    defines = tuple(dict(device.compile_target.defines).items())
    text = _beginning(defines, with_bounds(device, source, b""))
    if text is not None:
        device._expect_compile(text, float_mode=options["float_mode"], optimization=options["optimization"])


@cache
def _beginning(defines: tuple[tuple[str, str], ...], front: bytes) -> bytes | None:
    """What kernels on the CPU begin with; None where it is not known before Slang says it."""
    prelude = shipped_prelude()
    return None if prelude is None else beginning(with_prelude(front + prelude, "cpp", dict(defines)))


__all__ = ["expect_kernel"]
