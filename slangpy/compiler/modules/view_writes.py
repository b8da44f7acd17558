"""Whether a function writes to a view that it is given, from the text of its module.

`TensorView` and `DiffTensorView` may be written, and their types do not say by whom. A parameter is only read where every
use of it in the text is one that reads: an index or a load that nothing is assigned to, a size, or an argument of a function
that only reads it. All else counts as writing.
"""

from __future__ import annotations

import re
from typing import Any

from .sources import end_of, sources_of, without_comments

_Definition = tuple[list[str], str]  # names of parameters, body
_FUNCTION = re.compile(r"\b(\w+)\s*(?:<[^<>;{}()]*>)?\s*\(")
_ASSIGNED = re.compile(r"(?:\s*\.\s*\w+)*\s*(?:\+\+|--|(?:[-+*/%&|^]|<<|>>)?=(?!=))")
_READS = ("size", "dims", "stride", "load", "loadOnce")
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


class ViewWrites:
    """What the functions of one text write to."""

    def __init__(self, text: str) -> None:
        self._functions = _definitions(text)
        self._macros = set(re.findall(r"\w+", " ".join(re.findall(r"#\s*define\b((?:\\\n|[^\n])*)", text))))
        self._known: dict[tuple[str, int, tuple[str, ...]], bool] = {}

    def writes(self, function: str, index: int, fields: tuple[str, ...] = ()) -> bool:
        """Whether a function may write to its parameter of that index, or to a field in it."""
        self._known.clear()  # what stands there for functions that call each other is true of one question alone
        return self._writes(function, index, fields)

    def _writes(self, function: str, index: int, fields: tuple[str, ...]) -> bool:
        key = (function, index, fields)
        if key not in self._known:
            self._known[key] = False  # of a recursion: it is for the rest to say
            bodies = [d for d in self._functions.get(function, []) if index < len(d[0])]
            self._known[key] = not bodies or any(self._body_writes(body, names[index], fields) for names, body in bodies)
        return self._known[key]

    def _body_writes(self, body: str, name: str, fields: tuple[str, ...]) -> bool:
        if name in self._macros:
            return True  # a use that the text of the body does not show
        return any(self._use_writes(body, m.start(), m.end(), fields) for m in re.finditer(rf"(?<![\w.]){name}\b", body))

    def _use_writes(self, body: str, begin: int, end: int, fields: tuple[str, ...]) -> bool:
        """One use of a view, or of a struct that `fields` leads through to one."""
        if re.search(r"(?:\+\+|--|&)\s*$", body[:begin]):
            return True
        member = re.match(r"\s*\.\s*(\w+)", body[end:])
        if member is not None:
            name, after = member.group(1), end + member.end()
            is_call = re.match(r"\s*(?:<[^<>;{}()]*>)?\s*\(", body[after:]) is not None
            if fields:
                if is_call:
                    return self._method_writes(name, fields[0], fields[1:])
                return name == fields[0] and self._use_writes(body, begin, after, fields[1:])
            if is_call:
                return name not in _READS and self._extension_writes(name)
            return name != "diff" and (name != "primal" or self._use_writes(body, begin, after, ()))
        index = re.match(r"\s*\[", body[end:])
        if index is not None and not fields:
            return _ASSIGNED.match(body, end_of(body, end + index.end() - 1)) is not None
        return self._argument_writes(body, begin, end, fields)

    def _method_writes(self, method: str, name: str, fields: tuple[str, ...]) -> bool:
        """A method of the struct that holds the view under that name."""
        bodies = self._functions.get(method, [])
        return not bodies or any(
            self._body_writes(body.replace("this.", ""), name, fields) or re.search(r"\bthis\b(?!\.)", body) is not None
            for _, body in bodies
        )

    def _extension_writes(self, method: str) -> bool:
        """A method that users have added to the view."""
        bodies = [body.replace("this.", "") for _, body in self._functions.get(method, [])]
        pattern = r"\bthis\b|\b(?:store\w*|Interlocked\w*|data_ptr\w*)\s*\("
        return not bodies or any(re.search(pattern, b) or self._body_writes(b, "primal", ()) for b in bodies)

    def _argument_writes(self, body: str, begin: int, end: int, fields: tuple[str, ...]) -> bool:
        """The whole view or struct as an argument of a call."""
        if re.match(r"\s*[,)]", body[end:]) is None or not re.search(r"[(,]\s*$", body[:begin]):
            return True
        depth, at = 0, begin - 1
        while at >= 0 and (depth or body[at] != "("):
            depth += (body[at] in ")]}") - (body[at] in "([{")
            at -= 1
        callee = re.search(r"(\w+)\s*(?:<[^<>;{}()]*>)?\s*$", body[: max(at, 0)])
        if at < 0 or callee is None or callee.group(1) in _KEYWORDS:
            return True
        return self._writes(callee.group(1), len(_split(body[at + 1 : begin] + "x")) - 1, fields)


def writes_view(module: Any, function: str, index: int, fields: tuple[str, ...]) -> bool:
    """Whether a function of a module may write to a view: its parameter of that index, or a field of it."""
    loaded = module.loaded
    known = getattr(loaded, "_view_writes", None)
    if known is None:
        known = loaded._view_writes = ViewWrites(without_comments(sources_of(module) or ""))
    return known.writes(function.rpartition(".")[2].partition("<")[0], index, fields)


__all__ = ["ViewWrites", "writes_view"]
