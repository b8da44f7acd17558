"""Branches that ask the same thing one after the other, as one; and variables declared where they are used.

Slang writes a branch anew for each variable that a side of it decides. In lanes each asks for a mask of its own, and what one leaves
for the next is chosen from both sides. A variable of one side needs no choice: lanes of the other side never look at it.
"""

from __future__ import annotations

from dataclasses import replace

from .tree import Case, Expr, Stmt, names_in, pointed_in, statements


def with_fewer_branches(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """A function's statements, with such branches and variables."""
    return _sunk(_joined(body, pointed_in(body)))


def _mapped(s: Stmt, body: tuple[Stmt, ...], other: tuple[Stmt, ...], cases: list[tuple[Stmt, ...]]) -> Stmt:
    made = (Case(case.labels, case.is_default, part) for case, part in zip(s.cases, cases, strict=True))
    return replace(s, body=body, other=other, cases=tuple(made))


# --- branches


def _joined(body: tuple[Stmt, ...], pointed: set[str]) -> tuple[Stmt, ...]:
    made: list[Stmt] = []
    declared: list[Stmt] = []  # behind the last statement of `made`, in front of which they can stand
    for s in body:
        if s.kind == "declare" and s.value is None:
            declared.append(s)
            continue
        one = _one(made[-1], s, pointed) if made else None
        if one is not None:
            made[-1:] = [*declared, one]
        else:
            made += [*declared, s]
        declared = []
    made += declared
    return tuple(_inside(s, pointed) for s in made)


def _inside(s: Stmt, pointed: set[str]) -> Stmt:
    if not s.parts():
        return s
    return _mapped(s, _joined(s.body, pointed), _joined(s.other, pointed), [_joined(case.body, pointed) for case in s.cases])


def _one(first: Stmt, second: Stmt, pointed: set[str]) -> Stmt | None:
    """Two branches as one; None where the second may ask something else."""
    if first.kind != "if" or second.kind != "if" or first.value is None or second.value is None:
        return None
    (a, is_same), (b, is_too) = _asked(first.value), _asked(second.value)
    if a != b or a.kind != "name" or a.text in pointed | _written((*first.body, *first.other)):
        return None
    body, other = (second.body, second.other) if is_same == is_too else (second.other, second.body)
    return replace(first, body=(*first.body, *body), other=(*first.other, *other))


def _asked(e: Expr) -> tuple[Expr, bool]:
    """What is asked for, and whether it is to be true."""
    is_true = True
    while e.kind == "unary" and e.text == "!":
        e, is_true = e.kids[0], not is_true
    return e, is_true


def _written(body: tuple[Stmt, ...]) -> set[str]:
    return {s.place.text for s in statements(body) if s.place is not None and s.place.kind == "name"}


# --- declarations


def _sunk(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    left = list(body)
    bare = [s for s in body if s.kind == "declare" and s.value is None]
    named = [_names((s,)) for s in left] if bare else []
    for s in bare:
        at = [k for k, names in enumerate(named) if s.name in names]
        branch = left[at[0]] if len(at) == 1 else s
        if branch.kind == "if" and branch.value is not None and s.name not in names_in(branch.value):
            inner, other = ((s, *part) if s.name in _names(part) else part for part in (branch.body, branch.other))
            left[at[0]] = replace(branch, body=inner, other=other)
            del named[left.index(s)]
            left.remove(s)
    return tuple(_mapped(s, _sunk(s.body), _sunk(s.other), [_sunk(case.body) for case in s.cases]) if s.parts() else s for s in left)


def _names(body: tuple[Stmt, ...]) -> set[str]:
    return {name for s in statements(body) for e in s.expressions() for name in names_in(e)}
