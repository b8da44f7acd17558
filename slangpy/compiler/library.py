"""Our Slang library, precompiled: what makes `import slangpy;` cheap."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from ..base import libslang
from ..base.folders import LIBRARY_PATH
from .cache import cache_of, digest
from .package_files import library_hash
from .session_state import state_of
from .text.host import END_OF_PRELUDE

_KEY_SIZE = 64


CORE = "slangpy_core"
"""What kernels need of our library: loaded in every session."""
WHOLE = "slangpy"
"""What users import: the core, and the methods of tensors."""
PARTS = (WHOLE, "slangpy.rays", "slangpy.neural", "slangpy.random")
"""What is loaded where a source imports it by name; kernels then name its types."""
_BELOW = {CORE: (), WHOLE: (CORE,), "slangpy.rays": (CORE, WHOLE), "slangpy.neural": (CORE, WHOLE), "slangpy.random": ()}
"""What each imports."""


def library_key(target: str = "") -> str:
    """What the precompiled library was made of: one for all targets with pointers, one for "hlsl", which has none."""
    return digest(library_hash(), str(libslang.version()), *(["hlsl"] if target == "hlsl" else []))


def compiled_name(target: str, part: str) -> str:
    """The file that has our library, or a part of it, for a target, as the package ships it: its key, then the module."""
    return f"{_module_name(part)}{'-hlsl' if target == 'hlsl' else ''}.slang-module.bin"


def _module_name(part: str) -> str:
    """What the compiler knows a part by, and where it lies in our folder."""
    return part.replace(".", "/")


def _shipped(target: str, part: str) -> Path | None:
    """The file of the package that has a part of our library for a target; None where that is another's."""
    return _own(LIBRARY_PATH / compiled_name(target, part), target)


def _own(path: Path, target: str) -> Path | None:
    try:
        with open(path, "rb") as file:
            return path if file.read(_KEY_SIZE).decode("ascii", "replace") == library_key(target) else None
    except FileNotFoundError:
        return None


def library_blob(device: Any, part: str) -> bytes | None:
    """Our library, or a part, precompiled: as shipped, or as the cache has it; None where it is not compiled yet."""
    target = device.compile_target.format
    shipped = _shipped(target, part)
    if shipped is not None:
        return shipped.read_bytes()[_KEY_SIZE:]
    return cache_of(device, "module_cache").read_bytes(*_cache_entry(target, part))


def _cache_entry(target: str, part: str) -> tuple[str, str]:
    return "library", digest(library_key(target), part)


def compile_library(target: str, part: str, below: Callable[[str], bytes | None]) -> bytes:
    """A part of the library as the compiler serialises it, made in a session of its own. below: gives its imports.

    What a program's own session compiled would depend on its macros. And Slang writes into each module a digest of what it
    imports, which is another one for imports from source: the first process would name its kernels as no later one does.
    """
    options = {"include_paths": [str(LIBRARY_PATH)], "library_paths": [str(LIBRARY_PATH)]}
    target_format = "hlsl" if target == "hlsl" else "cpp"  # the same for every other target
    session: Any = libslang.SlangSession({"format": target_format}, options)
    for other in _BELOW[part]:
        blob = below(other)
        if blob is not None:  # else the cache is off
            load_blob(session, other, blob)
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


def load_library(session: Any, generated: str = "") -> None:
    """Makes `import slangpy_core;` cheap: it is loaded precompiled, compiled once per machine where it is not. generated: text
    of a generated module, which may hold a user's, and imports the whole then."""
    load_part(session, CORE)
    if f"import {WHOLE};" in generated:
        load_part(session, WHOLE)


def load_parts(session: Any, source: str, name: str, path: str) -> None:
    """The same for the parts that a source imports, directly or through others, in a session that has our library. Sources
    with the names of ours get other ones. name: of a module made of text, else empty; path: its file."""
    if CORE in loaded_parts(session):
        asked = {*session._library_imports(source, name, path), name or Path(path).stem}
        for part in PARTS:
            if part in asked:
                load_part(session, part)


def loaded_parts(session: Any) -> list[str]:
    """The names of what a session has of our library, as they were loaded."""
    return state_of(session).library_parts


def load_part(session: Any, part: str) -> None:
    """Loads the core, or one of PARTS in a session that has the core."""
    if part in loaded_parts(session):
        return
    for other in _BELOW[part]:
        load_part(session, other)
    target = session.device.compile_target.format
    shipped = _shipped(target, part)
    if shipped is not None:
        session._load_module_from_file(_module_name(part), _source_path(part), str(shipped), _KEY_SIZE)
    else:
        blob = library_blob(session.device, part)
        if blob is None:
            blob = compile_library(target, part, partial(library_blob, session.device))
            cache_of(session.device, "module_cache").write_bytes(*_cache_entry(target, part), blob)
        load_blob(session, part, blob)
    loaded_parts(session).append(part)


def load_blob(session: Any, part: str, blob: bytes) -> None:
    """Loads what library_blob() gave."""
    session.load_module_from_blob(_module_name(part), _source_path(part), blob)


def _source_path(part: str) -> str:
    return str(LIBRARY_PATH / f"{_module_name(part)}.slang")
