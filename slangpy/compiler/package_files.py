"""Hashes of the package itself, so that nothing kept on disk outlives the code that made it.

All of the package's Python decides plans, one way or the other, and reading it takes longer than a warm start may; so
the hashes are kept in the disk cache under the sizes and times of the files, which are looked at once in each process.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from .. import _native
from ..base import libslang
from ..base.folders import LIBRARY, PACKAGE
from ..base.locks import new_lock
from ..config import config
from .cache import cache, digest

_CODE = (".py", ".so", ".pyd", ".dll", ".dylib")
_ENDINGS = (*_CODE, ".slang", ".h")
_lock = new_lock()
_known: dict[str, str] = {}
_stamps: list[bytes] = []
"""What the files were when `_known` was read or made."""


def library_hash() -> str:
    """Content hash of our Slang library."""
    return _hash("library")


def planner_hash() -> str:
    """Content hash of all code of the package, native modules included."""
    return _hash("planner")


def remembered(name: str, make: Callable[[], str]) -> str:
    """What `make` gives, which must depend on nothing but the package's files. Kept on disk beside their hashes."""
    _hash("library")  # reads what is kept
    found = _known.get(name)
    if found is None:
        found = make()
        with _lock:
            _known[name] = found
            if config.cache_enabled and _stamps and _stamps[0] == _stamp():  # nobody wrote to one meanwhile
                cache.write("package", digest(PACKAGE, _stamps[0]), dict(_known))
    return found


def _hash(name: str) -> str:
    found = _known.get(name)
    if found is None:
        with _lock:
            if name not in _known:
                _find(name)
            found = _known[name]
    return found


def _find(name: str) -> None:
    """Takes the hashes from disk, or makes that one (both, where disk keeps them)."""
    if not config.cache_enabled:
        libslang.start_background()
        _known[name] = _hash_library() if name == "library" else _hash_code(_files())
        return
    stamp = _stamp()
    key = digest(PACKAGE, stamp)
    stored = cache.read("package", key)
    if stored is None:
        if config.shipped_cache is None and not os.path.exists(cache.folder / "kernel"):
            libslang.start_background()  # there is no kernel to be found: Slang gets ready while files are hashed
        stored = {"library": _hash_library(), "planner": _hash_code(_files())}
        if stamp == _stamp():  # nobody wrote to one meanwhile
            cache.write("package", key, stored)
    _known.update(stored)
    _stamps[:] = [stamp]


def _stamp() -> bytes:
    """What tells the files apart without reading them; read natively where the platform can, which takes a tenth of the time."""
    stamp = _native._folder_stamp(os.fsencode(PACKAGE), [ending.encode() for ending in _ENDINGS], b"__pycache__")
    return repr(_files()).encode("utf-8", "surrogatepass") if stamp is None else stamp


def _files() -> list[tuple[str, int, int, int, int]]:
    """Every file of code: path, size, times of its content and of its entry, number on the disk."""
    found = []
    todo = [PACKAGE]
    while todo:
        with os.scandir(todo.pop()) as entries:
            for entry in entries:
                if entry.name.endswith(_ENDINGS):
                    info = entry.stat()
                    found.append((entry.path, info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_ino))
                elif "." not in entry.name and entry.name != "__pycache__" and entry.is_dir():
                    todo.append(entry.path)
    return sorted(found)


def _hash_library() -> str:
    parts: list[str | bytes] = []
    for folder, _, names in sorted(os.walk(LIBRARY)):
        for name in sorted(names):
            if name.endswith((".slang", ".h")):
                path = os.path.join(folder, name)
                parts += [os.path.relpath(path, LIBRARY).replace(os.sep, "/"), _read(path)]
    return digest(*parts)


def _hash_code(files: list[tuple[str, int, int, int, int]]) -> str:
    """Contents; of the compiler's own libraries, which are large, size and samples. No times: another machine with the same
    package has the same hash."""
    parts: list[str | bytes] = []
    for path, size, *_ in files:
        if path.endswith(_CODE):
            large = os.path.dirname(path) == os.path.join(PACKAGE, "lib")
            parts += [os.path.relpath(path, PACKAGE), _sampled(path, size) if large else _read(path)]
    return digest(*parts)


def _sampled(path: str, size: int) -> bytes:
    """Size, beginning, end, and blocks at equal distances: two builds of a library differ in more than that."""
    blocks, length = 64, 1 << 14
    parts = [str(size).encode()]
    with open(path, "rb") as file:
        for i in range(blocks + 1):
            file.seek(max(0, size - length) * i // blocks)
            parts.append(file.read(length))
    return b"".join(parts)


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()
