"""CPU kernels with what they use of the text in front of them, which compilers read longer than most kernels.

Slang's C++ prelude has matrices, textures and operators of vectors of all types, and takes in headers of the C++ library.
What a kernel does not name is left out here. That decides no result: parts are left out with all that could be meant in
their place, and what does not compile is compiled again with the whole text.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from ...base.folders import LIBRARY_PATH
from .host import KERNEL
from .lanes import lanes_inputs, with_lanes

_END = b"\nusing namespace SLANG_PRELUDE_NAMESPACE;\n#endif\n"
"""The last lines of what Slang writes before a kernel."""

_MIXED = (
    b"\ntemplate<typename T, int ROWS, int COLS> struct Matrix;\n",
    b"\ntemplate<typename T, int ROWS, int COLS>\nstruct Matrix\n{",
)
_MATRICES = (_MIXED[1][1:], b"\ntemplate<typename TResult, typename TInput>\nTResult slang_bit_cast")
_TEXTURES = (b"\nstruct ISamplerState;\n", b"\n/* Varying input for Compute */\n")
"""What stands between two texts: operators of a vector or matrix and a number (`prelude.py` adds them), all that makes
matrices, and textures."""
_FIRST_PART = b"\n#define SLANG_INT_VECTOR_OPS(T)"
_OPERATORS = re.compile(
    rb"^SLANG_(?:(?:INT|FLOAT)_(?:VECTOR|MATRIX)_OPS|(?:VECTOR|MATRIX)_INT_NEG_OP|FLOAT_(?:VECTOR|MATRIX)_MOD)\((\w+)\)\n",
    re.MULTILINE,
)
_ELEMENTS = re.compile(rb"\b(?:(?:Vector|Matrix)<(\w+?)(?:_t)?,|(float|int|uint)[234]\b)")
_SAME = {b"int32": b"int", b"uint32": b"uint"}
_SYSTEM = re.compile(rb"^#include <(?:math|assert|stdlib|string|stddef|stdint)\.h>\n", re.MULTILINE)

_OVERLOADED = re.compile(
    rb"#\s*include\b|\bstd::|\b(?:acosh?|asinh?|atanh?|atan2|ceil|cosh?|exp2?|fabs|floor|fma|fmax|fmin|fmod|frexp|log|log2|"
    rb"log10|modf|pow|remainder|rint|round|sinh?|sqrt|tanh?|trunc)\s*\("
)
"""In the kernel's own text: what means something else, or nothing, without the headers of the C++ library. Such text comes
from users (`__intrinsic_asm`)."""


@cache
def _headers() -> bytes:
    return (LIBRARY_PATH / "headers_cpp.h").read_bytes().replace(b"#pragma once\n", b"", 1)


@cache
def short_inputs() -> bytes:
    """All that decides what `short_text` makes of kernels; part of what names them in the disk cache."""
    return _headers() + Path(__file__).read_bytes() + lanes_inputs()


def compile_kernel(device: Any, text: bytes, entry_point: str, lanes: bool = False, **options: Any) -> bytes:
    """`device.compile` of C++ text for the CPU device, shortened where that can be, and for lanes where that is asked for."""
    short = short_text((with_lanes(text) if lanes else None) or text)
    if short is None:
        return device.compile(text, entry_point, **options)
    return device.compile(short, entry_point, whole_source=text, **options)


def short_text(text: bytes) -> bytes | None:
    """The text with what its kernel uses; None where that cannot be told."""
    split = text.find(_END) + len(_END)
    head, body = text[:split], text[split:]
    if split <= len(_END) or _OVERLOADED.search(body, max(body.find(KERNEL), 0)):
        return None
    elements = frozenset(_SAME.get(a or b, a or b) for a, b in _ELEMENTS.findall(body))
    has_textures = b"Texture" in body or b"Sampler" in body
    return _short_head(head, has_textures, b"Matrix" in body, elements) + body


@lru_cache(maxsize=8)
def _short_head(head: bytes, has_textures: bool, has_matrices: bool, elements: frozenset[bytes]) -> bytes:
    """What stands in front of a kernel, which is nearly always the same; elements: of the vectors and matrices."""
    if not has_textures:
        head = _without(head, *_TEXTURES)
    if elements:
        elements |= {b"bool"}  # of comparisons
    else:
        head = _without(head, *_MIXED)
    if not has_matrices:
        head = _without(head, *_MATRICES)
    head = _OPERATORS.sub(lambda line: line[0] if line[1].removesuffix(b"_t") in elements else b"", head)
    return _headers() + _SYSTEM.sub(b"", head)


def beginning(text: bytes) -> bytes | None:
    """What `short_text` of every kernel with this prelude begins with, up to the first part that kernels may leave out."""
    short = short_text(text)
    end = -1 if short is None else short.find(_FIRST_PART)
    return None if short is None or end < 0 else short[: end + 1]


def _without(text: bytes, first: bytes, last: bytes) -> bytes:
    begin = text.find(first)
    end = text.find(last, begin + len(first))
    return text[:begin] + text[end:] if begin >= 0 and end >= 0 else text


__all__ = ["beginning", "compile_kernel", "short_inputs", "short_text"]
