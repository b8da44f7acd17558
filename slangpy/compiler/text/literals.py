"""Literals of programs by their hash: kernels that print name them so."""

from __future__ import annotations

from typing import Any

from ..cache import cache, digest

_texts: dict[int, str] = {}


def remember(device: Any, program: Any) -> None:
    """Keeps the literals of a program, here and in the disk cache, where its device prints."""
    if not device.desc.enable_print:
        return
    for number, text in program.layout._string_hashes.items():
        if _texts.get(number) != text:
            _texts[number] = text
            cache.write("print", digest(str(number)), text)


def literal(number: int) -> str:
    """The text of a hash; where it is not known, the hash."""
    if number not in _texts:
        text = cache.read("print", digest(str(number)))
        if not isinstance(text, str):
            return f"<string {number:#010x}>"
        _texts[number] = text
    return _texts[number]
