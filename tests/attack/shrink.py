"""Makes a failing program smaller while it fails in the same way."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

from .nodes import Node, Program

Path = tuple[int, ...]  # function, then kids


@dataclass(frozen=True)
class Rules:
    """What shrinking must know of a grammar."""

    runs: Callable[[Program], bool]  # whether the reference can run it: all names are declared, break stands in a loop and so on
    simple: Callable[[Program, Path, Node], Iterator[Node]]  # what may stand in place of an expression
    integer: str  # type of the bounds of loops


def shrink(
    program: Program, failing: Callable[[list[Program]], list[Program]], seconds: float, rules: Rules, group: int = 1
) -> Program:
    """The smallest program found in that time. `failing` takes up to `group` programs and gives those that fail."""
    end = time.monotonic() + seconds
    again = True
    while again and time.monotonic() < end:
        again = False
        left = (smaller for smaller in candidates(program, rules) if rules.runs(smaller))
        while time.monotonic() < end and (some := list(islice(left, group))):
            bad = failing(some)
            if bad:
                program, again = min(bad, key=size), True
                break
    return program


def size(program: Program) -> int:
    return sum(1 for _ in program.nodes()) + 3 * len(program.functions) + 3 * len(program.structs) + len(program.main.params)


def candidates(program: Program, rules: Rules) -> Iterator[Program]:
    """Smaller programs, those that take most away first."""
    used = {node.text for node in program.nodes()}
    for at, function in enumerate(program.functions):
        if function.name not in used and not function.owner:
            smaller = program.copy()
            del smaller.functions[at]
            yield smaller
    yield from _without_parts(program, used)
    places = list(_statements(program))
    for path in sorted(places, key=lambda item: -_weight(program, item)):
        yield from _changed_statement(program, path, rules)
    for path in sorted(_expressions(program), key=lambda item: -_weight(program, item)):
        yield from _changed_expression(program, path, rules)


def _without_parts(program: Program, used: set[str]) -> Iterator[Program]:
    types = {node.ty for node in program.nodes()} | {p.ty for f in program.all_functions() for p in f.params}
    for field, names in (("tables", [name for name, _ in program.tables]), ("customs", [c.name for c in program.customs])):
        for at, name in enumerate(names):
            if name not in used:
                smaller = program.copy()
                del getattr(smaller, field)[at]
                yield smaller
    for at, struct in enumerate(program.structs):
        if struct.name not in types:
            smaller = program.copy()
            del smaller.structs[at]
            smaller.functions = [function for function in smaller.functions if function.owner != struct.name]
            yield smaller
    for at, param in enumerate(program.main.params):
        if not any(node.text == param.name for node in program.main.body.walk()):
            smaller = program.copy()
            del smaller.main.params[at]
            yield smaller


def _at(program: Program, path: Path) -> Node:
    node = program.all_functions()[path[0]].body
    for step in path[1:]:
        node = node.kids[step]
    return node


def _weight(program: Program, path: Path) -> int:
    return sum(1 for _ in _at(program, path).walk())


def _walk(node: Node, path: Path) -> Iterator[Path]:
    yield path
    for at, kid in enumerate(node.kids):
        yield from _walk(kid, (*path, at))


def _paths(program: Program) -> Iterator[Path]:
    for number, function in enumerate(program.all_functions()):
        yield from _walk(function.body, (number,))


def _statements(program: Program) -> Iterator[Path]:
    for path in _paths(program):
        if len(path) > 1 and _at(program, path[:-1]).op == "block":
            yield path


def _expressions(program: Program) -> Iterator[Path]:
    for path in _paths(program):
        node = _at(program, path)
        if node.ty and node.op not in ("decl", "const", "empty") and not _is_place(program, path):
            yield path


def _is_place(program: Program, path: Path) -> bool:
    for length in range(2, len(path) + 1):
        parent = _at(program, path[: length - 1])
        if parent.op in ("assign", "step", "mutcall", "xcall", "comp", "field", "index") and (path[length - 1] == 0 or parent.op == "xcall"):
            return True
    return False


def _replaced(program: Program, path: Path, new: list[Node]) -> Program:
    """The program with other nodes in the place of one (several only among statements)."""
    smaller = program.copy()
    parent = _at(smaller, path[:-1])
    parent.kids[path[-1] : path[-1] + 1] = [node.copy() for node in new]
    return smaller


def _changed_statement(program: Program, path: Path, rules: Rules) -> Iterator[Program]:
    node = _at(program, path)
    yield _replaced(program, path, [])
    if node.op == "if":
        yield from (_replaced(program, path, kid.kids) for kid in node.kids[1:])
        if len(node.kids) > 2:
            yield _replaced(program, path, [Node("if", node.kids[:2])])
    if node.op == "switch":
        yield from (_replaced(program, path, kid.kids) for kid in node.kids[1:])
    if node.op == "for":
        init, test, _, body = node.kids
        if init.op != "empty":
            yield _replaced(program, path, [init, *body.kids])
        if test.op == "logic":
            yield from (_replaced(program, (*path, 1), [kid]) for kid in test.kids)
        if test.op == "cmp" and test.kids[1].op == "var":
            bound = Node("const", [], rules.integer, "2")
            yield _replaced(program, (*path, 1, 1), [bound])
    if node.op in ("while", "do"):
        yield _replaced(program, path, node.kids[1].kids)
        if node.kids[0].op == "logic":
            yield from (_replaced(program, (*path, 0), [kid]) for kid in node.kids[0].kids)
    if node.op == "assign" and node.text != "=":
        smaller = program.copy()
        _at(smaller, path).text = "="
        yield smaller


def _changed_expression(program: Program, path: Path, rules: Rules) -> Iterator[Program]:
    node = _at(program, path)
    if len(path) > 1:
        for kid in node.kids:
            if kid.ty == node.ty:
                yield _replaced(program, path, [kid])
    for simple in rules.simple(program, path, node):
        if node.op != "var" or simple.op == "const":
            yield _replaced(program, path, [simple])
