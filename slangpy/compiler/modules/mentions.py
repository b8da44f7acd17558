"""Words in the sources of modules."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from .sources import end_of, sources_of, without_comments

_POSITION = re.compile("CallShapeInfo")
_THREADS = re.compile(
    r"groupshared|[Bb]arrier|\b(?:[Ww]ave|Quad|[Ss]ubgroup|Workgroup|gl_|cuda)[A-Z]|_asm\b"
    r"|\bstatic\s+(?!const\b)[\w<>,\[\] \t]+[=;]"
)
"""What shows which invocations share a thread or a group, variables that live as long as their thread among it."""

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
    text = re.sub(r"\]\s*", "] ", without_comments(sources_of(module) or ""))
    waiting, seen, is_found = [name], {name}, False
    while waiting:
        for body in _bodies(text, waiting.pop()):
            is_found = True
            if re.search(_LOOP, body):
                return True
            fresh = set(re.findall(_CALLED, body)) - seen
            seen |= fresh
            waiting += fresh
    return not is_found


def _bodies(text: str, name: str) -> Iterator[str]:
    """What stands in the braces of functions of a name."""
    for found in re.finditer(rf"\b{re.escape(name)}\s*(?:<[^;{{}}()]*>)?\s*\([^;{{}}]*\{{", text):
        yield text[found.end() : end_of(text, found.end() - 1)]


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
    text = sources_of(module)
    return text is None or re.search(words, text) is not None
