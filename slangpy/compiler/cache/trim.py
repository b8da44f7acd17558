"""Keeps the disk cache within its size, whoever writes: what all processes have written since the last look is counted
in the folder itself, one byte for each block, so that many short processes trim as one long one would."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: two that trim at once find that files have gone, which does no harm
    fcntl = None

_COUNTER = ".written"
_LOCK = ".trim"
_BLOCK = 4096
_DAY = 24 * 3600.0
_ABANDONED = 3600.0
"""Seconds after which a file under a temporary name is taken for one that a killed process left."""
TEMPORARY = ".new-"


def note_written(folder: Path, size: int, limit: int) -> bool:
    """Counts what was written. True when it is time to trim: a sixteenth of the limit was written since, or a day has
    gone, or nobody ever looked."""
    blocks = size // _BLOCK + 1
    handle = os.open(folder / _COUNTER, os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0), 0o600)
    try:
        os.write(handle, b"." * min(blocks, max(limit // _BLOCK, 1)))
        written = os.fstat(handle).st_size * _BLOCK
    finally:
        os.close(handle)
    if written > limit // 16:
        return True
    try:
        return time.time() - os.stat(folder / _LOCK).st_mtime > _DAY
    except FileNotFoundError:
        return True


def trim(folder: Path, limit: int) -> None:
    """Removes the least recently used entries until an eighth of the limit is free, and what killed processes left.

    Entries of other formats beside the folder count as well. Another process that trims now does it for this one.
    """
    with _alone(folder) as alone:
        if not alone:
            return
        with suppress(OSError):
            os.truncate(folder / _COUNTER, 0)
        entries = sorted(_entries(folder))
        total = sum(size for _, size, _ in entries)
        for _, size, path in entries:
            if total <= limit - limit // 8:
                break
            with suppress(OSError):
                os.unlink(path)
                total -= size


def _entries(folder: Path) -> Iterator[tuple[float, int, str]]:
    """When each entry was used last, and the room it takes. Removes temporary files that nobody writes any more."""
    now = time.time()
    for sibling in folder.parent.glob("v[0-9]*"):
        for parent, _, names in os.walk(sibling):
            for name in names:
                path = os.path.join(parent, name)
                try:
                    info = os.lstat(path)
                    if name.startswith(TEMPORARY) and now - info.st_mtime > _ABANDONED:
                        os.unlink(path)
                    elif name not in (_COUNTER, _LOCK):
                        yield info.st_mtime, (info.st_size // _BLOCK + 1) * _BLOCK, path
                except OSError:
                    continue


@contextmanager
def _alone(folder: Path) -> Iterator[bool]:
    """True for the one process that holds the lock, which a killed process lets go of. Notes when it was."""
    handle = os.open(folder / _LOCK, os.O_WRONLY | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
    try:
        try:
            if fcntl is not None:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
            return
        os.utime(folder / _LOCK)
        yield True
    finally:
        os.close(handle)
