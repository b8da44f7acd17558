"""A copy of the disk cache that can be shipped, with a package or in the image of a container."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from . import DiskCache, entry

_LOCAL = ("manifest", "package", "kernels", "died", "program")
"""Kinds that say where files lie on this machine, or are as quickly made anew."""


def export(source: DiskCache, folder: Path) -> tuple[int, int]:
    """Copies what does not depend on where it lies, whole entries only; others may read, and only the owner may write.
    Returns the number of entries and their bytes."""
    count = size = 0
    target = folder / source.folder.name
    for kind in sorted(os.listdir(source.folder)) if source.folder.is_dir() else ():
        if kind.startswith(".") or kind in _LOCAL or not (source.folder / kind).is_dir():
            continue
        _make(target / kind)
        for key in sorted(os.listdir(source.folder / kind)):
            data = None if key.startswith(".") else source.read_bytes(kind, key)
            if data is not None:
                size += _write(target / kind / key, entry(kind, key, data))
                count += 1
    return count, size


def _make(folder: Path) -> None:
    """A folder with those above that are missing, with a mode that later checks of the cache accept."""
    if not folder.is_dir():
        if folder.parent != folder:
            _make(folder.parent)
        with suppress(FileExistsError):
            folder.mkdir()
        folder.chmod(0o755)


def _write(path: Path, data: bytes) -> int:
    temporary = path.with_name(f".new-{os.getpid()}-{path.name}")
    try:
        temporary.write_bytes(data)
        temporary.chmod(0o644)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    return len(data)
