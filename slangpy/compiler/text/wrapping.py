"""Sums, differences, products, shifts, negations and operations on bits in C++ and CUDA code of kernels, as integers of Slang
have them: of the type of their operands, and wrapping around (slangpy/slang/wrapping.h).

`a + b` is written as `a + _spy_wrap + b`: the same order of evaluation, and operators that can be defined. They find the types,
which the text does not say. What has one operand becomes a call.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from ...base.folders import LIBRARY_PATH
from .divisions import NOT_CODE

_NARROW = re.compile(rb"\b(?:u?int(?:8|16)_t|u?char[1-4]?|u?short[1-4]?)\b")
_ROOT = rb"(?<=[\w)\]}])(?<!return)"
_TYPES = b"float double int uint short long unsigned char bool half void auto const".split()
_NO_TYPE = b"".join(rb"(?<!\b%s )" % name for name in _TYPES)
"""Before a `*` or `&` that stands for a pointer or reference, in text that users wrote. Names of Slang end in a number."""
_OPERATION = re.compile(
    NOT_CODE
    + rb"|^[^\s#/][^\n]*"  # heads of functions
    + rb"|^[ \t]+(?!return\b)[\w:<>, ]+\*[* ]*\w+(?= *[=;\[])"  # declares a pointer
    + rb"|\*\((?:\w|\.|->)+ \+ "  # an element that a pointer leads to: NVRTC forgets how structs are aligned that operators point to
    + rb"|" + _ROOT + rb" (?P<binary>[-+|^]|<<|>>|" + _NO_TYPE + rb"(?<!_t )[*&]) (?=[\w(*&~!-])"
    + rb"|(?P<unary>[-~]) ?(?=[A-Za-z_(*&~-])",
    re.MULTILINE | re.DOTALL,
)  # fmt: skip
_PRIMARY = re.compile(rb"(?:[-~!*&] ?)*(?:[\w:]+(?:<[^;()]*?>)?(?: (?=[({]))?)?")
_MEMBER = re.compile(rb"(?:\.|->)\w+")
_CALLS = {b"-": b"_spy_minus(", b"~": b"_spy_inverse("}


@cache
def wrapping_header() -> bytes:
    """What stands in front of code with wrapping operations."""
    return (LIBRARY_PATH / "wrapping.h").read_bytes().replace(b"#pragma once\n", b"", 1)


@cache
def wrapping_inputs() -> bytes:
    """All that decides what is made of operations; part of what names kernels in the disk cache."""
    return wrapping_header() + Path(__file__).read_bytes()


def names_narrow(code: bytes) -> bool:
    """Whether code of a kernel has integers of 8 or 16 bits: all that C++ computes otherwise, with -fwrapv."""
    return _NARROW.search(code) is not None


def wrapping(code: bytes) -> bytes:
    """Code of functions that Slang emitted, whose integers wrap around."""
    edits: list[tuple[int, int, bytes]] = []
    for found in _OPERATION.finditer(code):
        if operator := found["binary"]:
            edits.append((found.start(), found.end(), b" %s _spy_wrap %s " % (operator, operator)))
        elif operator := found["unary"]:
            edits.append((found.start(), found.end(), _CALLS[operator]))
            end = _operand_end(code, found.end())
            edits.append((end, end, b")"))
    pieces, done = [], 0
    for begin, end, text in sorted(edits, key=lambda edit: edit[:2]):
        pieces += code[done:begin], text
        done = end
    return b"".join([*pieces, code[done:]])


def _operand_end(code: bytes, at: int) -> int:
    """Where the operand of a prefix operator ends."""
    primary = _PRIMARY.match(code, at)
    assert primary is not None
    end = primary.end()
    if code[end : end + 1] == b"(" and not primary[0].rstrip(b"-~!*& "):
        end = _closing(code, end)
        if code[end - 2 : end - 1] in (b" ", b"*"):  # `(Vector<int32_t, 3> )x`: a cast
            return _operand_end(code, end)
    while True:
        if code[end : end + 1] in (b"(", b"[", b"{"):
            end = _closing(code, end)
        elif member := _MEMBER.match(code, end):
            end = member.end()
        else:
            return end


_BRACKETS = re.compile(rb"[()\[\]{}]")


def _closing(code: bytes, at: int) -> int:
    """The place after the bracket that closes the one at `at`."""
    depth = 0
    for bracket in _BRACKETS.finditer(code, at):
        depth += 1 if bracket[0] in (b"(", b"[", b"{") else -1
        if not depth:
            return bracket.end()
    return len(code)


__all__ = ["names_narrow", "wrapping", "wrapping_header", "wrapping_inputs"]
