"""A stopwatch, a hash, and options that calls do not read."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass, field
from typing import Any

__all__ = ["NativeCallRuntimeOptions", "SHA1", "Timer"]


class Timer:
    """Time since it was made or reset, by a clock that only goes forward."""

    def __init__(self) -> None:
        self._start = time.perf_counter_ns()

    def reset(self) -> None:
        """Starts again, from now."""
        self._start = time.perf_counter_ns()

    def elapsed_ns(self) -> int:
        """Nanoseconds since the start."""
        return time.perf_counter_ns() - self._start

    def elapsed_us(self) -> float:
        """Microseconds since the start."""
        return self.elapsed_ns() * 1e-3

    def elapsed_ms(self) -> float:
        """Milliseconds since the start."""
        return self.elapsed_ns() * 1e-6

    def elapsed_s(self) -> float:
        """Seconds since the start."""
        return self.elapsed_ns() * 1e-9

    @staticmethod
    def now() -> int:
        """Nanoseconds of the clock, for the differences below."""
        return time.perf_counter_ns()

    @staticmethod
    def delta_ns(start: int, end: int) -> int:
        """Nanoseconds from `start` to `end`, two values of `now()`."""
        return end - start

    @staticmethod
    def delta_us(start: int, end: int) -> float:
        """Microseconds from `start` to `end`, two values of `now()`."""
        return (end - start) * 1e-3

    @staticmethod
    def delta_ms(start: int, end: int) -> float:
        """Milliseconds from `start` to `end`, two values of `now()`."""
        return (end - start) * 1e-6

    @staticmethod
    def delta_s(start: int, end: int) -> float:
        """Seconds from `start` to `end`, two values of `now()`."""
        return (end - start) * 1e-9

    def __repr__(self) -> str:
        return f"Timer(\n  elapsed_s = {self.elapsed_s():.6g},\n)"


class SHA1:
    """SHA-1 of bytes and text (as UTF-8): a name for contents, not a protection."""

    def __init__(self, data: bytes | str = b"") -> None:
        self._state = hashlib.sha1(usedforsecurity=False)
        self.update(data)

    def update(self, data: bytes | str) -> SHA1:
        """Adds more; returns itself."""
        if not isinstance(data, (bytes, bytearray, memoryview, str)):
            raise TypeError(f"SHA1: expected bytes or str, got {type(data).__name__}")
        self._state.update(data.encode() if isinstance(data, str) else data)
        return self

    def digest(self) -> bytes:
        """20 bytes."""
        return self._state.digest()

    def hex_digest(self) -> str:
        """The hash of all that was given, as 40 hexadecimal digits."""
        return self._state.hexdigest()

    def __repr__(self) -> str:
        return f"SHA1(\n  hex_digest = {self.hex_digest()!r},\n)"


@dataclass
class NativeCallRuntimeOptions:
    """What `debug_build_call_data(...).call(options, ...)` takes first. Calls do not read it: what a call runs with is
    stated by modifiers of the function (`set`, `cuda_stream`), and this holds the same for programs that look."""

    uniforms: list[Any] = field(default_factory=list)
    this: Any = None
    cuda_stream: Any = None
