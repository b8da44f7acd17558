"""Divisions in C++ code of kernels, which find out whether they have a result (slangpy/slang/divisions_cpp.h).

C++ lets nobody define the division of two integers. So `a / b` is written as `a / _spy_by / b`: the same order of evaluation,
and operators that can be defined.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from ...base.folders import LIBRARY_PATH
from .host import END_OF_PRELUDE

_INTEGER_BLOCK = re.compile(rb"#define SLANG_INT_(?:VECTOR|MATRIX)_OPS\(T\)(?:.*\\\n)+")
_OPERATOR = re.compile(rb"SLANG_(VECTOR|MATRIX)_BINARY_OP\(T, ([/%])\)")
NOT_CODE = rb"""//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)+'|^[ \t]*\#(?:[^\n]*\\\n)*[^\n]*"""
_WRITTEN_NUMBER = rb"\s*(?:u?int\()?(?:[1-9]\d*(?![\d.e])|\d+\.)"
_MAYBE = re.compile(rb"(?<![/*])[/%](?![=/*]|" + _WRITTEN_NUMBER + rb")")
_DIVISION = re.compile(NOT_CODE + rb"|([/%])(?!=|" + _WRITTEN_NUMBER + rb")", re.MULTILINE | re.DOTALL)


@cache
def division_header() -> bytes:
    """What stands in front of code with checked divisions."""
    return (LIBRARY_PATH / "divisions_cpp.h").read_bytes().replace(b"#pragma once\n", b"", 1)


@cache
def division_inputs() -> bytes:
    """All that decides what is made of divisions; part of what names kernels in the disk cache."""
    return division_header() + Path(__file__).read_bytes()


def checked_divisions(code: bytes) -> bytes:
    """C++ code with checks of all divisions but those by a number that stands there."""
    if not _MAYBE.search(code):
        return code
    return _DIVISION.sub(lambda m: b"%s _spy_by %s" % (m[1], m[1]) if m[1] else m[0], code)


def with_checked_divisions(code: bytes) -> bytes:
    """Code that Slang emitted for C++, with its prelude."""
    at = code.rfind(END_OF_PRELUDE)
    head, body = code[: max(at, 0)], code[max(at, 0) :]
    checked = checked_divisions(body)
    if checked == body:
        return code
    first = _INTEGER_BLOCK.search(head)
    start = first.start() if first else 0  # what stands before is the same for all kernels
    return head[:start] + division_header() + _INTEGER_BLOCK.sub(_block, head[start:]) + checked


def _block(match: re.Match[bytes]) -> bytes:
    return _OPERATOR.sub(rb"SPY_\1_DIVISION(T, \2)", match[0])
