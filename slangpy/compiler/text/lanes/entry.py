"""The loop over invocations of an entry point, for as many invocations at once as there are lanes.

Its body is cut where it calls functions that are written for lanes: what stands between is done for one invocation after the
other, and variables that are needed behind a call are kept for all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .facts import Types
from .functions import LaneFunction, Program
from .parser import Parser, Unit
from .tokens import Unfit, closing
from .tree import Expr, Function, Stmt, text_of
from .varying import BEHIND, LANES, SAME, Analysis, root

_MAIN = "__spy_main"


@dataclass(frozen=True)
class Loop:
    """Of text, from one place to another: `for (index = first; index < last; ...)`."""

    begin: int
    end: int
    index: str
    first: str
    last: str
    body: tuple[Stmt, ...]
    types: Types


def find_loop(unit: Unit) -> Loop:
    """The loop over invocations."""
    if _MAIN not in unit.functions:
        raise Unfit("an entry point")
    begin, end = unit.functions[_MAIN].body
    tokens = unit.tokens
    names: dict[str, str] = {}
    at, before, start = begin, Stmt("call"), 0
    while at < end and tokens[at].text != "for":
        start = at
        parser = Parser(tokens, unit.types, at, end)
        if [t.text for t in tokens[at : at + 2]] == ["_spy_Arguments", "<"]:
            names["_spy_arguments"] = tokens[at + 2].text
        try:
            before = parser.statement()
            at = parser.at
        except Unfit:  # of no interest but for the names
            before, at = Stmt("call"), _behind(unit, at)
        if before.kind == "declare":
            names[before.name] = before.type
    parser = Parser(tokens, unit.types, at, end)
    loop = parser.statement()
    if loop.kind != "loop" or before.kind != "declare" or before.value is None or len(loop.body) < 3:
        raise Unfit("the loop over invocations")
    if [t.text for t in tokens[parser.at : end]] != ["return", ";"]:
        raise Unfit("what follows the loop")
    names |= {s.name: s.type for s in loop.body if s.kind == "declare"}
    last = _last(loop, before.name)
    place = (tokens[start].at, tokens[parser.at - 1].end)
    return Loop(*place, before.name, text_of(before.value), last, loop.body[1:-1], Types(unit, names))


def _behind(unit: Unit, at: int) -> int:
    while unit.tokens[at].text != ";":
        at = closing(unit.tokens, at) if unit.tokens[at].text in "([{" else at
        at += 1
    return at + 1


def _last(loop: Stmt, index: str) -> str:
    """The end of a loop that counts `index` up by one."""
    test, step = loop.body[0], loop.body[-1]
    condition = test.value
    if test.kind != "if" or condition is None or test.body or [s.kind for s in test.other] != ["break"]:
        raise Unfit("the end of the loop")
    if step.kind != "assign" or step.place is None or step.place.text != index or step.value is None:
        raise Unfit("the step of the loop")
    if condition.text != "<" or [k.text for k in step.value.kids] != [index, "1LL"] or step.value.text != "+":
        raise Unfit("the step of the loop")
    if condition.kids[0].text != index or any(s.kind not in ("declare", "assign", "call") for s in loop.body[1:-1]):
        raise Unfit("a statement with others in it")
    return text_of(condition.kids[1])


@dataclass
class Segment:
    """Statements for one invocation after the other, and what is then called for all."""

    statements: list[Stmt] = field(default_factory=list)
    call: Expr | None = None
    function: LaneFunction | None = None

    def names(self) -> set[str]:
        expressions = [e for s in self.statements for e in s.expressions()] + ([self.call] if self.call else [])
        return {part.text for e in expressions for part in e.walk() if part.kind == "name"}


class Entry:
    """The new loop."""

    def __init__(self, program: Program, loop: Loop) -> None:
        self.program = program
        self.loop = loop
        self.own = {s.name: s.type for s in loop.body if s.kind == "declare"}
        shapes = dict.fromkeys([loop.index, *self.own], LANES)
        nothing = Function("", "void", (), (0, 0))
        self.analysis = Analysis(nothing, loop.body, loop.types, shapes, program.wanted, program.writes)
        self.segments = [Segment()]

    def cut(self, for_all: bool) -> None:
        """Fills the segments; `Unfit` where no loop ends at different times, or where order matters."""
        for s in self.loop.body:
            made = None if s.value is None else self._found(s.value, for_all)
            if made is not None:
                segment = self.segments[-1]
                segment.call, segment.function = made
                result = Expr("name", f"_spy_get(_found{len(self.segments)}, _l)")
                self.segments.append(Segment())
                if s.kind == "call" and s.value is segment.call:
                    continue
                assert s.value is not None
                s = Stmt(s.kind, s.type, s.name, s.place, _replaced(s.value, segment.call, result))
            self.segments[-1].statements.append(s)
        if len(self.segments) == 1:
            raise Unfit("no loop that differs")
        effects = [self.program.facts.of_block(self.loop.body, self.loop.types)]  # what is written from outside
        for segment in self.segments[:-1]:
            names = Types(self.program.unit, self.loop.types.names)
            before = tuple(Stmt("declare", t, n) for n, t in self.own.items())
            effects.append(self.program.facts.of_block((*before, *segment.statements), names))
            assert segment.call is not None
            if effects[-1].memory or self.program.facts.is_ordered(segment.call.text):
                raise Unfit("a store")

    def _found(self, e: Expr, for_all: bool) -> tuple[Expr, LaneFunction] | None:
        for part in e.walk():
            if part.kind != "call" or part.text not in self.program.unit.functions:
                continue
            shapes = tuple(self.analysis.shape(kid) for kid in part.kids)
            if all(shape == SAME for shape in shapes) or any(shapes[k] == SAME for k in self.program.writes(part.text)):
                continue
            made = self.program.lanes(part.text, shapes)
            if made is not None and (made.is_divergent or for_all):
                return part, made
        return None

    # --- text

    def text(self) -> str:
        loop = self.loop
        used = [segment.names() for segment in self.segments]
        for k, segment in enumerate(self.segments[:-1]):  # copied back behind the call
            used[k + 1] |= {root(target).text for _, target in self._behind(segment)}
        declared = {s.name: k for k, segment in enumerate(self.segments) for s in segment.statements if s.kind == "declare"}
        kept = [n for n, k in declared.items() if any(n in names for names in used[k + 1 :])]
        lines = [f"for (int64_t _begin = {loop.first}; _begin < {loop.last}; _begin += SPY_LANES)", "{"]
        lines += [f"const int _n = {loop.last} - _begin < SPY_LANES ? int({loop.last} - _begin) : SPY_LANES;"]
        lines += [f"{self.own[name]} {name}_kept[SPY_LANES];" for name in kept]
        for k, segment in enumerate(self.segments):
            lines += self._segment(k, segment, [n for n in kept if n in used[k]], set(kept))
        return "\n".join([*lines, "}"]) + "\n"

    def _behind(self, segment: Segment) -> list[tuple[int, Expr]]:
        """Variables that the function for lanes writes, by argument."""
        found = []
        for k, kid in enumerate(segment.call.kids if segment.call else ()):
            if self.analysis.shape(kid) == BEHIND:
                if kid.kind != "unary":
                    raise Unfit("an address")
                found.append((k, kid.kids[0]))
        return found

    def _segment(self, at: int, segment: Segment, used: list[str], kept: set[str]) -> list[str]:
        own = {s.name for s in segment.statements if s.kind == "declare"}
        lines = ["for (int _l = 0; _l < _n; _l++)", "{", f"const int64_t {self.loop.index} = _begin + _l;"]
        lines += [f"{self.own[name]}& {name} = {name}_kept[_l];" for name in sorted(set(used) | (own & kept))]
        if any(self._is_called(s) for s in segment.statements):
            lines.append('__asm__ volatile("");')  # as without lanes: no vector instructions, whose functions have other bits
        if at:
            lines += [f"{text_of(place)} = _spy_get(_given{at}_{k}, _l);" for k, place in self._behind(self.segments[at - 1])]
        for s in segment.statements:
            lines += self._statement(s, kept)
        if segment.call is None or segment.function is None:
            return [*lines, "}"]
        function = self.program.unit.functions[segment.call.text]
        behind = dict(self._behind(segment))
        head, given = [], []
        for k, (kid, (type, _)) in enumerate(zip(segment.call.kids, function.parameters, strict=True)):
            if self.analysis.shape(kid) == SAME:
                given.append(text_of(kid))
                continue
            name = f"_given{at + 1}_{k}"
            value = behind.get(k, kid)
            head.append(f"{self.program.structs.many(type[:-1] if k in behind else type)} {name};")
            lines.append(f"_spy_put({name}, _l, {text_of(value)});")
            given.append(f"&{name}" if k in behind else name)
        call = f"{segment.function.name}({', '.join(['_spy_first_lanes(_n)', *given])});"
        return [*head, *lines, "}", call if function.result == "void" else f"const auto _found{at + 1} = {call}"]

    def _is_called(self, s: Stmt) -> bool:
        """Whether a statement calls more than the library's functions that read and write."""
        calls = {part.text for e in s.expressions() for part in e.walk() if part.kind == "call"}
        return any(n in self.program.unit.functions and not n.startswith("_spy_Storage_") for n in calls)

    def _statement(self, s: Stmt, kept: set[str]) -> list[str]:
        value = "" if s.value is None else text_of(s.value)
        if s.kind == "declare" and s.name in kept:
            return [f"{s.name} = {value};"] if value else []
        if s.kind == "declare":
            return [f"{s.type} {s.name}{' = ' + value if value else ''};"]
        return [f"{value};" if s.place is None else f"{text_of(s.place)} = {value};"]


def _replaced(e: Expr, old: Expr, new: Expr) -> Expr:
    if e is old:
        return new
    return Expr(e.kind, e.text, tuple(_replaced(kid, old, new) for kid in e.kids), e.by)
