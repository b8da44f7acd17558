"""What the parser makes of C++ code that Slang emits: expressions, statements, functions and structs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Expr:
    """kind, and what `text` is: "name" and "literal"; "call" (the function, or `.method` of the first kid); "cast" (the
    type); "unary", "binary" and "choice" (operators); "member" (the field, `by` is "." or "->"); "index"; "braces".

    by: of a binary operator, what stands between it and its right side (`a / _spy_by / b`); "{" of calls with braces.
    """

    kind: str
    text: str = ""
    kids: tuple[Expr, ...] = ()
    by: str = ""

    def walk(self) -> Iterator[Expr]:
        todo: list[Expr] = [self]
        while todo:
            e = todo.pop()
            yield e
            todo += e.kids[::-1]


def text_of(e: Expr) -> str:
    """C++ text, with more brackets than it had."""
    return written(e, [text_of(kid) for kid in e.kids])


def written(e: Expr, kids: list[str]) -> str:
    """Text of an expression around that of its kids."""
    if e.kind in ("name", "literal"):
        return e.text
    if e.kind == "call":
        if e.text.startswith("."):
            return f"{kids[0]}{e.text}({', '.join(kids[1:])})"
        return f"{e.text}{{{', '.join(kids)}}}" if e.by == "{" else f"{e.text}({', '.join(kids)})"
    if e.kind == "cast":
        return f"(({e.text}){kids[0]})"
    if e.kind == "unary":
        return f"({e.text}{kids[0]})"
    if e.kind == "binary":
        return f"({kids[0]} {e.text} {e.by + ' ' + e.text + ' ' if e.by else ''}{kids[1]})"
    if e.kind == "choice":
        return f"({kids[0]} ? {kids[1]} : {kids[2]})"
    if e.kind == "member":
        return f"{kids[0]}{e.by}{e.text}"
    if e.kind == "index":
        return f"{kids[0]}[{kids[1]}]"
    return f"{{{', '.join(kids)}}}"


@dataclass(frozen=True, eq=False)
class Case:
    """labels: none for `default`."""

    labels: tuple[Expr, ...]
    is_default: bool
    body: tuple[Stmt, ...]


@dataclass(frozen=True, eq=False)
class Stmt:
    """kind: "declare" (type, name, value), "assign" (place, value), "call" (value), "if" (value, body, other), "loop" (body),
    "switch" (value, cases), "break", "continue" or "return" (value)."""

    kind: str
    type: str = ""
    name: str = ""
    place: Expr | None = None
    value: Expr | None = None
    body: tuple[Stmt, ...] = ()
    other: tuple[Stmt, ...] = ()
    cases: tuple[Case, ...] = ()

    def parts(self) -> tuple[tuple[Stmt, ...], ...]:
        """The blocks in it."""
        return (self.body, self.other, *(case.body for case in self.cases))

    def expressions(self) -> tuple[Expr, ...]:
        return tuple(e for e in (self.place, self.value) if e is not None)


def statements(body: tuple[Stmt, ...]) -> Iterator[Stmt]:
    for s in body:
        yield s
        for part in s.parts():
            yield from statements(part)


def names_in(e: Expr | None) -> set[str]:
    return set() if e is None else {part.text for part in e.walk() if part.kind == "name"}


def pointed_in(body: tuple[Stmt, ...]) -> set[str]:
    """Variables whose address is taken."""
    return {part.kids[0].text for s in statements(body) for e in s.expressions() for part in e.walk()
            if part.kind == "unary" and part.text == "&"}  # fmt: skip


def number_of(e: Expr) -> int | None:
    """Of `3` and `int32_t(3)`."""
    if e.kind == "call" and e.text == "int32_t" and len(e.kids) == 1:
        return number_of(e.kids[0])
    return int(e.text) if e.kind == "literal" and e.text.isdigit() else None


def mapped(s: Stmt, change: Callable[[Expr], Expr]) -> Stmt:
    """A statement, and those in it, with other expressions."""

    def block(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return tuple(mapped(kid, change) for kid in body)

    place, value = (None if e is None else change(e) for e in (s.place, s.value))
    cases = tuple(Case(case.labels, case.is_default, block(case.body)) for case in s.cases)
    return replace(s, place=place, value=value, body=block(s.body), other=block(s.other), cases=cases)


def lines_of(body: tuple[Stmt, ...]) -> list[str]:
    """C++ text of statements; a value is returned by `_left(value)`, and nothing by `_left()`."""
    lines: list[str] = []
    for s in body:
        value = "" if s.value is None else text_of(s.value)
        if s.kind == "declare":
            lines.append(f"{s.type} {s.name}{' = ' + value if value else ''};")
        elif s.kind == "return":
            lines.append(f"return _left({value});")
        elif s.kind == "if":
            lines += [f"if ({value})", "{", *lines_of(s.body), "}", "else", "{", *lines_of(s.other), "}"]
        elif s.kind == "loop":
            lines += ["for (;;)", "{", *lines_of(s.body), "}"]
        elif s.kind == "switch":
            lines += [f"switch ({value})", "{"]
            for case in s.cases:
                lines += [f"case {text_of(label)}:" for label in case.labels] + ["default:"] * case.is_default
                lines += ["{", *lines_of(case.body), "break;", "}"]
            lines.append("}")
        else:
            place = "" if s.place is None else f"{text_of(s.place)} = "
            lines.append(f"{place}{value or s.kind};")
    return lines


@dataclass(frozen=True)
class Function:
    """parameters: (type, name). body: its tokens, from one to another."""

    name: str
    result: str
    parameters: tuple[tuple[str, str], ...]
    body: tuple[int, int]


@dataclass(frozen=True)
class Struct:
    """fields: (type, name)."""

    name: str
    fields: tuple[tuple[str, str], ...]

    def field(self, name: str) -> str:
        return next((type for type, field in self.fields if field == name), "")


NUMBERS = ("float", "double", "int32_t", "uint32_t", "int64_t", "uint64_t")
NATIVE = (*NUMBERS, "bool")
"""Scalars that have lanes (slangpy/slang/lanes_cpp.h); of others there is one for each lane."""


def arguments_of(type: str) -> tuple[str, ...]:
    """Those of `Vector<float, 3>`."""
    if not type.endswith(">") or "<" not in type:
        return ()
    inner = type[type.index("<") + 1 : -1]
    parts, depth, begin = [], 0, 0
    for at, letter in enumerate(inner):
        depth += (letter == "<") - (letter == ">")
        if letter == "," and depth == 0:
            parts.append(inner[begin:at].strip())
            begin = at + 1
    return (*parts, inner[begin:].strip())


def is_vector(type: str) -> bool:
    return type.startswith("Vector<") and type.endswith(">")  # and no pointer


def is_native(type: str) -> bool:
    """Whether lanes of it compute at once: numbers, and vectors of them."""
    return type in NATIVE or (is_vector(type) and arguments_of(type)[0] in NATIVE)


def element(type: str) -> str:
    """Of a pointer, vector, array or matrix; "" of others."""
    if type.endswith("*"):
        return type[:-1].strip()
    if type.startswith("Matrix<"):
        return f"Vector<{arguments_of(type)[0]}, {arguments_of(type)[2]}>"
    return arguments_of(type)[0] if type.startswith(("Vector<", "FixedArray<")) else ""


def texel(type: str) -> str:
    """Of a texture of two dimensions that is only read; "" of others."""
    return arguments_of(type)[0] if type.startswith("Texture2D<") else ""
