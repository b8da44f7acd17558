"""The text of a module with all that it is made of."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ..._native import words_in
from ...base.folders import LIBRARY_PATH

_BINARY = ".slang-module"


def sources_of(module: Any) -> str | None:
    """The sources of a module, its imports and the modules linked to it; None where one is not at hand."""
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
    words = words_in("\n".join(filter(None, texts.values()))) if found else frozenset()
    return [path for path in found if words_in(f'"{Path(path).stem.replace("-", "_")}"') <= words]


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


__all__ = ["sources_of", "texts_of"]
