"""The text of a module with all that it is made of."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from ...base.folders import LIBRARY_PATH

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"", re.DOTALL)
_BINARY = ".slang-module"
_CLOSING = {"(": ")", "[": "]", "{": "}", "<": ">"}


def sources_of(module: Any) -> str | None:
    """The sources of a module, of what it imports and is linked with; None where one is not at hand."""
    texts = texts_of(module._compiled)
    known = [text for text in texts if text is not None]
    return "\n".join(known) if len(known) == len(texts) else None


def texts_of(loaded: Any) -> list[str | None]:
    """The same one by one, without our library; None for one that is not at hand, as of a module in binary form. Whichever
    way a module came: the session knows the texts that it was given, all else is a file. Read once."""
    known: list[str | None] | None = getattr(loaded, "_texts", None)
    if known is None:
        texts: dict[str, str | None] = {}
        for part in loaded.modules:
            _gather(part, texts)
        for path in _binary_imports(loaded.session, texts):
            texts[path] = None
        known = loaded._texts = list(texts.values())
    return known


def _binary_imports(session: Any, texts: dict[str, str | None]) -> list[str]:
    """Modules in binary form that one of the texts may import: Slang does not count them among dependencies."""
    found = [path for path in session.read_files if path.endswith(_BINARY) and Path(path).parent != LIBRARY_PATH]
    words = set(re.findall(r"\w+", "\n".join(filter(None, texts.values())))) if found else set()
    return [path for path in found if set(re.findall(r"\w+", Path(path).stem.replace("-", "_"))) <= words]


def _gather(module: Any, texts: dict[str, str | None]) -> None:
    """Adds the texts of a module of the compiler by their paths."""
    for part in module.source_modules:
        _gather(part, texts)
    if module.is_composed:
        return
    if module.is_binary:
        texts.setdefault(module.name, None)
    for path in module.dependencies:
        if path not in texts and not (os.path.isabs(path) and Path(path).resolve().parent == LIBRARY_PATH):
            texts[path] = _text_at(module.session, path)


def _text_at(session: Any, path: str) -> str | None:
    text: str | None = session.text_of(path)
    file = Path(path)
    if text is None and not path.endswith(_BINARY) and file.is_file():
        text = file.read_text("utf-8", "replace")
    return text


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


__all__ = ["end_of", "sources_of", "texts_of", "without_comments"]
