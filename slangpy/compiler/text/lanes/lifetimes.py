"""How long variables are needed: after a loop that lanes leave one by one, and before they become a part of another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from .tree import Expr, Stmt, statements, text_of


def own_variables(parameters: list[str], body: tuple[Stmt, ...]) -> dict[int, frozenset[str]]:
    """By the identity of loops: variables from around them that only they use from there on, and that begin anew where a loop
    around them has its next turn. Of loops without `continue`: lanes come back from that."""
    walk = _Walk(dict.fromkeys(parameters, 0))
    walk.block(body, 0)
    return {
        loop.id: frozenset(n for n, last in walk.last.items() if loop.begin < last <= loop.end and walk.homes.get(n) == loop.around)
        for loop in walk.loops if not loop.comes_back
    }  # fmt: skip


@dataclass
class _Loop:
    id: int
    around: int
    begin: int
    end: int
    comes_back: bool


@dataclass
class _Walk:
    """homes: the loop that a variable is declared in, 0 outside of loops. last: the statement that names it last."""

    homes: dict[str, int]
    last: dict[str, int] = field(default_factory=dict)
    loops: list[_Loop] = field(default_factory=list)
    at: int = 0

    def block(self, body: tuple[Stmt, ...], around: int) -> None:
        for s in body:
            self.at += 1
            begin = self.at
            if s.kind == "declare":
                self.homes[s.name] = around
            for e in s.expressions():
                self.last |= {part.text: begin for part in e.walk() if part.kind == "name"}
            for part in s.parts():
                self.block(part, id(s) if s.kind == "loop" else around)
            if s.kind == "loop":
                self.loops.append(_Loop(id(s), around, begin, self.at, _continues(s.body)))


def _continues(body: tuple[Stmt, ...]) -> bool:
    return any(s.kind == "continue" or (s.kind != "loop" and any(_continues(part) for part in s.parts())) for s in body)


def parts_of_later(body: tuple[Stmt, ...], fits: Callable[[str], bool]) -> dict[str, tuple[str, Expr]]:
    """Variables that end as a part of another one, which gets nothing else there: by name, the other and the part. They can stand
    there from the start, so that large ones are not copied. Of statements that run once; fits: which variables may do so."""
    declared = {s.name: k for k, s in enumerate(body) if s.kind == "declare"}
    named = [{part.text for kid in statements((s,)) for e in kid.expressions() for part in e.walk() if part.kind == "name"} for s in body]
    found = dict[str, tuple[str, Expr]]()
    for k, s in enumerate(body):
        if s.kind != "assign" or s.place is None or s.value is None or s.value.kind != "name":
            continue
        whole, name = _owner(s.place), s.value.text
        if whole in ("", name) or not {whole, name} <= declared.keys() or body[declared[whole]].value is not None:
            continue
        before = [body[i] for i in range(k) if whole in named[i]]
        after = any(name in names for names in named[k + 1 :])
        if fits(name) and fits(whole) and not after and name not in found and all(_is_beside(kid, whole, s.place) for kid in before):
            found[name] = (whole, s.place)
    taken = {whole for whole, _ in found.values()}
    return {name: of for name, of in found.items() if name not in taken}


def ends_in_another(
    body: tuple[Stmt, ...], fits: Callable[[str], bool], parts: dict[str, tuple[str, Expr]]
) -> dict[str, tuple[str, Expr, Expr]]:
    """Variables of which only a part is used, and that to become a part of another: by name, the other, the part there, and the
    part here. Both parts can stand in one place, so that large ones are not copied: all that is written of the other is written
    after the variable has its value. Of statements that run once; fits: which variables may do so."""
    declared = {s.name: k for k, s in enumerate(body) if s.kind == "declare"}
    named = [{part.text for kid in statements((s,)) for e in kid.expressions() for part in e.walk() if part.kind == "name"} for s in body]
    found = dict[str, tuple[str, Expr, Expr]]()
    for k, s in enumerate(body):
        if s.kind != "assign" or s.place is None or s.value is None:
            continue
        whole, name = _owner(s.place), _owner(s.value)
        if "" in (whole, name) or not {whole, name} <= declared.keys() or body[declared[whole]].value is not None:
            continue
        begin = declared[name]
        is_made = begin < k and body[begin].value is not None and [name in names for names in named].count(True) == 1
        before = [body[i] for i in range(k) if whole in named[i]]
        is_later = all(whole not in names for names in named[: begin + 1])
        is_later &= name not in parts and all(declared[part] > begin for part, (of, _) in parts.items() if of == whole)
        is_beside = is_later and all(_is_beside(kid, whole, s.place) for kid in before)
        if is_made and is_beside and fits(name) and fits(whole) and whole not in {of for of, _, _ in found.values()} | {name}:
            found[name] = (whole, s.place, s.value)
    return {name: of for name, of in found.items() if of[0] not in found}


def _owner(place: Expr) -> str:
    """The variable that a member is of; "" of other places."""
    if place.kind != "member":
        return ""
    while place.kind == "member" and place.by == ".":
        place = place.kids[0]
    return place.text if place.kind == "name" else ""


def _is_beside(s: Stmt, whole: str, place: Expr) -> bool:
    """Whether a statement gives a value to another part of a variable, and looks at nothing of it."""
    if s.kind != "assign" or s.place is None or s.value is None or _owner(s.place) != whole:
        return False
    a, b = text_of(s.place) + ".", text_of(place) + "."
    is_apart = not a.startswith(b) and not b.startswith(a)
    return is_apart and all(part.text != whole for part in s.value.walk() if part.kind == "name")
