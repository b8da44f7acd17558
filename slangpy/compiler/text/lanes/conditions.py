"""Bools that branches decide, as expressions: `b = c && a` in place of `if (c) { b = a; } else { b = false; }`.

Slang says by bools, which branches set and later branches ask, how a turn of a loop ends. In lanes each of these is a mask, and
each branch that sets one chooses between masks: a few for each turn, one after the other. Here a bool that is known where it is
asked for becomes what it is, and one that both sides of a branch set gets its value behind the branch.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from .tree import Case, Expr, Stmt, names_in, pointed_in, statements

_TRUE, _FALSE = Expr("literal", "true"), Expr("literal", "false")
_MOST_NAMES = 4
"""In one such expression."""

Known = dict[str, Expr]
"""What bools are, by name: a literal, another bool, or the opposite of one."""


def with_conditions(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """A function's statements, with such expressions."""
    every = list(statements(body))
    declared = [s.name for s in every if s.kind == "declare"]
    bools = {s.name for s in every if s.kind == "declare" and s.type == "bool" and declared.count(s.name) == 1} - pointed_in(body)
    made = tuple(_Writer(set(bools)).block(body, {}))
    return _without(made, bools - _all_names(made))


def _without(body: tuple[Stmt, ...], unread: set[str]) -> tuple[Stmt, ...]:
    """Statements without what only gives values to bools that nothing looks at."""

    def needed(s: Stmt) -> bool:
        return _written(s) not in unread or not (s.value is None or _is_condition(s.value))

    def less(s: Stmt) -> Stmt:
        cases = tuple(Case(case.labels, case.is_default, _without(case.body, unread)) for case in s.cases)
        return replace(s, body=_without(s.body, unread), other=_without(s.other, unread), cases=cases)

    return tuple(less(s) if s.parts() else s for s in body if needed(s)) if unread else body


@dataclass
class _Writer:
    bools: set[str]
    """Those that only assignments change."""
    count: int = 0
    """Of conditions that got a name."""

    def block(self, body: tuple[Stmt, ...], known: Known) -> list[Stmt]:
        """known: what holds in front of the first statement, and afterwards behind the last."""
        made: list[Stmt] = []
        for s in body:
            place = s.place if _written(s) else _known_in(s.place, known)
            s = replace(s, place=place, value=_known_in(s.value, known))
            if s.kind == "if":
                made += self._branch(s, known)
            elif s.kind in ("loop", "switch"):
                made.append(self._apart(s, known))
            else:
                made.append(s)
                self._learn(s, known)
        return made

    def _learn(self, s: Stmt, known: Known) -> None:
        name = _written(s)
        _forget(known, {name})
        if name in self.bools and s.value is not None and _is_small(s.value, self.bools) and name not in names_in(s.value):
            known[name] = s.value

    def _apart(self, s: Stmt, known: Known) -> Stmt:
        """A loop or a switch. What it changes is not known in it: a loop has turns before."""
        _forget(known, _all_written((s,)))
        cases = tuple(Case(case.labels, case.is_default, tuple(self.block(case.body, dict(known)))) for case in s.cases)
        return replace(s, body=tuple(self.block(s.body, dict(known))), other=(), cases=cases)

    def _branch(self, s: Stmt, known: Known) -> list[Stmt]:
        assert s.value is not None
        if s.value in (_TRUE, _FALSE):
            return self.block(s.body if s.value == _TRUE else s.other, known)
        before = dict(known)
        sides = [{**known, **_implied(s.value, is_taken, self.bools)} for is_taken in (True, False)]
        body, other = (self.block(part, side) for part, side in zip((s.body, s.other), sides, strict=True))
        s = replace(s, body=tuple(body), other=tuple(other))
        ends = [side for side, part in zip(sides, (body, other), strict=True) if not (part and part[-1].kind in _LEAVING)]
        known.clear()
        if ends:
            known.update((name, e) for name, e in ends[0].items() if all(end.get(name) == e for end in ends))
        _forget(known, {inner.name for inner in statements((*body, *other)) if inner.kind == "declare"})
        return [s] if any(inner.kind in _LEAVING for inner in statements((s,))) else self._joined(s, before, known)

    def _joined(self, s: Stmt, before: Known, known: Known) -> list[Stmt]:
        """A branch that no lane leaves, with what it says of bools behind it. before: what was known in front of it."""
        merge = _Merge(s, before, self.bools)
        for name in sorted(self.bools & (_all_written(s.body) | _all_written(s.other))):
            merge.take(name)
        if not merge.after:
            return [s]
        assert s.value is not None
        head: list[Stmt] = []
        condition = s.value
        if not _is_small(condition, self.bools) or names_in(condition) & _all_written((s,)):
            condition = Expr("name", f"_when{self.count}")
            self.count += 1
            self.bools.add(condition.text)
            head.append(Stmt("declare", "bool", condition.text, value=s.value))
        head += merge.declared
        rest = [replace(s, value=condition, body=merge.body, other=merge.other)] if merge.body or merge.other else []
        after = merge.assignments(condition)
        for kid in after:
            self._learn(kid, known)
        return [*head, *rest, *after]


_LEAVING = ("break", "continue", "return")


@dataclass
class _Merge:
    """A branch from which assignments to bools are taken one by one."""

    s: Stmt
    before: Known
    bools: set[str]
    body: tuple[Stmt, ...] = ()
    other: tuple[Stmt, ...] = ()
    declared: list[Stmt] = field(default_factory=list)
    """Of variables that now are needed behind the branch."""
    after: list[Stmt] = field(default_factory=list)
    """The value is a choice without its condition, of which the first kid is an empty one."""

    def __post_init__(self) -> None:
        self.body, self.other = self.s.body, self.s.other

    def take(self, name: str) -> None:
        """Puts a bool's assignments behind the branch, where that says the same."""
        first, second = (_last_of(name, part) for part in (self.body, self.other))
        values: list[Expr] = []
        for part, of in ((self.body, first), (self.other, second)):
            if of is None:  # stays what it was
                if name in _all_written(part) or self.before.get(name) not in (_TRUE, _FALSE):
                    return
                values.append(self.before[name])
            else:
                values.append(of[1])
        used = names_in(values[0]) | names_in(values[1])
        moved = {_written(kid) for kid in self.after}
        if not used <= self.bools or name in used or len(used) > _MOST_NAMES or used & moved:
            return
        if any(name in names_in(kid.value) for kid in self.after):
            return
        own = {kid.name for kid in (*self.body, *self.other) if kid.kind == "declare"}
        inner = {kid.name for kid in statements((*self.body, *self.other)) if kid.kind == "declare"}
        if used & (inner - own):
            return
        if first is not None:
            self.body = first[0]
        if second is not None:
            self.other = second[0]
        self._declare(used & own)
        self.after.append(Stmt("assign", place=Expr("name", name), value=Expr("choice", kids=(_TRUE, *values))))

    def _declare(self, names: set[str]) -> None:
        """Puts declarations in front of the branch."""
        self.declared += [Stmt("declare", "bool", name) for name in sorted(names)]
        self.body, self.other = (
            tuple(_assigned(kid) if kid.kind == "declare" and kid.name in names else kid for kid in part
                  if not (kid.kind == "declare" and kid.name in names and kid.value is None))
            for part in (self.body, self.other)
        )  # fmt: skip

    def assignments(self, condition: Expr) -> list[Stmt]:
        made: list[Stmt] = []
        for s in self.after:
            assert s.value is not None
            made.append(replace(s, value=_choice(condition, *s.value.kids[1:])))
        return made


def _last_of(name: str, body: tuple[Stmt, ...]) -> tuple[tuple[Stmt, ...], Expr] | None:
    """A branch without its assignments to a bool, and the last value, if that is what the bool has behind the branch, and what
    the value is made of has not changed there."""
    places = [k for k, s in enumerate(body) if name in _all_written((s,))]
    if not places or any(body[k].kind != "assign" for k in places):
        return None
    last = body[places[-1]].value
    reads = any(name in _all_names((s,)) for s in body[places[0] + 1 :] if _written(s) != name)
    reads |= any(name in names_in(body[k].value) for k in places)
    if last is None or reads or names_in(last) & _all_written(body[places[-1] + 1 :]) or not _is_condition(last):
        return None
    if any(not _is_condition(body[k].value) for k in places):
        return None
    return tuple(s for k, s in enumerate(body) if k not in places), last


def _assigned(s: Stmt) -> Stmt:
    return Stmt("assign", place=Expr("name", s.name), value=s.value)


def _choice(condition: Expr, a: Expr, b: Expr) -> Expr:
    """`condition ? a : b`. Where one of them is only set on its side of the branch, it is only looked at there."""
    if a == b:
        return a
    if a == _TRUE:
        return condition if b == _FALSE else Expr("binary", "||", (condition, b))
    if b == _FALSE:
        return Expr("binary", "&&", (condition, a))
    if a == _FALSE:
        return _not(condition) if b == _TRUE else Expr("binary", "&&", (_not(condition), b))
    return Expr("binary", "||", (_not(condition), a)) if b == _TRUE else Expr("choice", "", (condition, a, b))


def _not(e: Expr) -> Expr:
    if e in (_TRUE, _FALSE):
        return _FALSE if e == _TRUE else _TRUE
    return e.kids[0] if e.kind == "unary" and e.text == "!" else Expr("unary", "!", (e,))


def _is_small(e: Expr, bools: set[str]) -> bool:
    """Whether it is a literal, a bool, or the opposite of one."""
    inner = e.kids[0] if e.kind == "unary" and e.text == "!" else e
    return e in (_TRUE, _FALSE) or (inner.kind == "name" and inner.text in bools)


def _is_condition(e: Expr | None) -> bool:
    """Whether it is made of names alone, which are of bools where that is asked for elsewhere."""
    if e is None:
        return False
    fits = e.kind in ("name", "choice") or e in (_TRUE, _FALSE) or (e.kind, e.text) in (
        ("unary", "!"), ("binary", "&&"), ("binary", "||")
    )  # fmt: skip
    return fits and all(_is_condition(kid) for kid in e.kids)


def _implied(e: Expr, is_true: bool, bools: set[str]) -> Known:
    """What bools are where a condition is true, or false."""
    if e.kind == "name":
        return {e.text: _TRUE if is_true else _FALSE} if e.text in bools else {}
    if e.kind == "unary" and e.text == "!":
        return _implied(e.kids[0], not is_true, bools)
    if e.kind == "binary" and e.text == ("&&" if is_true else "||"):
        return {**_implied(e.kids[0], is_true, bools), **_implied(e.kids[1], is_true, bools)}
    return {}


def _known_in(e: Expr | None, known: Known) -> Expr | None:
    """An expression with what is known."""
    if e is None or not known:
        return _plain(e)
    if e.kind == "name":
        return known.get(e.text, e)
    kids = tuple(kid for kid in (_known_in(kid, known) for kid in e.kids) if kid is not None)
    return _plain(Expr(e.kind, e.text, kids, e.by))


def _plain(e: Expr | None) -> Expr | None:
    return _not(e.kids[0]) if e is not None and e.kind == "unary" and e.text == "!" and _has_opposite(e.kids[0]) else e


def _has_opposite(e: Expr) -> bool:
    return e in (_TRUE, _FALSE) or (e.kind == "unary" and e.text == "!")


def _written(s: Stmt) -> str:
    """The variable that a statement gives a value, whole; "" of others."""
    if s.kind == "declare":
        return s.name
    return s.place.text if s.kind == "assign" and s.place is not None and s.place.kind == "name" else ""


def _all_written(body: tuple[Stmt, ...]) -> set[str]:
    return {_written(s) for s in statements(body)} - {""}


def _all_names(body: tuple[Stmt, ...]) -> set[str]:
    """What statements look at."""
    return {name for s in statements(body) for name in names_in(s.value) | (set() if _written(s) else names_in(s.place))}


def _forget(known: Known, names: set[str]) -> None:
    """Drops what is known of these, and by these."""
    for name in [n for n, e in known.items() if n in names or names & names_in(e)]:
        del known[name]
