"""What our Slang library needs in front of the text that Slang generates for a target."""

from __future__ import annotations

from functools import cache
from pathlib import Path

_FILES = {"cpp": "prelude_cpp.h", "cuda": "prelude_cuda.h"}


@cache
def _text(target: str) -> bytes:
    path = Path(__file__).resolve().parent / "slang" / _FILES[target]
    return path.read_bytes().replace(b"#pragma once", b"", 1) + b"\n"


def with_prelude(code: bytes, target: str) -> bytes:
    """Code of a compile target ("cpp", "cuda", "spirv", ...) as its downstream compiler takes it."""
    return _text(target) + code if target in _FILES else code
