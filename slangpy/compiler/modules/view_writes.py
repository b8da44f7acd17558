"""Whether a function writes to a view that it is given, from the text of its module.

`TensorView` and `DiffTensorView` may be written, and their types do not say by whom. A parameter is only read where every
use of it in the text is one that reads: an index or a load that nothing is assigned to, a size, or an argument of a function
that only reads it. All else counts as writing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from .sources import end_of, sources_of, without_comments

_Definition = tuple[list[str], str]  # names of parameters, body
_FUNCTION = re.compile(r"\b(\w+)\s*(?:<[^<>;{}()]*>)?\s*\(")
_ASSIGNED = re.compile(r"(?:\s*\.\s*\w+)*\s*(?:\+\+|--|(?:[-+*/%&|^]|<<|>>)?=(?!=))")
_SIZES = ("size", "dims", "stride")
_LOADS = ("load", "loadOnce")
_STORES = ("store", "storeOnce")
_KEYWORDS = ("if", "for", "while", "switch", "return")


def _split(text: str) -> list[str]:
    parts, depth, begin = [], 0, 0
    for at, c in enumerate(text):
        depth += (c in "([{<") - (c in ")]}>")
        if c == "," and depth == 0:
            parts.append(text[begin:at])
            begin = at + 1
    return [*parts, text[begin:]] if text.strip() else []


def _parameter_name(text: str) -> str:
    words = re.findall(r"\w+", re.split(r"[=\[]", text, maxsplit=1)[0])
    return words[-1] if words else ""


def _definitions(text: str) -> dict[str, list[_Definition]]:
    """Every function and method with a body, by name."""
    found: dict[str, list[_Definition]] = {}
    for match in _FUNCTION.finditer(text):
        end = end_of(text, match.end() - 1)
        if end < 0 or match.group(1) in _KEYWORDS:
            continue
        body = re.match(r"\s*(?:where\b[^;{}]*)?\{", text[end:])
        if body is None:
            continue
        begin = end + body.end() - 1
        names = [_parameter_name(part) for part in _split(text[match.end() : end - 1])]
        found.setdefault(match.group(1), []).append((names, text[begin : end_of(text, begin)]))
    return found


_NONE: frozenset[str] = frozenset()
_READ, _STORED, _UNKNOWN = frozenset(["reads"]), frozenset(["stores"]), frozenset(["unknown"])
_GRADIENT = frozenset(["gradient"])


class ViewWrites:
    """What the functions of one text do with views: "reads" and "stores" of elements, uses of the "gradient" of a pair, or
    what is "unknown"."""

    def __init__(self, text: str, macros: Iterable[str] = ()) -> None:
        self._functions = _definitions(text)
        self._macros = set(re.findall(r"\w+", " ".join(re.findall(r"#\s*define\b((?:\\\n|[^\n])*)", text)))) | set(macros)
        self._known: dict[tuple[str, int, tuple[str, ...]], frozenset[str]] = {}

    def writes(self, function: str, index: int, fields: tuple[str, ...] = ()) -> bool:
        """Whether a function may write to its parameter of that index, or to a field in it."""
        return not self.uses(function, index, fields) <= _READ | _GRADIENT

    def uses(self, function: str, index: int, fields: tuple[str, ...] = ()) -> frozenset[str]:
        """All that a function does with its parameter of that index, or with a field in it."""
        self._known.clear()  # what stands there for functions that call each other is true of one question alone
        return self._uses(function, index, fields)

    def differentiates(self, function: str, index: int) -> list[tuple[str, int]] | None:
        """The functions, and the parameters of them, that a parameter is passed to inside of `bwd_diff`; None where it is
        used otherwise, but for its sizes."""
        found: list[tuple[str, int]] = []
        for names, body in self._functions.get(function, []):
            name = names[index] if index < len(names) else ""
            if not name or name in self._macros:
                return None
            for use in re.finditer(rf"(?<![\w.]){name}\b", body):
                callee = re.search(r"\b(?:__)?bwd_diff\s*\(\s*(\w+)\s*\)\s*$", body[: self._opening(body, use.start())])
                member = re.match(r"\s*\.\s*(\w+)\s*\(", body[use.end() :])
                if callee is not None and re.match(r"\s*[,)]", body[use.end() :]):
                    found.append((callee.group(1), self._position(body, use.start())))
                elif member is None or member.group(1) not in _SIZES:
                    return None
        return found

    def _uses(self, function: str, index: int, fields: tuple[str, ...]) -> frozenset[str]:
        key = (function, index, fields)
        if key not in self._known:
            self._known[key] = _NONE  # of a recursion: it is for the rest to say
            bodies = [d for d in self._functions.get(function, []) if index < len(d[0])]
            found = [self._in_body(body, names[index], fields) for names, body in bodies]
            self._known[key] = _UNKNOWN if not bodies else _NONE.union(*found)
        return self._known[key]

    def _in_body(self, body: str, name: str, fields: tuple[str, ...]) -> frozenset[str]:
        if name in self._macros:
            return _UNKNOWN  # a use that the text of the body does not show
        uses = re.finditer(rf"(?<![\w.]){name}\b", body)
        return _NONE.union(*(self._use(body, m.start(), m.end(), fields) for m in uses))

    def _use(self, body: str, begin: int, end: int, fields: tuple[str, ...]) -> frozenset[str]:
        """One use of a view, or of a struct that `fields` leads through to one."""
        if re.search(r"(?:\+\+|--|&)\s*$", body[:begin]):
            return _UNKNOWN
        member = re.match(r"\s*\.\s*(\w+)", body[end:])
        if member is not None:
            return self._member(body, begin, end + member.end(), member.group(1), fields)
        index = re.match(r"\s*\[", body[end:])
        if index is not None and not fields:
            assigned = _ASSIGNED.match(body, end_of(body, end + index.end() - 1))
            return _READ if assigned is None else _STORED if assigned[0].strip() == "=" else _STORED | _READ
        return self._argument(body, begin, end, fields)

    def _member(self, body: str, begin: int, after: int, name: str, fields: tuple[str, ...]) -> frozenset[str]:
        is_call = re.match(r"\s*(?:<[^<>;{}()]*>)?\s*\(", body[after:]) is not None
        if fields:
            if is_call:
                return self._method(name, fields[0], fields[1:])
            return self._use(body, begin, after, fields[1:]) if name == fields[0] else _NONE
        if is_call:
            known = {**dict.fromkeys(_SIZES, _NONE), **dict.fromkeys(_LOADS, _READ), **dict.fromkeys(_STORES, _STORED)}
            return known[name] if name in known else self._extension(name)
        if name == "diff":
            return _GRADIENT
        return self._use(body, begin, after, ()) if name == "primal" else _UNKNOWN

    def _method(self, method: str, name: str, fields: tuple[str, ...]) -> frozenset[str]:
        """A method of the struct that holds the view under that name."""
        bodies = self._functions.get(method, [])
        if not bodies or any(re.search(r"\bthis\b(?!\.)", body) for _, body in bodies):
            return _UNKNOWN
        return _NONE.union(*(self._in_body(body.replace("this.", ""), name, fields) for _, body in bodies))

    def _extension(self, method: str) -> frozenset[str]:
        """A method that users have added to the view."""
        bodies = [body.replace("this.", "") for _, body in self._functions.get(method, [])]
        pattern = r"\bthis\b|\b(?:store\w*|Interlocked\w*|data_ptr\w*)\s*\("
        if not bodies or any(re.search(pattern, b) or not self._in_body(b, "primal", ()) <= _READ for b in bodies):
            return _UNKNOWN
        return _READ

    def _argument(self, body: str, begin: int, end: int, fields: tuple[str, ...]) -> frozenset[str]:
        """The whole view or struct as an argument of a call."""
        if re.match(r"\s*[,)]", body[end:]) is None or not re.search(r"[(,]\s*$", body[:begin]):
            return _UNKNOWN
        callee = re.search(r"(\w+)\s*(?:<[^<>;{}()]*>)?\s*$", body[: self._opening(body, begin)])
        if callee is None or callee.group(1) in _KEYWORDS:
            return _UNKNOWN
        return self._uses(callee.group(1), self._position(body, begin), fields)

    def _opening(self, body: str, begin: int) -> int:
        """Where the bracket of the call opens that `begin` is an argument of; 0 where there is none."""
        depth, at = 0, begin - 1
        while at >= 0 and (depth or body[at] != "("):
            depth += (body[at] in ")]}") - (body[at] in "([{")
            at -= 1
        return max(at, 0)

    def _position(self, body: str, begin: int) -> int:
        """Which argument of its call begins there."""
        return len(_split(body[self._opening(body, begin) + 1 : begin] + "x")) - 1


def writes_view(module: Any, function: str, index: int, fields: tuple[str, ...]) -> bool:
    """Whether a function of a module may write to a view: its parameter of that index, or a field of it."""
    loaded = module._compiled
    known = getattr(loaded, "_view_writes", None)
    if known is None:
        known = loaded._view_writes = ViewWrites(without_comments(sources_of(module) or ""))
    return known.writes(function.rpartition(".")[2].partition("<")[0], index, fields)


__all__ = ["ViewWrites", "writes_view"]
