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
    files = _files_of(module._compiled)
    if None in files and not module._source:
        return None
    parts = [text for text in (module._source, *files) if text]
    for linked in module.link:
        other = sources_of(linked) if hasattr(type(linked), "_compiled") else ""
        if other is None:
            return None
        parts.append(other)
    return "\n".join(parts)


def _files_of(loaded: Any) -> list[str | None]:
    """Texts of the files that a loaded module depends on, but for the library's; None for one that is not there. Read once."""
    known = getattr(loaded, "_files", None)
    if known is None:
        paths = [Path(path) for module in loaded.modules for path in module.dependencies]
        own = [path for path in paths if path.resolve().parent != LIBRARY_PATH]
        known = loaded._files = [path.read_text("utf-8", "replace") if path.is_file() else None for path in own]
    return known


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
