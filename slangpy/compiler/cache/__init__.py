"""The disk cache: files named by the hash of all that decides their content.

Entries carry a checksum and are written to a temporary name and renamed, so that a killed process or several at
once leave no half entry. An unusable folder is a warning, never an error; a corrupt entry is a miss; one that somebody
else may have written is refused (trust.py).
"""

from __future__ import annotations

import functools
import hashlib
import logging
import marshal
import os
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from ...base.locks import new_lock
from ...config import config
from .trim import TEMPORARY, note_written, trim
from .trust import Untrusted, check_folder, check_way, open_file

_log = logging.getLogger("slangpy")
_FORMAT = "2"
_USED_EVERY = 600.0
"""Seconds within which an entry that is read again need not be marked as used."""


def digest(*parts: str | bytes) -> str:
    """SHA-256 over length-prefixed parts, as hex."""
    state = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        state.update(len(data).to_bytes(8, "little"))
        state.update(data)
    return state.hexdigest()


class DiskCache:
    """Values of plain data (marshal) and bytes under hashed names, least recently used ones removed first."""

    def __init__(self, folder: Path | None = None, size: int | None = None, shipped: bool = False) -> None:
        self._folder = folder
        self._shipped = shipped
        self._size = size
        self._lock = new_lock()
        self._trusted: dict[str, bool] = {}  # folders that were looked at
        self._complaints: set[str] = set()
        self.hits = 0
        self.misses = 0

    @property
    def folder(self) -> Path:
        return (self._folder or config.cache_dir) / f"v{_FORMAT}"

    @property
    def size(self) -> int:
        """Bytes that entries may take."""
        return config.cache_size if self._size is None else self._size

    @property
    def _trusts_root(self) -> bool:
        return self._shipped or config.cache_shared

    # --- trust
    def _usable(self, kind: str, create: bool) -> str | None:
        """The folder of a kind of entries; None when it is not there or not to be used. Looked at once."""
        folder = str(self.folder)
        own = os.path.join(folder, kind)
        known = self._trusted.get(own)
        if known is None:
            with self._lock:
                known = self._look(folder, own, create)
        return own if known else None

    def _look(self, folder: str, own: str, create: bool) -> bool:
        try:
            if create or folder not in self._trusted:
                check_way(os.path.dirname(folder))
            if create:
                _make(os.path.dirname(folder))
                check_way(os.path.dirname(folder))  # what is there now
            for path in (folder, own):
                if create:
                    _make(path)
                check_folder(path, self._trusts_root)
        except Untrusted as error:
            self._trusted[own] = False
            self._complain(
                "trust",
                f"the disk cache is not used: {error}, and what lies there would be run; set SLANGPY_CACHE_DIR to a "
                "folder of your own, or SLANGPY_CACHE_SHARED=1 for one that an administrator keeps for all",
            )
            return False
        except OSError as error:
            if create:
                self._trusted[own] = False
                self._complain_of_folder(folder, error)
            return False
        self._trusted[own] = self._trusted[folder] = True
        return True

    def _complain_of_folder(self, folder: str, error: OSError) -> None:
        if not config.cache_shared:  # a shared one is there to be read
            self._complain(
                "folder",
                f"the cache folder {folder} cannot be used ({error}); kernels are compiled anew in each process; set "
                "SLANGPY_CACHE_DIR to a writable folder",
            )

    def _complain(self, what: str, text: str) -> None:
        if what not in self._complaints:
            self._complaints.add(what)
            _log.warning("%s", text)

    # --- entries
    def read_bytes(self, kind: str, key: str) -> bytes | None:
        """The entry's bytes, or None when it is missing, its checksum is wrong, or others could have written it."""
        data = self._read(kind, key) if config.cache_enabled else None
        if data is None and config.cache_enabled and config.shipped_cache is not None:
            data = _shipped_cache(config.shipped_cache)._read(kind, key)
        if data is None:
            self.misses += config.cache_enabled
        else:
            self.hits += 1
        return data

    def _read(self, kind: str, key: str) -> bytes | None:
        folder = self._usable(kind, create=False)
        if folder is None:
            return None
        path = os.path.join(folder, key)
        try:
            handle, info = open_file(path, self._trusts_root)
            with open(handle, "rb", buffering=0) as file:
                data = file.read()
        except Untrusted as error:
            self._complain("entry", f"cache entries that somebody else may have written are not used: {error}")
            return None
        except OSError:
            return None
        content = data[32:]
        if len(data) < 32 or _checksum(kind, key, content) != data[:32]:
            _log.warning("cache entry %s is damaged; it is built anew", path)
            return None
        if time.time() - info.st_mtime > _USED_EVERY and not self._shipped:
            with suppress(OSError):  # a read-only cache still serves reads
                os.utime(path)
        return content

    def write_bytes(self, kind: str, key: str, data: bytes) -> None:
        """Stores an entry; a full or read-only disk is a warning."""
        folder = self._usable(kind, create=True) if config.cache_enabled else None
        if folder is None:
            return
        temporary = ""
        try:
            if not os.path.isdir(folder):  # somebody emptied the cache while this process runs
                self._trusted.clear()
                folder = self._usable(kind, create=True)
                if folder is None:
                    return
            handle, temporary = tempfile.mkstemp(dir=folder, prefix=TEMPORARY)
            with os.fdopen(handle, "wb") as file:
                file.write(entry(kind, key, data))
            os.replace(temporary, os.path.join(folder, key))
            temporary = ""
            if note_written(self.folder, len(data) + 32, self.size):
                self.trim()
        except OSError as error:
            self._complain_of_folder(str(self.folder), error)
        finally:
            if temporary:
                with suppress(OSError):
                    os.unlink(temporary)

    def read(self, kind: str, key: str) -> Any:
        """The entry's value, or None."""
        data = self.read_bytes(kind, key)
        if data is None:
            return None
        try:
            return marshal.loads(data)
        except (ValueError, EOFError, TypeError):
            return None

    def write(self, kind: str, key: str, value: Any) -> None:
        self.write_bytes(kind, key, marshal.dumps(value))

    def count(self, kind: str) -> int:
        """Number of entries of one kind."""
        folder = self.folder / kind
        return sum(not name.startswith(".") for _, _, names in os.walk(folder) for name in names)

    def remove(self, kind: str) -> None:
        """Removes all entries of one kind."""
        for folder, _, names in os.walk(self.folder / kind):
            for name in names:
                with suppress(FileNotFoundError):  # another process did
                    os.unlink(os.path.join(folder, name))

    def trim(self) -> None:
        """Removes the least recently used entries until the folder is within `size`."""
        with self._lock:
            trim(self.folder, self.size)


def _make(folder: str) -> None:
    """A folder with those above it that are missing, for the user alone whatever the umask says."""
    above = os.path.dirname(folder)
    if above != folder and not os.path.lexists(above):
        _make(above)
    with suppress(FileExistsError):
        os.mkdir(folder, 0o700)


def entry(kind: str, key: str, data: bytes) -> bytes:
    """The bytes of an entry's file."""
    return _checksum(kind, key, data) + data


def _checksum(kind: str, key: str, data: bytes) -> bytes:
    """Of an entry under its name, so that no entry can take the place of another."""
    state = hashlib.sha256(f"{kind}/{key}\n".encode())
    state.update(data)
    return state.digest()


cache = DiskCache()


@functools.cache
def _shipped_cache(folder: Path) -> DiskCache:
    """What came with a program (`export.py`): read where the user's own has nothing, never written."""
    if not os.path.isdir(folder):
        _log.warning("SLANGPY_SHIPPED_CACHE: there is no folder %s", folder)
    return DiskCache(folder, shipped=True)


def cache_of(device: Any, kind: str = "shader_cache") -> DiskCache:
    """Where a device's plans and kernels lie: in the common folder, or in that of its `shader_cache_path`.

    kind: "module_cache" for what is known of modules, which `module_cache_path` redirects.
    """
    caches = device._state.caches
    found = caches.get(kind)
    if found is None:
        caches[kind] = found = cache_by(device.desc, kind)
    return found


def cache_by(desc: Any, kind: str) -> DiskCache:
    """The same for a device that is yet to be opened, made anew."""
    path = getattr(desc, f"{kind}_path")
    return cache if path is None else DiskCache(config.data_dir / path, desc.shader_cache_size)
