"""Statements of the C++ code that Slang emits for functions."""

from __future__ import annotations

import re
from dataclasses import dataclass

TYPE = r"(?:Vector<(?:float|double|u?int(?:32|64)_t|bool), \d>|float|double|u?int(?:32|64)_t|int|bool)"
_TOKEN = re.compile(
    rf"\s*({TYPE}(?![\w<])|[A-Za-z_]\w*|\.?\d(?:[eE][+-]|[\w.])*|->|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|[^\s\w])"
)
IS_TYPE = re.compile(rf"{TYPE}\Z")
NAME = re.compile(r"[A-Za-z_]\w*\Z")


class Unfit(Exception):
    """Code that is left as it is."""


@dataclass(frozen=True)
class Statement:
    """kind: "plain", "declare", "assign", "if", "loop", "break", "continue" or "return". name: what is declared or assigned;
    type: of a declaration; left: what is assigned; value: tokens, also of conditions."""

    kind: str
    value: tuple[str, ...] = ()
    name: str = ""
    type: str = ""
    left: tuple[str, ...] = ()
    body: tuple[Statement, ...] = ()
    other: tuple[Statement, ...] = ()


def tokens_of(text: str) -> list[str]:
    found, at = [], 0
    text = text.strip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise Unfit("text")
        found.append(match[1])
        at = match.end()
    return found


def closing(tokens: tuple[str, ...] | list[str], at: int) -> int:
    """Where the bracket at `at` is closed."""
    depth = 0
    for i in range(at, len(tokens)):
        depth += (tokens[i] in "([{") - (tokens[i] in ")]}")
        if depth == 0:
            return i
    raise Unfit("brackets")


def parse(tokens: list[str]) -> tuple[Statement, ...]:
    """The statements of a block, without its brackets."""
    found: list[Statement] = []
    at = 0
    while at < len(tokens):
        token = tokens[at]
        if token == "if":
            close = closing(tokens, at + 1)
            end = closing(tokens, close + 1)
            condition, body, other = tuple(tokens[at + 2 : close]), parse(tokens[close + 2 : end]), ()
            at = end + 1
            if at < len(tokens) and tokens[at] == "else":
                end = closing(tokens, at + 1)
                other = parse(tokens[at + 2 : end])
                at = end + 1
            found.append(Statement("if", condition, body=body, other=other))
        elif token == "for":
            if tokens[at : at + 5] != ["for", "(", ";", ";", ")"]:
                raise Unfit("loop")
            end = closing(tokens, at + 5)
            found.append(Statement("loop", body=parse(tokens[at + 6 : end])))
            at = end + 1
        elif token in ("switch", "do", "while", "goto", "{"):
            raise Unfit(token)
        else:
            end = tokens.index(";", at)
            found.append(_simple(tuple(tokens[at:end])))
            at = end + 1
    return tuple(found)


def _simple(tokens: tuple[str, ...]) -> Statement:
    count = len(tokens)
    if tokens[0] in ("break", "continue"):
        return Statement(tokens[0])
    if tokens[0] == "return":
        return Statement("return", tokens[1:])
    if IS_TYPE.match(tokens[0]) and count > 1 and NAME.match(tokens[1]):
        if count > 2 and tokens[2] != "=":
            raise Unfit("declaration")
        return Statement("declare", tokens[3:], tokens[1], tokens[0])
    if "=" in tokens:
        at = tokens.index("=")
        if at == 0 or not NAME.match(tokens[0]) or (at > 1 and tokens[1] not in (".", "[")):
            raise Unfit("assignment")
        return Statement("assign", tokens[at + 1 :], tokens[0], left=tokens[:at])
    return Statement("plain", tokens)


def arguments_of(tokens: tuple[str, ...]) -> list[tuple[str, ...]]:
    """What stands between the commas."""
    parts, depth, begin = [], 0, 0
    for i, token in enumerate(tokens):
        depth += (token in "([") - (token in ")]")
        if token == "," and depth == 0:
            parts.append(tokens[begin:i])
            begin = i + 1
    return [*parts, tokens[begin:]] if tokens else []


