"""Our Slang library, precompiled: what makes `import slangpy;` cheap."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .._native import imports_in
from ..base import libslang
from ..base.folders import LIBRARY_PATH
from .cache import cache_of, digest
from .package_files import library_hash
from .text.host import END_OF_PRELUDE

_KEY_SIZE = 64


PARTS = ("slangpy.rays", "slangpy.random")
"""Parts of our library that a source imports by name, with types that functions take, which kernels then name."""
_WHOLE = "slangpy"


def library_key(target: str = "") -> str:
    """What the precompiled library was made of: one for all targets with pointers, one for "hlsl", which has none."""
    return digest(library_hash(), str(libslang.version()), *(["hlsl"] if target == "hlsl" else []))


def compiled_name(target: str, part: str = _WHOLE) -> str:
    """The file that has our library, or a part of it, for a target, as the package ships it: its key, then the module."""
    return f"{_module_name(part)}{'-hlsl' if target == 'hlsl' else ''}.slang-module.bin"


def _module_name(part: str) -> str:
    """What the compiler knows a part by, and where it lies in our folder."""
    return part.replace(".", "/")


def _shipped(target: str, part: str = _WHOLE) -> Path | None:
    """The file of the package that has a part of our library for a target; None where that is another's."""
    return _own(LIBRARY_PATH / compiled_name(target, part), target)


def _own(path: Path, target: str) -> Path | None:
    try:
        with open(path, "rb") as file:
            return path if file.read(_KEY_SIZE).decode("ascii", "replace") == library_key(target) else None
    except FileNotFoundError:
        return None


def library_blob(device: Any, part: str = _WHOLE) -> bytes | None:
    """Our library, or a part, precompiled: as shipped, or as the cache has it; None where it is not compiled yet."""
    target = device.compile_target.format
    shipped = _shipped(target, part)
    if shipped is not None:
        return shipped.read_bytes()[_KEY_SIZE:]
    return cache_of(device, "module_cache").read_bytes(*_cache_entry(target, part))


def _cache_entry(target: str, part: str) -> tuple[str, str]:
    key = library_key(target)
    return "library", key if part == _WHOLE else digest(key, part)


def compile_library(target: str, part: str = _WHOLE, whole: bytes | None = None) -> bytes:
    """The library as the compiler serialises it, made in a session of its own; or a part, with the whole, which it imports.

    What a program's own session compiled would depend on its macros. And Slang writes into each module a digest of what it
    imports, which is another one for imports from source: the first process would name its kernels as no later one does.
    """
    options = {"include_paths": [str(LIBRARY_PATH)], "library_paths": [str(LIBRARY_PATH)]}
    target_format = "hlsl" if target == "hlsl" else "cpp"  # the same for every other target
    session: Any = libslang.SlangSession({"format": target_format}, options)
    if whole is not None:
        session.load_module_from_blob(_WHOLE, str(LIBRARY_PATH / "slangpy.slang"), whole)
    return session.load_module(part).serialize()


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
    _load(session, _WHOLE)


def load_parts(session: Any, source: str) -> None:
    """The same for the parts that a source imports, in a session that has our library."""
    if _WHOLE in _loaded(session) and any(part in source for part in PARTS):
        asked = {name for _, name in imports_in(source)}
        for part in PARTS:
            if part in asked:
                _load(session, part)


def _loaded(session: Any) -> set[str]:
    return session.__dict__.setdefault("_library_parts", set())


def _load(session: Any, part: str) -> None:
    if part in _loaded(session):
        return
    target, path = session.device.compile_target.format, str(LIBRARY_PATH / f"{_module_name(part)}.slang")
    shipped = _shipped(target, part)
    if shipped is not None:
        session._load_module_from_file(_module_name(part), path, str(shipped), _KEY_SIZE)
    else:
        blob = library_blob(session.device, part)
        if blob is None:
            blob = compile_library(target, part, None if part == _WHOLE else library_blob(session.device))
            cache_of(session.device, "module_cache").write_bytes(*_cache_entry(target, part), blob)
        session.load_module_from_blob(_module_name(part), path, blob)
    _loaded(session).add(part)
