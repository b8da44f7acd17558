"""The instructions of SPIR-V modules."""

from __future__ import annotations

from collections.abc import Iterator


def instructions(code: bytes) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Operation and operands of each, in their order."""
    words = memoryview(code[: len(code) // 4 * 4]).cast("I")
    at = 5  # after the header
    while at < len(words):
        count = max(words[at] >> 16, 1)
        yield words[at] & 0xFFFF, tuple(words[at + 1 : at + count])
        at += count


__all__ = ["instructions"]
