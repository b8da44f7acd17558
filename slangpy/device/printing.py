"""What kernels print: the records that `slangpy_print.slang` writes, as text.

A record is its number of words, the hash of its format, and for each argument a tag (kind, columns << 8, rows << 16)
followed by its numbers.
"""

from __future__ import annotations

import re
import struct
import sys
from typing import Any

import numpy as np

from ..compiler.text.literals import literal

# In the order of the kinds in slangpy_print.slang: words, and how a number is read from them.
_KINDS: list[tuple[str, int, Any]] = [
    ("bool", 1, bool),
    ("int", 1, lambda word: word - (1 << 32) if word >> 31 else word),
    ("uint", 1, int),
    ("int64", 2, lambda word: word - (1 << 64) if word >> 63 else word),
    ("uint64", 2, int),
    ("float", 1, lambda word: np.uint32(word).view(np.float32)),
    ("double", 2, lambda word: struct.unpack("<d", struct.pack("<Q", word))[0]),
    ("string", 1, literal),
]
_C_FORMAT = 8
"""Stands in front of the arguments of printf()."""
_C_SPECIFIER = re.compile(r"%([-+ #0]*\d*(?:\.\d+)?)(?:hh|h|ll|l|j|z|t|L)?([a-zA-Z%])")


_PLAIN_FORMAT = re.compile(r"(?:(?P<fill>.)?(?P<align>[<>^=]))?(?P<sign>[+ -])?(?P<zero>0)?(?P<width>\d*)", re.DOTALL)
"""A format without precision or type."""


_LARGEST_FLOAT, _LARGEST = 7, 16
"""Digits in front of the point from which C++ takes an exponent: for one float, and for the numbers of vectors and doubles."""


def _shortest(value: Any, largest: int) -> str:
    """The fewest digits that name the number, as C++'s `{}` prints it: without Python's ".0"."""
    text = np.format_float_scientific(value, trim="-", exp_digits=2)
    digits, mark, exponent = text.partition("e")
    if not mark:
        return digits  # nan, inf
    return np.format_float_positional(value, trim="-") if -4 <= int(exponent) < largest else text


def _format_float(value: Any, spec: str, largest: int) -> str:
    plain = _PLAIN_FORMAT.fullmatch(spec)
    if plain is None:
        return format(float(value), spec)
    text = _shortest(value, largest)
    if plain["sign"] in ("+", " ") and not text.startswith("-"):
        text = plain["sign"] + text
    fill = plain["fill"] or ("0" if plain["zero"] and not plain["align"] else " ")
    align = plain["align"] or ("=" if plain["zero"] else ">")
    width = int(plain["width"] or 0)
    if align == "=":
        sign = text[: len(text) - len(text.lstrip("+- "))]
        return sign + text[len(sign) :].rjust(width - len(sign), fill)
    return format(text, f"{fill}{align}{width}") if width else text


class _Number:
    """A number that formats as Python's do, but for bool and for the digits of floats."""

    def __init__(self, value: Any, is_part: bool) -> None:
        self.value = value
        self._largest = _LARGEST_FLOAT if isinstance(value, np.floating) and not is_part else _LARGEST

    def __format__(self, spec: str) -> str:
        value = self.value
        if isinstance(value, bool):
            return format("true" if value else "false", spec)
        if isinstance(value, (float, np.floating)):
            return _format_float(value, spec, self._largest)
        return format(value, spec)

    __str__ = lambda self: format(self, "")  # noqa: E731


class _Sequence:
    """A vector or matrix: `{1, 2}`; a format applies to each number."""

    def __init__(self, items: list[Any]) -> None:
        self.items = items

    def numbers(self) -> list[Any]:
        """All of them, row by row."""
        return [n for item in self.items for n in (item.numbers() if isinstance(item, _Sequence) else [item.value])]

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
        numbers.append(_Number(read(words[first] | (words[first + 1] << 32 if size == 2 else 0)), columns > 0))
    end = at + 1 + count * size
    if not columns:
        return numbers[0], end
    if not rows:
        return _Sequence(numbers), end
    return _Sequence([_Sequence(numbers[r * columns : (r + 1) * columns]) for r in range(rows)]), end


def _line(words: tuple[int, ...]) -> str:
    """The text of one record, given without its length."""
    text = literal(words[0])
    is_c = len(words) > 1 and words[1] == _C_FORMAT
    arguments, at = [], 1 + is_c
    while at < len(words):
        argument, at = _argument(words, at)
        arguments.append(argument)
    if is_c:
        return _c_line(text, arguments)
    try:
        return text.format(*arguments) + "\n"
    except (ValueError, IndexError, KeyError, AttributeError) as error:
        return f"{text} <- {', '.join(map(str, arguments))} (bad format: {error})\n"


def _c_line(text: str, arguments: list[Any]) -> str:
    """What C's printf makes of it. Vectors and matrices, which C has not, go where `%s` stands, or number by number."""
    python = _C_SPECIFIER.sub(lambda m: "%" + m[1] + {"u": "d", "p": "x"}.get(m[2], m[2]), text)
    specifiers = [m[2] for m in _C_SPECIFIER.finditer(text) if m[2] != "%"]
    values: list[Any] = []
    for argument in arguments:
        if isinstance(argument, _Sequence) and specifiers[len(values) : len(values) + 1] != ["s"]:
            values += argument.numbers()
        else:
            values.append(argument.value if isinstance(argument, _Number) else argument)
    try:
        return python % tuple(values)
    except (ValueError, TypeError) as error:
        return f"{text} <- {', '.join(map(str, arguments))} (bad format: {error})\n"


def decode(data: bytes, lost: int) -> str:
    """The lines of the records in `data`; the last one tells of calls that found no room."""
    words = struct.unpack(f"<{len(data) // 4}I", data)
    lines, at = [], 0
    while at < len(words) and words[at] >= 2 and at + words[at] <= len(words):
        lines.append(_line(words[at + 1 : at + words[at]]))
        at += words[at]
    if lost:
        lines.append(f"... {lost} more calls of print() found no room; flush more often\n")
    return "".join(lines)


def fetch(device: Any) -> str:
    """Waits for the device; what its kernels have printed since the last fetch, a line for each call."""
    return decode(*device._take_printed())


def echo(device: Any) -> None:
    """Puts what kernels have printed on stdout. It stays there to be asked for by flush_print_to_string()."""
    text = fetch(device)
    if text:
        device._state.printed += text
        print(text, end="", file=sys.stdout, flush=True)


def flush(device: Any) -> str:
    """What kernels have printed since the last flush."""
    text = device._state.printed + fetch(device)
    device._state.printed = ""
    return text
