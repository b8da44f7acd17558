"""The compiler made ready while a device opens, where this process will most likely compile.

Slang takes about 0.2 s of a processor and 200 MB to start, NVRTC some 20 ms, which the driver's work and the user's own can hide.
A program whose kernels all come from the disk cache must not pay for that: so a program is taken to compile when it runs
for the first time, which the cache keeps in mind, and where there is no cache.
"""

from __future__ import annotations

import os
import sys
import threading
from functools import cache as once

from .. import _native
from ..base import libslang
from ..config import config
from .cache import DiskCache, cache_by, digest
from .package_files import planner_hash


def expect_compiler(desc: _native.DeviceDesc) -> None:
    """Starts what compiles for a device that is about to open, and returns at once. What fails here fails again, with its
    message, where it is first needed."""
    kind = desc.type
    if kind is not _native.DeviceType.null and _will_compile(kind.name, cache_by(desc, "module_cache")):
        _start(kind in (_native.DeviceType.cuda, _native.DeviceType.automatic))


def _will_compile(kind: str, cache: DiskCache) -> bool:
    if not config.cache_enabled:
        return True
    if config.shipped_cache is not None or config.cache_shared:  # made beforehand, so that nobody compiles
        return False
    program = getattr(sys.modules.get("__main__"), "__file__", None) or ""  # its name alone: programs and caches move
    key = digest(os.path.basename(program), kind, str(os.stat(str(_native.__file__)).st_mtime_ns))
    if cache.read_bytes("program", key) is not None:
        return False
    cache.write_bytes("program", key, b"")
    return True


@once
def _start(with_nvrtc: bool) -> None:
    try:
        libslang.start_background()
    except ImportError:  # the compiler is not there, and kernels may all be known
        return
    try:
        threading.Thread(target=_prepare, args=(with_nvrtc,), name="slangpy-early").start()
    except RuntimeError:  # a process that may have no more threads
        return


def _prepare(with_nvrtc: bool) -> None:
    """What else the first module waits for. Not a daemon: the end of the interpreter waits for it."""
    try:
        planner_hash()
        if with_nvrtc and hasattr(_native, "_prepare_nvrtc"):
            _native._prepare_nvrtc()
    except (OSError, RuntimeError):
        return
