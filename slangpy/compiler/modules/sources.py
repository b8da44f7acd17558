"""The text of a module with all that it is made of."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from ...base.folders import LIBRARY_PATH

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"", re.DOTALL)
_CLOSING = {"(": ")", "[": "]", "{": "}", "<": ">"}


def sources_of(module: Any) -> str | None:
    """The sources of a module, of what it imports and is linked with; None where one is not at hand."""
    parts = [module._source] if module._source else []
    for loaded in module.loaded.modules:
        paths = [Path(path) for path in loaded.dependencies]
        files = [path for path in paths if path.is_file()]
        if len(files) < len(paths) and not module._source:
            return None
        parts += [p.read_text("utf-8", "replace") for p in files if p.resolve().parent != LIBRARY_PATH]
    for linked in module.link:
        other = sources_of(linked) if hasattr(linked, "loaded") else ""
        if other is None:
            return None
        parts.append(other)
    return "\n".join(parts)


def without_comments(text: str) -> str:
    """The same without comments and strings."""
    return _COMMENT.sub(" ", text)


def end_of(text: str, begin: int) -> int:
    """Behind the bracket that closes the one at `begin`; -1 where there is none."""
    opening, closing, depth = text[begin], _CLOSING[text[begin]], 0
    for at in range(begin, len(text)):
        depth += (text[at] == opening) - (text[at] == closing)
        if depth == 0:
            return at + 1
    return -1


__all__ = ["end_of", "sources_of", "without_comments"]
