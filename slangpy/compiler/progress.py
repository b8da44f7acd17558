"""Waiting is not silent: what takes over a second to compile says so on stderr."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from .._native import DeviceType
from ..config import config

_FIRST, _STEP, _LONG = 1.0, 0.25, 5.0
"""Seconds before the line appears, between its updates where lines can be written anew, and before it says why."""
_state = threading.local()


class compiling:
    """Around work of the compiler; `what` is shown, and what `why` gives where it takes long. Of nested ones the outermost speaks."""

    def __init__(self, what: str, why: Callable[[], str] = str) -> None:
        self._what, self._why = what, why
        self._line: _Line | None = None

    def __enter__(self) -> None:
        if config.progress and not getattr(_state, "busy", False) and sys.stderr is not None:
            _state.busy = True
            self._line = _Line(self._what, self._why)

    def __exit__(self, *error: Any) -> None:
        if self._line is not None:
            _state.busy = False
            self._line.end("" if error[0] is None else ", failed")


class _Line:
    """One line of stderr, written by a thread of its own while another compiles."""

    def __init__(self, what: str, why: Callable[[], str]) -> None:
        self._why: Callable[[], str] | None = why
        self._text, self._stream, self._start = f"slangpy: {what} ...", sys.stderr, time.monotonic()
        self._done = threading.Event()
        self._shown = False
        self._thread = threading.Thread(target=self._run, name="slangpy-progress", daemon=True)
        self._thread.start()

    def _seconds(self) -> str:
        return f"{time.monotonic() - self._start:.1f} s"

    def _run(self) -> None:
        if self._done.wait(_FIRST):
            return
        self._shown = True
        rewrites = _can_rewrite(self._stream)
        self._write(self._text)
        while (rewrites or self._why) and not self._done.wait(_STEP):
            if self._why and time.monotonic() - self._start > _LONG:
                why = self._why()
                added, self._why = f" ({why})" if why else "", None
                self._text += added
                self._write("" if rewrites else added)
            if rewrites:
                self._write(f"\r{self._text} {self._seconds()}")

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):  # closed meanwhile: nobody reads it
            self._done.set()

    def end(self, how: str) -> None:
        self._done.set()
        if not self._shown:
            return  # the thread ends without a word
        self._thread.join()
        start = f"\r{self._text}" if _can_rewrite(self._stream) else ""
        self._write(f"{start} {self._seconds()}{how}\n")


def why_slow(device: Any) -> str:
    """What `compiling` says of a device whose compiler takes minutes once."""
    if device.info.type is DeviceType.cpu and "ziglang" in device.compiler_fingerprint:
        return "the first use of ziglang builds its C++ library, once, which takes minutes"
    return ""


def _can_rewrite(stream: Any) -> bool:
    """Terminals and notebooks."""
    if type(stream).__module__.startswith("ipykernel"):
        return True
    try:
        return bool(stream.isatty())
    except (AttributeError, ValueError):
        return False


class progress:
    """Whether compiling that takes over a second says so on stderr: `progress(False)` from now on, `with progress(False):`
    for a while. At first on, unless the environment has SLANGPY_PROGRESS=0."""

    def __init__(self, enabled: bool) -> None:
        self._before = config.progress
        config.progress = bool(enabled)

    def __enter__(self) -> None: ...

    def __exit__(self, *error: Any) -> None:
        config.progress = self._before


__all__ = ["compiling", "progress"]
