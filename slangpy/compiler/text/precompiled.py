"""The long text in front of every CPU kernel, read by GCC once instead of by each kernel.

Slang's C++ prelude takes GCC longer than most kernels behind it. From the third kernel of a process on, the compiler
keeps what it has read (a precompiled header, about 17 MB), in the disk cache for other processes, too.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import threading
from dataclasses import dataclass, field
from typing import Any

from ...errors import SlangCompileError
from ..cache import cache_of, digest
from ..cache.trust import Untrusted, check_way

_END = b"\nusing namespace SLANG_PRELUDE_NAMESPACE;\n#endif\n"
"""The last lines of what Slang writes before a kernel."""
_KERNELS_BEFORE = 2
"""Kernels that a process compiles before it makes a header that no cache holds: making one takes as long as one."""


@dataclass
class _Headers:
    """Of this process. `ready`: path of the text beside its header by key, None where there can be none."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    seen: dict[str, int] = field(default_factory=dict)
    ready: dict[str, str | None] = field(default_factory=dict)
    folder: str = ""
    process: int = 0

    def own_folder(self) -> str:
        """A folder of this process alone; a forked child makes its own."""
        if self.process != os.getpid():
            base = tempfile.gettempdir()
            check_way(base)
            self.folder, self.process = tempfile.mkdtemp(prefix="slangpy-headers-", dir=base), os.getpid()
            self.ready.clear()
            atexit.register(_remove, self.folder, self.process)
        return self.folder


def _remove(folder: str, process: int) -> None:
    if process == os.getpid():
        shutil.rmtree(folder, ignore_errors=True)


_headers = _Headers()


def compile_kernel(device: Any, text: bytes, entry_point: str, **options: Any) -> bytes:
    """`device.compile` of C++ text for the CPU device, with the header read before if there is one.

    Code that does not compile is compiled again as a whole, for an error with the whole source.
    """
    split = text.find(_END) + len(_END)
    if split > len(_END) and _is_gcc(device):
        include = _header(device, text[:split], options)
        if include:
            arguments = [*options.get("downstream_args", ()), "-include", include]
            try:
                return device.compile(text[split:], entry_point, **{**options, "downstream_args": arguments})
            except SlangCompileError:
                return device.compile(text, entry_point, **options)
    return device.compile(text, entry_point, **options)


def _is_gcc(device: Any) -> bool:
    lines = device.compiler_fingerprint.splitlines()
    name = os.path.basename(lines[1].split(" ")[0]) if len(lines) > 1 else ""
    return "g++" in name and "clang" not in name


def _header(device: Any, text: bytes, options: dict[str, Any]) -> str | None:
    """Path to include for a text; None before there is one."""
    told = {name: value for name, value in options.items() if name not in ("label", "group_size")}
    key = digest(text, device.compiler_fingerprint, repr(sorted(told.items())))
    with _headers.lock:
        try:
            folder = _headers.own_folder()
            if key not in _headers.ready:
                code = _code(device, key, text, told)
                if code is None:
                    return None
                _headers.ready[key] = _store(folder, key, text, code)
        except (OSError, Untrusted, SlangCompileError):  # no place for it, or a compiler that makes none
            _headers.ready[key] = None
        return _headers.ready[key]


def _code(device: Any, key: str, text: bytes, options: dict[str, Any]) -> bytes | None:
    """The header from the cache, or a new one when enough kernels have asked."""
    cache = cache_of(device)
    code = cache.read_bytes("prelude", key)
    if code is not None:
        return code
    _headers.seen[key] = _headers.seen.get(key, 0) + 1
    if _headers.seen[key] <= _KERNELS_BEFORE:
        return None
    arguments = [*options.get("downstream_args", ()), "-x", "c++-header"]
    code = device.compile(text, "", **{**options, "label": "Slang's prelude", "downstream_args": arguments})
    cache.write_bytes("prelude", key, code)
    return code


def _store(folder: str, key: str, text: bytes, code: bytes) -> str:
    path = os.path.join(folder, f"{key[:16]}.h")
    for name, data in ((path, text), (path + ".gch", code)):
        with open(name, "wb") as file:
            file.write(data)
    return path
