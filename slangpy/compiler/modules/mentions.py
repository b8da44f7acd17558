"""Words in the sources of modules."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ...base.folders import LIBRARY_PATH

_NAME = "CallShapeInfo"


def asks_position(module: Any, preludes: Iterable[str]) -> bool:
    """Whether code of a module or a prelude may ask CallShapeInfo where it is."""
    if any(_NAME in text for text in preludes):
        return True
    known = getattr(module.loaded, "_asks_position", None)
    if known is None:
        known = module.loaded._asks_position = mentions(module, _NAME)
    return known


def mentions(module: Any, word: str) -> bool:
    """Whether a word stands in the source of a module, of what it imports or is linked with (True if that is unknown)."""
    if word in module._source:
        return True
    for loaded in module.loaded.modules:
        paths = [Path(path) for path in loaded.dependencies]
        files = [path for path in paths if path.is_file()]
        if len(files) < len(paths) and not module._source:
            return True  # made of a text that is not at hand
        for path in files:
            if path.resolve().parent != LIBRARY_PATH and word in path.read_text(encoding="utf-8", errors="replace"):
                return True
    return any(hasattr(linked, "loaded") and mentions(linked, word) for linked in module.link)
