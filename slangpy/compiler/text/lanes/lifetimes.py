"""How long variables are needed: after a loop that lanes leave one by one, and before they become a part of another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from .counters import UP
from .tree import Expr, Stmt, number_of, statements, text_of


@dataclass
class Lives:
    """What is known of the variables of a function. own: by the identity of loops. parts: those that stand in a later one: this, and
    where. ends: those of which a part goes to a later one: this, the part there, and the part. filled: arrays that are filled behind
    a loop, where that left them."""

    own: dict[int, frozenset[str]] = field(default_factory=dict)
    parts: dict[str, tuple[str, Expr]] = field(default_factory=dict)
    ends: dict[str, tuple[str, Expr, Expr]] = field(default_factory=dict)
    filled: list[Rows] = field(default_factory=list)


def lives_of(
    parameters: list[str], body: tuple[Stmt, ...], is_large: Callable[[str], bool], is_filled_later: Callable[[Rows], bool]
) -> Lives:
    """Of a function. is_large: variables of which parts may stand elsewhere."""
    parts = parts_of_later(body, is_large)
    filled = [rows for rows in rows_in_order(body) if is_filled_later(rows)]
    return Lives(own_variables(parameters, body), parts, ends_in_another(body, is_large, parts), filled)


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


@dataclass(frozen=True)
class Rows:
    """An array that gets one value for all elements (`fill`), and then a loop gives its turn's element a value in each turn (`first`),
    in order from element 0: what is left behind the loop is all that has to be filled."""

    array: Expr
    value: Expr
    fill: Stmt
    first: Stmt
    loop: Stmt


def rows_in_order(body: tuple[Stmt, ...]) -> list[Rows]:
    """Such arrays in a block and the blocks in it."""
    found = [rows for s in body for part in s.parts() for rows in rows_in_order(part)]
    constants = {s.name: s.value.kids for s in body if s.kind == "declare" and s.value is not None and s.value.kind == "braces"}
    for k, s in enumerate(body):
        if s.kind != "assign" or s.place is None or s.value is None or s.place.kind not in ("name", "member"):
            continue
        elements = constants.get(s.value.text, ()) if s.value.kind == "name" else ()
        loops = [at for at in range(k + 1, len(body)) if body[at].kind == "loop"]
        if not elements or any(e != elements[0] for e in elements) or not loops:
            continue
        loop = body[loops[0]]
        first = _first_of(loop, s.place)
        uses = [use for kid in body[k + 1 : loops[0] + 1] for use in _uses(kid, s.place)]
        changes = any(_is_part(kid.place, s.value) for kid in statements(body) if kid.place is not None)
        if first is not None and not changes and all(use == first.place for use in uses):
            found.append(Rows(s.place, elements[0], s, first, loop))
    return found


def _first_of(loop: Stmt, array: Expr) -> Stmt | None:
    """The statement that gives the element of a turn its value, before anything leaves the turn, and no other does."""
    if loop.type != UP or loop.value is None or number_of(loop.value) != 0:
        return None
    place = Expr("index", "", (array, Expr("name", loop.body[0].name)))
    writes = [s for s in statements(loop.body) if s.place == place]
    simple = next((k for k, s in enumerate(loop.body) if s.kind not in ("declare", "assign")), len(loop.body))
    if len(writes) != 1 or writes[0] not in loop.body[:simple]:
        return None
    before = (e for s in loop.body[: loop.body.index(writes[0])] for e in s.expressions())
    reads = (part for e in (*before, *writes[0].expressions()[1:]) for part in e.walk())
    return None if any(part == place for part in reads) else writes[0]


def _uses(s: Stmt, array: Expr) -> Iterator[Expr]:
    """Where statements name an array, what it is a part of, or its parts."""
    todo = [e for kid in statements((s,)) for e in kid.expressions()]
    while todo:
        e = todo.pop()
        if _is_part(e, array) or _is_part(array, e):
            yield e
        elif not _is_part_of_root(e, array):
            todo += e.kids


def _is_part(e: Expr, of: Expr) -> bool:
    while e != of and e.kids and e.kind in ("member", "index"):
        e = e.kids[0]
    return e == of


def _is_part_of_root(e: Expr, array: Expr) -> bool:
    """Whether it is another part, found by names alone, of the variable that an array is in."""
    while e.kind == "member" and e.by == ".":
        e = e.kids[0]
    return e.kind == "name" and _is_part(array, e)
