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


def compile_library(target: str) -> bytes:
    """The library as the compiler serialises it, made in a session of its own.

    What a program's own session compiled would depend on its macros. And Slang writes into each module a digest of what it
    imports, which is another one for imports from source: the first process would name its kernels as no later one does.
    """
    options = {"include_paths": [str(LIBRARY_PATH)], "library_paths": [str(LIBRARY_PATH)]}
    target_format = "hlsl" if target == "hlsl" else "cpp"  # the same for every other target
    session: Any = libslang.SlangSession({"format": target_format}, options)
    return session.load_module("slangpy").serialize()


def load_library(session: Any) -> None:
    """Makes `import slangpy;` cheap: the library is loaded precompiled, compiled once per machine where it is not."""
    if getattr(session, "_library_loaded", False):
        return
    blob = library_blob(session.device)
    if blob is None:
        target = session.device.compile_target.format
        blob = compile_library(target)
        cache_of(session.device, "module_cache").write_bytes("library", library_key(target), blob)
    session.load_module_from_blob("slangpy", str(LIBRARY_PATH / "slangpy.slang"), blob)
    session._library_loaded = True
