"""The disk cache: files named by the hash of all that decides their content.

Entries carry a checksum and are written to a temporary name and renamed, so that a killed process or several at
once leave no half entry. An unusable folder is a warning, never an error; a corrupt entry is a miss.
"""

from __future__ import annotations

import hashlib
import logging
import marshal
import os
import tempfile
import threading
from pathlib import Path
from typing import Any

from .config import config

_log = logging.getLogger("slangpy")
_FORMAT = "1"


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

    def __init__(self, folder: Path | None = None, size: int | None = None) -> None:
        self._folder = folder
        self._size = size
        self._usable: bool | None = None
        self._lock = threading.Lock()
        self._written = 0
        self.hits = 0
        self.misses = 0

    @property
    def folder(self) -> Path:
        return (self._folder or config.cache_dir) / f"v{_FORMAT}"

    @property
    def size(self) -> int:
        """Bytes that entries may take."""
        return config.cache_size if self._size is None else self._size

    def _ready(self) -> bool:
        if not config.cache_enabled:
            return False
        if self._usable is None:
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
                with tempfile.TemporaryFile(dir=self.folder):
                    self._usable = True
            except OSError as error:
                self._usable = False
                _log.warning(
                    "the cache folder %s cannot be used (%s); kernels are compiled anew in each process; "
                    "set SLANGPY_CACHE_DIR to a writable folder",
                    self.folder,
                    error,
                )
        return self._usable

    def _path(self, kind: str, key: str) -> Path:
        return self.folder / kind / key[:2] / key

    def read_bytes(self, kind: str, key: str) -> bytes | None:
        """The entry's bytes, or None when it is missing or its checksum is wrong."""
        if not config.cache_enabled:
            return None
        path = self._path(kind, key)
        try:
            data = path.read_bytes()
        except OSError:
            self.misses += 1
            return None
        if len(data) < 32 or hashlib.sha256(data[32:]).digest() != data[:32]:
            _log.warning("cache entry %s is damaged; it is built anew", path)
            self.misses += 1
            return None
        self.hits += 1
        try:
            os.utime(path)
        except OSError:
            self._usable = False  # a read-only cache still serves reads
        return data[32:]

    def write_bytes(self, kind: str, key: str, data: bytes) -> None:
        """Stores an entry; a full or read-only disk is a warning."""
        if not self._ready():
            return
        path = self._path(kind, key)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".new-")
            with os.fdopen(handle, "wb") as file:
                file.write(hashlib.sha256(data).digest())
                file.write(data)
            os.replace(temporary, path)
        except OSError as error:
            _log.warning("cache entry %s could not be written: %s", path, error)
            return
        self._written += len(data)
        if self._written > self.size // 8:
            self._written = 0
            self.trim()

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

    def trim(self) -> None:
        """Removes the least recently used entries until the folder is within `size`."""
        with self._lock:
            entries: list[tuple[float, int, Path]] = []
            for path in self.folder.rglob("*"):
                try:
                    if path.is_file():
                        info = path.stat()
                        entries.append((info.st_mtime, info.st_size, path))
                except OSError:
                    continue
            total = sum(size for _, size, _ in entries)
            for _, size, path in sorted(entries):
                if total <= self.size:
                    break
                try:
                    path.unlink()
                    total -= size
                except OSError:
                    continue


cache = DiskCache()


def cache_of(device: Any, kind: str = "shader_cache") -> DiskCache:
    """Where a device's plans and kernels lie: in the common folder, or in that of its `shader_cache_path`.

    kind: "module_cache" for what is known of modules, which `module_cache_path` redirects.
    """
    state = device.__dict__
    name = f"_state_{kind}"
    found = state.get(name)
    if found is None:
        desc = state.get("_state_desc")
        path = getattr(desc, f"{kind}_path", None)
        found = cache if path is None else DiskCache(config.data_dir / path, desc.shader_cache_size)
        state[name] = found
    return found
