"""Loops that count: what they count by is one number for all lanes in a turn, so that arrays are read and written in rows.

Loops of derivatives are the most: forward they keep a state for each turn, backward they go from the last turn that an invocation
had to the first. Lanes had different numbers of turns; backward those with fewer wait until the others have come to their last.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from .tree import Case, Expr, Stmt, mapped, names_in, number_of, pointed_in, statements

UP, DOWN = "up", "down"
"""Kinds of such loops: `type` of the statement, whose `name` is the variable. UP: from `value`, the same for all lanes. DOWN: by
one, to `value`, where it ends and nowhere else; its statements are the test, the declaration, others, and the step."""
_NOW = re.compile(r"_now\d+\Z")


def is_counter(name: str) -> bool:
    """Whether a variable is what a loop declares for what it counts by."""
    return _NOW.search(name) is not None


def with_counters(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """A function's statements, with loops that count marked."""
    return _Marker(body).block(body)


def turns_left(body: tuple[Stmt, ...]) -> set[Expr]:
    """Conditions that compare what a loop counts with what it does not change, and bools of such: Slang asks for them in each turn,
    where a loop has its derivative, and only the last says no."""
    found = set[Expr]()
    for loop in statements(body):
        inner = list(statements(loop.body)) if loop.kind == "loop" else []
        written = {s.name for s in inner} | {s.place.text for s in inner if s.place is not None and s.place.kind == "name"}
        counted = {s.place.text for s in inner if s.place is not None and s.value is not None and s.place.kind == "name"
                   and _steps(s.value, s.place.text) is not None} | {s.name for s in inner if is_counter(s.name)}  # fmt: skip
        for s in inner:
            e = s.value
            if e is not None and e.text in ("<", "<=", ">", ">=") and len(e.kids) == 2:
                names = names_in(e)
                if names & counted and not (names & written) - counted:
                    found |= {e, Expr("name", s.name)} if s.kind == "declare" else {e}
    return found


def read_again(body: tuple[Stmt, ...], now: str, is_pointer: Callable[[Expr], bool]) -> list[Expr]:
    """Elements of arrays at a counter that a turn of its loop reads more than once, and does not write. is_pointer: to variables."""
    inner = list(statements(body))
    parts = [part for s in inner for e in s.expressions() for part in e.walk()]
    changed = {part.text for s in inner if s.place is not None for part in s.place.walk() if part.kind == "name"}
    changed |= {s.name for s in inner} | {kid.text for part in parts if part.kind == "call" for kid in part.kids if is_pointer(kid)}
    changed |= {name.text for part in parts if part.kind == "unary" and part.text == "&" for name in part.walk()}
    counts = Counter(part for part in parts if part.kind == "index" and part.kids[1] == Expr("name", now))
    return [e for e, count in counts.items() if count > 1 and not names_in(e) - {now} & changed]


class _Marker:
    def __init__(self, body: tuple[Stmt, ...]) -> None:
        every = list(statements(body))
        self.types = {s.name: s.type for s in every if s.kind == "declare"}
        self.written = [s.place.text for s in every if s.place is not None and s.place.kind == "name"]
        self.pointed = pointed_in(body)
        self.count = 0

    def block(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        first = {s.name: s.value for s in body if s.kind == "declare" and s.value is not None}
        return tuple(self._marked(self._inner(s), first) for s in body)

    def _inner(self, s: Stmt) -> Stmt:
        if s.kind not in ("if", "loop", "switch"):
            return s
        cases = tuple(Case(case.labels, case.is_default, self.block(case.body)) for case in s.cases)
        return replace(s, body=self.block(s.body), other=self.block(s.other), cases=cases)

    def _marked(self, s: Stmt, first: dict[str, Expr]) -> Stmt:
        if s.kind != "loop" or len(s.body) < 3:
            return s
        test, *rest, step = s.body
        if step.kind != "assign" or step.place is None or step.value is None or step.place.kind != "name":
            return s
        name = step.place.text
        turn = (test, *rest)
        if (
            self.types.get(name) != "int32_t" or name in self.pointed or _steps(step.value, name) is None or
            not _is_index(turn, name) or any(inner.place is not None and inner.place.text == name for inner in statements(turn))
        ):  # fmt: skip
            return s
        now = f"{name}_now{self.count}"
        declared = Stmt("declare", "int32_t", now, value=Expr("name", name))
        bound = _end(test, name)
        if bound is not None and _steps(step.value, name) == -1 and not any(_leaves(kid) for kid in rest):
            self.count += 1
            inner = tuple(mapped(kid, lambda e: _renamed(e, name, now)) for kid in rest)
            return Stmt("loop", DOWN, name, value=bound, body=(test, declared, *inner, step))
        start = first.get(name)
        if start is None or number_of(start) is None or self.written.count(name) != 1 or any(_leaves(kid, False) for kid in turn):
            return s
        self.count += 1
        inner = tuple(mapped(kid, lambda e: _renamed(e, name, now)) for kid in turn)
        return Stmt("loop", UP, name, value=start, body=(declared, *inner, step))


def _steps(value: Expr, name: str) -> int | None:
    """What is added to a variable: 1 or -1, or None of other values."""
    if value.kind != "binary" or value.text not in "+-" or value.by or value.kids[0] != Expr("name", name):
        return None
    return (1 if value.text == "+" else -1) if number_of(value.kids[1]) == 1 else None


def _end(test: Stmt, name: str) -> Expr | None:
    """The last number of `if (name >= number) {} else { break; }`."""
    e = test.value
    if test.kind != "if" or test.body or [s.kind for s in test.other] != ["break"] or e is None or e.text != ">=":
        return None
    return e.kids[1] if e.kids[0] == Expr("name", name) and number_of(e.kids[1]) is not None else None


def _is_index(body: tuple[Stmt, ...], name: str) -> bool:
    parts = (part for s in statements(body) for e in s.expressions() for part in e.walk())
    return any(part.kind == "index" and part.kids[1] == Expr("name", name) for part in parts)


def _leaves(s: Stmt, by_break: bool = True) -> bool:
    """Whether a turn may end here: by `continue`, and by `break` or `return` where these count."""
    if s.kind == "continue" or (by_break and s.kind in ("break", "return")):
        return True
    if s.kind == "loop":
        return by_break and any(inner.kind == "return" for inner in statements(s.body))
    return any(_leaves(kid, by_break and not (s.kind == "switch" and kid.kind == "break")) for part in s.parts() for kid in part)


def _renamed(e: Expr, name: str, now: str) -> Expr:
    if e.kind == "name":
        return Expr("name", now) if e.text == name else e
    return Expr(e.kind, e.text, tuple(_renamed(kid, name, now) for kid in e.kids), e.by)
