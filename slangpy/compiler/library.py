"""Our Slang library, precompiled: what makes `import slangpy;` cheap."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..base import libslang
from ..base.folders import LIBRARY_PATH
from .cache import cache_of, digest
from .package_files import library_hash
from .text.host import END_OF_PRELUDE

_KEY_SIZE = 64


def library_key(target: str = "") -> str:
    """What the precompiled library was made of: one for all targets with pointers, one for "hlsl", which has none."""
    return digest(library_hash(), str(libslang.version()), *(["hlsl"] if target == "hlsl" else []))


def _shipped(target: str) -> Path | None:
    """The file of the package that has our library for a target: its key, then the library. None where that is another's."""
    return _own(LIBRARY_PATH / ("slangpy-hlsl.slang-module.bin" if target == "hlsl" else "slangpy.slang-module.bin"), target)


def _own(path: Path, target: str) -> Path | None:
    try:
        with open(path, "rb") as file:
            return path if file.read(_KEY_SIZE).decode("ascii", "replace") == library_key(target) else None
    except FileNotFoundError:
        return None


def library_blob(device: Any) -> bytes | None:
    """Our library precompiled: as shipped, or as the cache has it; None where it is not compiled yet."""
    target = device.compile_target.format
    shipped = _shipped(target)
    if shipped is not None:
        return shipped.read_bytes()[_KEY_SIZE:]
    return cache_of(device, "module_cache").read_bytes("library", library_key(target))


def compile_library(target: str) -> bytes:
    """The library as the compiler serialises it, made in a session of its own.

    What a program's own session compiled would depend on its macros. And Slang writes into each module a digest of what it
    imports, which is another one for imports from source: the first process would name its kernels as no later one does.
    """
    options = {"include_paths": [str(LIBRARY_PATH)], "library_paths": [str(LIBRARY_PATH)]}
    target_format = "hlsl" if target == "hlsl" else "cpp"  # the same for every other target
    session: Any = libslang.SlangSession({"format": target_format}, options)
    return session.load_module("slangpy").serialize()


def compile_prelude() -> bytes:
    """What Slang writes in front of every kernel in C++."""
    session: Any = libslang.SlangSession({"format": "cpp"}, {})
    text = '[shader("compute")] [numthreads(1, 1, 1)] void run() {}'
    module = session.load_module_from_source("prelude", text, "prelude")
    code: bytes = session.link([module], [module.entry_point("run")]).code(0)
    end = code.rfind(END_OF_PRELUDE)
    if end < 0:
        raise RuntimeError("Slang's C++ code has no end of its prelude where slangpy/compiler/text/host.py looks for it")
    return code[: end + len(END_OF_PRELUDE)]


def shipped_prelude() -> bytes | None:
    """`compile_prelude` of this version of Slang, as the package has it: known before Slang is loaded."""
    path = _own(LIBRARY_PATH / "slangpy-prelude.bin", "")
    return None if path is None else path.read_bytes()[_KEY_SIZE:]


def load_library(session: Any) -> None:
    """Makes `import slangpy;` cheap: the library is loaded precompiled, compiled once per machine where it is not."""
    if getattr(session, "_library_loaded", False):
        return
    target, path = session.device.compile_target.format, str(LIBRARY_PATH / "slangpy.slang")
    shipped = _shipped(target)
    if shipped is not None:
        session._load_module_from_file("slangpy", path, str(shipped), _KEY_SIZE)
    else:
        blob = library_blob(session.device)
        if blob is None:
            blob = compile_library(target)
            cache_of(session.device, "module_cache").write_bytes("library", library_key(target), blob)
        session.load_module_from_blob("slangpy", path, blob)
    session._library_loaded = True
