"""What kernels print: the records that `slangpy_print.slang` writes, as text.

A record is its number of words, the hash of its format, and for each argument a tag (kind, columns << 8, rows << 16)
followed by its numbers.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from .cache import cache, digest

# In the order of the kinds in slangpy_print.slang: words, and how a number is read from them.
_KINDS: list[tuple[str, int, Any]] = [
    ("bool", 1, bool),
    ("int", 1, lambda word: word - (1 << 32) if word >> 31 else word),
    ("uint", 1, int),
    ("int64", 2, lambda word: word - (1 << 64) if word >> 63 else word),
    ("uint64", 2, int),
    ("float", 1, lambda word: np.uint32(word).view(np.float32)),
    ("double", 2, lambda word: struct.unpack("<d", struct.pack("<Q", word))[0]),
    ("string", 1, lambda word: _text(word)),
]

_texts: dict[int, str] = {}


def remember(device: Any, program: Any) -> None:
    """Keeps the literals of a program, here and in the disk cache: kernels name them by hash."""
    if not getattr(device.__dict__.get("_state_desc"), "enable_print", False):
        return
    for number, text in program.layout._string_hashes.items():
        if _texts.get(number) != text:
            _texts[number] = text
            cache.write("print", digest(str(number)), text)


def _text(number: int) -> str:
    if number not in _texts:
        text = cache.read("print", digest(str(number)))
        if not isinstance(text, str):
            return f"<string {number:#010x}>"
        _texts[number] = text
    return _texts[number]


class _Number:
    """A number that formats as Python's do, but for bool and the digits of a float32."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __format__(self, spec: str) -> str:
        value = self.value
        if isinstance(value, bool):
            return format("true" if value else "false", spec)
        if type(value) is np.float32:
            return format(float(value), spec) if spec else str(value)
        return format(value, spec)

    __str__ = lambda self: format(self, "")  # noqa: E731


class _Sequence:
    """A vector or matrix: `{1, 2}`; a format applies to each number."""

    def __init__(self, items: list[Any]) -> None:
        self.items = items

    def __format__(self, spec: str) -> str:
        return "{" + ", ".join(format(item, spec) for item in self.items) + "}"

    __str__ = lambda self: format(self, "")  # noqa: E731


def _argument(words: tuple[int, ...], at: int) -> tuple[Any, int]:
    """The argument whose tag stands at `at`, and where the next one begins."""
    tag = words[at]
    _, size, read = _KINDS[tag & 0xFF]
    columns, rows = tag >> 8 & 0xFF, tag >> 16 & 0xFF
    count = max(columns, 1) * max(rows, 1)
    numbers = []
    for i in range(count):
        first = at + 1 + i * size
        numbers.append(_Number(read(words[first] | (words[first + 1] << 32 if size == 2 else 0))))
    end = at + 1 + count * size
    if not columns:
        return numbers[0], end
    if not rows:
        return _Sequence(numbers), end
    return _Sequence([_Sequence(numbers[r * columns : (r + 1) * columns]) for r in range(rows)]), end


def _line(words: tuple[int, ...]) -> str:
    """One record without its length."""
    text = _text(words[0])
    arguments, at = [], 1
    while at < len(words):
        argument, at = _argument(words, at)
        arguments.append(argument)
    try:
        return text.format(*arguments)
    except (ValueError, IndexError, KeyError, AttributeError) as error:
        return f"{text} <- {', '.join(map(str, arguments))} (bad format: {error})"


def decode(data: bytes, lost: int) -> str:
    """The lines of the records in `data`; the last one tells of calls that found no room."""
    words = struct.unpack(f"<{len(data) // 4}I", data)
    lines, at = [], 0
    while at < len(words) and words[at] >= 2 and at + words[at] <= len(words):
        lines.append(_line(words[at + 1 : at + words[at]]))
        at += words[at]
    if lost:
        lines.append(f"... {lost} more calls of print() found no room; flush more often")
    return "".join(line + "\n" for line in lines)


def flush(device: Any) -> str:
    """Waits for the device and returns what its kernels have printed since the last flush, a line for each call."""
    return decode(*device._take_printed())
