"""Our Slang library, precompiled: what makes `import slangpy;` cheap."""

from __future__ import annotations

from typing import Any

from ..base import libslang
from ..base.folders import LIBRARY_PATH
from .cache import cache_of, digest
from .package_files import library_hash


def library_key(target: str = "") -> str:
    """What the precompiled library was made of: one for all targets with pointers, one for "hlsl", which has none."""
    return digest(library_hash(), str(libslang.version()), *(["hlsl"] if target == "hlsl" else []))


def library_blob(device: Any) -> bytes | None:
    """Our library precompiled: as shipped, or as the cache has it; None where it is not compiled yet."""
    target = device.compile_target.format
    key = library_key(target)
    shipped = LIBRARY_PATH / ("slangpy-hlsl.slang-module.bin" if target == "hlsl" else "slangpy.slang-module.bin")
    if shipped.exists():
        data = shipped.read_bytes()
        if data[:64].decode("ascii", "replace") == key:
            return data[64:]
    return cache_of(device, "module_cache").read_bytes("library", key)


def load_library(session: Any) -> None:
    """Makes `import slangpy;` cheap: the library is loaded precompiled, compiled once per machine where it is not."""
    if getattr(session, "_library_loaded", False):
        return
    blob = library_blob(session.device)
    if blob is not None:
        session.load_module_from_blob("slangpy", str(LIBRARY_PATH / "slangpy.slang"), blob)
    else:
        module = session.load_module("slangpy")
        key = library_key(session.device.compile_target.format)
        cache_of(session.device, "module_cache").write_bytes("library", key, module.serialize())
    session._library_loaded = True
