"""Whole numbers that are one of two, and are only compared with them, as bools: a mask says which it is, where numbers would have
to be chosen and compared. Slang's derivatives keep in such numbers why a turn of a loop ended."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from .tree import Case, Expr, Stmt, mapped, number_of, statements

_TYPE = "int32_t"


def with_flags(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """A function's statements, with bools in place of such variables."""
    found = _Numbers()
    for s in statements(body):
        found.see(s)
    flags = found.flags()
    return tuple(_flagged(mapped(s, lambda e: _tested(e, flags)), flags) for s in body) if flags else body


@dataclass
class _Numbers:
    """Of variables by name: what they are given, what they are compared with; and those that stand elsewhere."""

    given: dict[str, set[int | None]] = field(default_factory=dict)
    tests: dict[str, set[int]] = field(default_factory=dict)
    declared: dict[str, int] = field(default_factory=dict)
    others: set[str] = field(default_factory=set)

    def see(self, s: Stmt) -> None:
        if s.kind == "declare" and s.type == _TYPE:
            self.declared[s.name] = self.declared.get(s.name, 0) + 1
        name = _written(s)
        number = None if s.value is None else number_of(s.value)
        if name and s.value is not None:
            self.given.setdefault(name, set()).add(number)
        elif s.place is not None:
            self._expression(s.place)
        if s.value is not None:
            self._expression(s.value)

    def _expression(self, e: Expr) -> None:
        if test := _test(e):
            self.tests.setdefault(test[0], set()).add(test[1])
        elif e.kind == "name":
            self.others.add(e.text)
        else:
            for kid in e.kids:
                self._expression(kid)

    def flags(self) -> dict[str, int]:
        """The numbers that `true` stands for."""
        numbers = {name: {n for n in given if n is not None} for name, given in self.given.items() if None not in given}
        return {
            name: max(two) for name, two in numbers.items()
            if self.declared.get(name) == 1 and name not in self.others and len(two) == 2 and self.tests.get(name, set()) <= two
        }  # fmt: skip


def _written(s: Stmt) -> str:
    """The variable that gets the value of a statement."""
    if s.kind == "declare":
        return s.name
    return s.place.text if s.kind == "assign" and s.place is not None and s.place.kind == "name" else ""


def _test(e: Expr) -> tuple[str, int] | None:
    """The variable and the number of `name == 1` and `name != 1`."""
    if e.kind != "binary" or e.text not in ("==", "!=") or e.by or e.kids[0].kind != "name":
        return None
    number = number_of(e.kids[1])
    return None if number is None else (e.kids[0].text, number)


def _tested(e: Expr, flags: dict[str, int]) -> Expr:
    test = _test(e)
    if test is not None and test[0] in flags:
        flag = Expr("name", test[0])
        return flag if (test[1] == flags[test[0]]) == (e.text == "==") else Expr("unary", "!", (flag,))
    return Expr(e.kind, e.text, tuple(_tested(kid, flags) for kid in e.kids), e.by)


def _flagged(s: Stmt, flags: dict[str, int]) -> Stmt:
    """With what gives these variables their values, in a statement and those in it."""

    def block(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return tuple(_flagged(kid, flags) for kid in body)

    name = _written(s)
    if name in flags:
        value = None if s.value is None else Expr("literal", "true" if number_of(s.value) == flags[name] else "false")
        return replace(s, type="bool" if s.kind == "declare" else s.type, value=value)
    cases = tuple(Case(case.labels, case.is_default, block(case.body)) for case in s.cases)
    return replace(s, body=block(s.body), other=block(s.other), cases=cases)
