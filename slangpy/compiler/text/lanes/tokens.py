"""Tokens of the C++ code that Slang emits for functions."""

from __future__ import annotations

import re
from dataclasses import dataclass


class Unfit(Exception):
    """Code that is left as it is."""


_TOKEN = re.compile(
    r"(?P<space>\s+|//[^\n]*|/\*.*?\*/|^\#(?:[^\n]*\\\n)*[^\n]*)|(?P<name>[A-Za-z_]\w*)|(?P<number>\.?\d(?:[eE][+-]|[\w.])*)"
    r'|(?P<string>"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)+\')'
    r"|(?P<sign>->|::|<<=|>>=|<<|<=|>=|==|!=|&&|\|\||\+\+|--|[-+*/%&|^]=|[^\s\w])",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Token:
    """kind: "name", "number", "string" or "sign". Two `>` are two signs: they may close types."""

    kind: str
    text: str
    at: int
    end: int


def tokens_of(text: str) -> list[Token]:
    found, at = [], 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise Unfit("text")
        if match.lastgroup != "space":
            found.append(Token(match.lastgroup or "", match.group(), at, match.end()))
        at = match.end()
    return found


_OPEN, _CLOSE = frozenset("([{"), frozenset(")]}")


def closing(tokens: list[Token], at: int) -> int:
    """Where the bracket at `at` is closed."""
    depth = 0
    for i in range(at, len(tokens)):
        depth += (tokens[i].text in _OPEN) - (tokens[i].text in _CLOSE)
        if depth == 0:
            return i
    raise Unfit("brackets")
