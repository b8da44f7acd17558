"""Headers that a program includes by `__requirePrelude`: the compiler that comes after Slang reads them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"([^"\n]+)"', re.MULTILINE)


def included_files(text: str, folders: Iterable[str]) -> list[str]:
    """The files that `#include "..."` finds in these folders, and those that they include in turn."""
    found: dict[str, None] = {}
    todo = [(name, "") for name in _INCLUDE.findall(text)]
    folders = list(folders)
    while todo:
        name, beside = todo.pop()
        path = next(filter(os.path.isfile, (os.path.join(f, name) for f in (beside, *folders) if f)), None)
        if path is None or (path := os.path.realpath(path)) in found:
            continue
        found[path] = None
        todo += [(inner, os.path.dirname(path)) for inner in _INCLUDE.findall(Path(path).read_text("utf-8", "replace"))]
    return list(found)


__all__ = ["included_files"]
