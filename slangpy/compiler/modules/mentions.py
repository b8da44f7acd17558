"""Words in the sources of modules."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .sources import end_of, sources_of, without_comments
from .statics import keeps_statics

_POSITION = re.compile("CallShapeInfo")
_THREADS = re.compile(r"groupshared|[Bb]arrier|\b(?:[Ww]ave|Quad|[Ss]ubgroup|Workgroup|gl_|cuda)[A-Z]|_asm\b")
"""What shows which invocations share a group."""

_LOOP = re.compile(r"(?<!\bForceUnroll\] )(?<!\bunroll\] )\b(?:for|while|do)\b")
_CALLED = re.compile(r"\b([A-Za-z_]\w*)\s*(?:<[^;{}()]*>)?\s*\(")


def asks_position(module: Any, preludes: Iterable[str]) -> bool:
    """Whether code of a module or a prelude may ask CallShapeInfo where it is."""
    return _holds(module, preludes, lambda text: bool(_POSITION.search(text)), "_asks_position")


def sees_threads(module: Any, preludes: Iterable[str]) -> bool:
    """Whether code of a module or a prelude may see which invocations share a group."""
    return _holds(module, preludes, lambda text: bool(_THREADS.search(text)), "_sees_threads")


def has_statics(module: Any, preludes: Iterable[str]) -> bool:
    """Whether code of a module or a prelude may see which invocations share a thread, by variables that live as long."""
    added = "\n".join(preludes)
    if added and keeps_statics("\n".join([added, sources_of(module) or ""])):
        return True
    return _holds(module, (), keeps_statics, "_has_statics")


def may_loop(module: Any, name: str) -> bool:
    """Whether a function, or one that it calls, has a loop that is not unrolled (True if its text is not at hand)."""
    bodies = list(_reached(module, name))
    return not bodies or any(re.search(_LOOP, body) for body in bodies)


def reached_words(module: Any, name: str) -> frozenset[str]:
    """The words in a function and in those that it calls."""
    return frozenset(word for body in _reached(module, name) for word in re.findall(r"\w+", body))


def may_use(module: Any, function: str, name: str) -> bool:
    """Whether a function, or one that it calls, may name something (True if its text is not at hand)."""
    words = reached_words(module, function.partition("<")[0].rpartition("::")[2])
    return not words or name in words


def _reached(module: Any, name: str) -> Iterator[str]:
    """What stands in the braces of a function, and of those that it calls, directly or not."""
    text = re.sub(r"\]\s*", "] ", without_comments(sources_of(module) or ""))
    waiting, seen = [name], {name}
    while waiting:
        for body in _bodies(text, waiting.pop()):
            yield body
            fresh = set(re.findall(_CALLED, body)) - seen
            seen |= fresh
            waiting += fresh


def _bodies(text: str, name: str) -> Iterator[str]:
    """What stands in the braces of functions of a name."""
    for found in re.finditer(rf"\b{re.escape(name)}\s*(?:<[^;{{}}()]*>)?\s*\([^;{{}}]*\{{", text):
        yield text[found.end() : end_of(text, found.end() - 1)]


def _holds(module: Any, preludes: Iterable[str], says: Callable[[str], bool], name: str) -> bool:
    """Whether one of the texts does what `says` asks. `name`: under which a loaded module remembers it."""
    if any(says(text) for text in preludes):
        return True
    known = getattr(module._compiled, name, None)
    if known is None:
        known = _is_said(module, says)
        setattr(module._compiled, name, known)
    return known


def mentions(module: Any, words: str) -> bool:
    """Whether the source of a module, of what it imports or is linked with has such words (True if that is unknown)."""
    return _is_said(module, lambda text: re.search(words, text) is not None)


def _is_said(module: Any, says: Callable[[str], bool]) -> bool:
    """The same of a text; what is imported may write the variables of another module, so it is asked of all together."""
    text = sources_of(module)
    return text is None or says(text)
