"""Words in the sources of modules."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ...base.folders import LIBRARY_PATH

_POSITION = re.compile("CallShapeInfo")
_THREADS = re.compile(
    r"groupshared|[Bb]arrier|\b(?:[Ww]ave|Quad|[Ss]ubgroup|Workgroup|gl_|cuda)[A-Z]|_asm\b"
    r"|\bstatic\s+(?!const\b)[\w<>,\[\] \t]+[=;]"
)
"""What shows which invocations share a thread or a group, variables that live as long as their thread among it."""

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"", re.DOTALL)
_LOOP = re.compile(r"(?<!\bForceUnroll\] )(?<!\bunroll\] )\b(?:for|while|do)\b")
_CALLED = re.compile(r"\b([A-Za-z_]\w*)\s*(?:<[^;{}()]*>)?\s*\(")


def asks_position(module: Any, preludes: Iterable[str]) -> bool:
    """Whether code of a module or a prelude may ask CallShapeInfo where it is."""
    return _is_mentioned(module, preludes, _POSITION, "_asks_position")


def sees_threads(module: Any, preludes: Iterable[str]) -> bool:
    """Whether code of a module or a prelude may see which invocations share a thread or a group."""
    return _is_mentioned(module, preludes, _THREADS, "_sees_threads")


def may_loop(module: Any, name: str) -> bool:
    """Whether a function, or one that it calls, has a loop that is not unrolled (True if its text is not at hand)."""
    texts = [re.sub(r"\]\s*", "] ", _COMMENT.sub(" ", text)) for text in _texts(module)]
    waiting, seen, is_found = [name], {name}, False
    while waiting:
        called = waiting.pop()
        for body in _bodies(texts, called):
            is_found = True
            if re.search(_LOOP, body):
                return True
            fresh = set(re.findall(_CALLED, body)) - seen
            seen |= fresh
            waiting += fresh
    return not is_found


def _texts(module: Any) -> Iterator[str]:
    yield module._source
    for loaded in module.loaded.modules:
        for path in map(Path, loaded.dependencies):
            if path.is_file() and path.resolve().parent != LIBRARY_PATH:
                yield path.read_text(encoding="utf-8", errors="replace")
    for linked in module.link:
        if hasattr(linked, "loaded"):
            yield from _texts(linked)


def _bodies(texts: list[str], name: str) -> Iterator[str]:
    """What stands in the braces of functions of a name."""
    head = re.compile(rf"\b{re.escape(name)}\s*(?:<[^;{{}}()]*>)?\s*\([^;{{}}]*\{{")
    for text in texts:
        for found in head.finditer(text):
            depth, at = 1, found.end()
            while depth and at < len(text):
                depth += (text[at] == "{") - (text[at] == "}")
                at += 1
            yield text[found.end() : at]


def _is_mentioned(module: Any, preludes: Iterable[str], words: re.Pattern[str], name: str) -> bool:
    """`name`: under which a loaded module remembers it."""
    if any(re.search(words, text) for text in preludes):
        return True
    known = getattr(module.loaded, name, None)
    if known is None:
        known = mentions(module, words)
        setattr(module.loaded, name, known)
    return known


def mentions(module: Any, words: str | re.Pattern[str]) -> bool:
    """Whether the source of a module, of what it imports or is linked with has such words (True if that is unknown)."""
    if re.search(words, module._source):
        return True
    for loaded in module.loaded.modules:
        paths = [Path(path) for path in loaded.dependencies]
        files = [path for path in paths if path.is_file()]
        if len(files) < len(paths) and not module._source:
            return True  # made of a text that is not at hand
        for path in files:
            if path.resolve().parent != LIBRARY_PATH and re.search(words, path.read_text(encoding="utf-8", errors="replace")):
                return True
    return any(hasattr(linked, "loaded") and mentions(linked, words) for linked in module.link)
