"""The loop over invocations of an entry point, for as many invocations at once as there are lanes.

Its body is cut where it calls functions that are written for lanes: what stands between is done for one invocation after the
other, and variables that are needed after a call are kept for all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .facts import Types
from .functions import LaneFunction, Program, may_leave
from .parser import Parser, Unit
from .tokens import Unfit, closing
from .tree import Expr, Function, Stmt, lines_of, statements, text_of
from .varying import BEHIND, LANES, SAME, Analysis, root

_MAIN = "__spy_main"
_SIMPLE = ("declare", "assign", "call")


@dataclass(frozen=True)
class Loop:
    """Of text, from one place to another: `for (; index < last; index++, counter++ ...)`. counters: without the index.
    carried: other variables from outside that it writes."""

    begin: int
    end: int
    index: str
    last: str
    counters: tuple[str, ...]
    carried: frozenset[str]
    body: tuple[Stmt, ...]
    types: Types


def find_loop(unit: Unit) -> Loop:
    """The loop over invocations: the longest one of the entry point, or the longest one in that."""
    if _MAIN not in unit.functions:
        raise Unfit("an entry point")
    begin, end = unit.functions[_MAIN].body
    names: dict[str, str] = {}
    while True:
        begin, end = _longest(unit, begin, end, names)
        parser = Parser(unit.tokens, unit.types, begin, end)
        loop = parser.statement()
        try:
            return _loop(loop, (unit.tokens[begin].at, unit.tokens[end - 1].end), Types(unit, names))
        except Unfit:
            begin, end = begin + _HEAD, end - 1


_HEAD = len(("for", "(", ";", ";", ")", "{"))


def _longest(unit: Unit, begin: int, end: int, names: dict[str, str]) -> tuple[int, int]:
    """The tokens of the longest loop between others. names: gets the types of variables declared here."""
    tokens, at, found = unit.tokens, begin, (begin, begin)
    while at < end:
        if tokens[at].text == "for":
            behind = closing(tokens, at + _HEAD - 1) + 1
            found = max(found, (at, behind), key=lambda part: part[1] - part[0])
            at = behind
            continue
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
    if found[0] == found[1]:
        raise Unfit("the loop over invocations")
    return found


def _behind(unit: Unit, at: int) -> int:
    while unit.tokens[at].text not in ";}":
        at = closing(unit.tokens, at) if unit.tokens[at].text in "([" else at
        if unit.tokens[at].text == "{":
            return closing(unit.tokens, at) + 1
        at += 1
    return at + 1


def _loop(loop: Stmt, place: tuple[int, int], types: Types) -> Loop:
    """A loop whose statements run in order, and that counts its index up by one."""
    test = loop.body[0] if loop.body else loop
    condition = test.value
    if test.kind != "if" or condition is None or test.body or [s.kind for s in test.other] != ["break"]:
        raise Unfit("the end of the loop")
    index = condition.kids[0].text if condition.text == "<" else ""
    declared = {s.name: s for s in statements(loop.body) if s.kind == "declare"}
    carried = {root(s.place).text for s in statements(loop.body) if s.place is not None} - set(declared)
    counters = {name for name in carried if _is_counter(name, loop.body, declared)}
    ends = {part.text for part in condition.kids[1].walk() if part.kind == "name"}
    if index not in counters or ends & (carried | set(declared)) or any(may_leave(s) for s in loop.body[1:]):
        raise Unfit("the step of the loop")
    body = tuple(s for s in loop.body[1:] if s.place is None or s.place.text not in counters)
    names = {**types.names, **{name: s.type for name, s in declared.items()}}
    others = tuple(sorted(counters - {index}))
    return Loop(*place, index, text_of(condition.kids[1]), others, frozenset(carried - counters), body, Types(types.unit, names))


def _is_counter(name: str, body: tuple[Stmt, ...], declared: dict[str, Stmt]) -> bool:
    """Whether a variable is counted up by one, after all that looks at it."""
    steps = [s for s in statements(body) if s.place is not None and root(s.place).text == name]
    if len(steps) != 1 or steps[0] not in body or steps[0].place is None or steps[0].place.kind != "name":
        return False
    at, value = body.index(steps[0]), steps[0].value
    if value is not None and value.kind == "name" and value.text in declared:
        value = declared[value.text].value
    rest = (part.text for s in statements(body[at + 1 :]) for e in s.expressions() for part in e.walk() if part.kind == "name")
    is_step = value is not None and value.text == "+" and [kid.text for kid in value.kids] == [name, "1LL"]
    return is_step and name not in rest


@dataclass
class Segment:
    """Statements for one invocation after the other, and what is then called for all."""

    statements: list[Stmt] = field(default_factory=list)
    call: Expr | None = None
    function: LaneFunction | None = None

    def names(self) -> set[str]:
        expressions = [e for s in statements(tuple(self.statements)) for e in s.expressions()]
        expressions += [self.call] if self.call else []
        return {part.text for e in expressions for part in e.walk() if part.kind == "name"}


class Entry:
    """The new loop."""

    def __init__(self, program: Program, loop: Loop) -> None:
        self.program = program
        self.loop = loop
        self.same = tuple(s for s in loop.body if self._is_same(s))
        same = {s.name for s in self.same}
        self.own = {s.name: s.type for s in loop.body if s.kind == "declare" and s.name not in same}
        inner = [s.name for s in statements(loop.body) if s.kind == "declare" and s.name not in same]
        shapes = dict.fromkeys([loop.index, *loop.counters, *loop.carried, *inner], LANES)
        nothing = Function("", "void", (), (0, 0))
        self.analysis = Analysis(nothing, loop.body, loop.types, shapes, program.wanted, program.writes)
        self.segments = [Segment()]

    def _is_same(self, s: Stmt) -> bool:
        """Whether a statement declares a struct that is the same for all elements, as tensors are: it stands before the loop."""
        if s.kind != "declare" or s.type not in self.program.unit.structs or s.value is None or s.value.kind not in ("name", "member"):
            return False
        source = root(s.value)
        inner = list(statements(self.loop.body))
        if source.kind != "name" or source.text in {kid.name for kid in inner} | {self.loop.index, *self.loop.counters, *self.loop.carried}:
            return False
        given = [
            root(part.kids[k]).text for kid in inner for e in kid.expressions() for part in e.walk()
            if part.kind == "call" for k in self.program.writes(part.text)
        ]  # fmt: skip
        written = {root(kid.place).text for kid in inner if kid.place is not None}
        return not {s.name, source.text} & written.union(given)

    def cut(self, for_all: bool) -> None:
        """Fills the segments; `Unfit` where no loop ends at different times, or where order matters."""
        for s in self.loop.body:
            if s in self.same:
                continue
            made = None if s.value is None or s.kind not in _SIMPLE else self._found(s.value, for_all)
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
        facts, types, carried = self.program.facts, self.loop.types, self.loop.carried
        facts.of_block(self.loop.body, types, carried)  # what is written from outside
        for segment in self.segments[:-1]:
            before = (*self.same, *(Stmt("declare", type, name) for name, type in self.own.items()))
            effects = facts.of_block((*before, *segment.statements), types)
            assert segment.call is not None
            if effects.memory or facts.is_ordered(segment.call.text) or segment.names() & carried:
                raise Unfit("a store")

    def _found(self, e: Expr, for_all: bool) -> tuple[Expr, LaneFunction] | None:
        functions, facts = self.program.unit.functions, self.program.facts
        calls = [part for part in e.walk() if part.kind == "call" and part.text in functions]
        looping = [facts.has_loops(part.text) for part in calls]
        first = [part for part, has_loops in zip(calls, looping, strict=True) if has_loops]
        others = [part for part, has_loops in zip(calls, looping, strict=True) if not has_loops] if for_all else []
        for part in (*first, *others):
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
        for k, segment in enumerate(self.segments[:-1]):  # copied back after the call
            used[k + 1] |= {root(target).text for _, target in self._behind(segment)}
        declared = {s.name: k for k, segment in enumerate(self.segments) for s in segment.statements if s.kind == "declare"}
        kept = [n for n, k in declared.items() if any(n in names for names in used[k + 1 :])]
        kept = [n for n in kept if not self._comes_back(n, declared[n], used)]
        for name in kept:
            self.program.structs.check_size(self.own[name])
        lines = [f"const int64_t _from = {loop.index};"] + [f"const int64_t {name}_from = {name};" for name in loop.counters]
        lines += lines_of(self.same)
        lines += [f"for (int64_t _begin = _from; _begin < {loop.last}; _begin += SPY_LANES)", "{"]
        lines += [f"const int _n = {loop.last} - _begin < SPY_LANES ? int({loop.last} - _begin) : SPY_LANES;"]
        lines += [f"{self.own[name]} {name}_kept[SPY_LANES];" for name in kept]
        for k, segment in enumerate(self.segments):
            lines += self._segment(k, segment, [n for n in kept if n in used[k]], set(kept))
        after = [f"{name} = {name}_from + ({loop.last} - _from);" for name in loop.counters]
        after = [f"if (_from < {loop.last})", "{", *after, f"{loop.index} = {loop.last};", "}"]
        return "\n".join([*lines, "}", *after]) + "\n"

    def _comes_back(self, name: str, at: int, used: list[set[str]]) -> bool:
        """Whether a variable of one segment goes on as what the function for lanes wrote of it, in the next segment and no other."""
        whole = any(target == Expr("name", name) for _, target in self._behind(self.segments[at]))
        return whole and not any(name in names for names in used[at + 2 :])

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
        lines += [f"const int64_t {name} = {name}_from + ({self.loop.index} - _from);" for name in self.loop.counters]
        lines += [f"{self.own[name]}& {name} = {name}_kept[_l];" for name in sorted(set(used) | (own & kept))]
        if any(self._is_called(s) for s in segment.statements):
            lines.append('__asm__ volatile("");')  # as without lanes: no vector instructions, whose functions have other bits
        for k, place in self._behind(self.segments[at - 1]) if at else ():
            anew = f"{self.own[place.text]} " if place.text in self.own and place.text not in kept and place.kind == "name" else ""
            lines.append(f"{anew}{text_of(place)} = _spy_get(_given{at}_{k}, _l);")
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
        """Whether a statement calls more than functions that read, write and add."""
        calls = {part.text for kid in statements((s,)) for e in kid.expressions() for part in e.walk() if part.kind == "call"}
        return any(n in self.program.unit.functions and not self.program.facts.only_moves(n) for n in calls)

    def _statement(self, s: Stmt, kept: set[str]) -> list[str]:
        value = "" if s.value is None else text_of(s.value)
        if s.kind == "declare" and s.name in kept:
            return [f"{s.name} = {value};"] if value else []
        if s.kind == "declare":
            return [f"{s.type} {s.name}{' = ' + value if value else ''};"]
        return lines_of((s,))


def _replaced(e: Expr, old: Expr, new: Expr) -> Expr:
    if e is old:
        return new
    return Expr(e.kind, e.text, tuple(_replaced(kid, old, new) for kid in e.kids), e.by)
