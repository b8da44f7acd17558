"""Functions of a kernel, written for many invocations at once."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from .counters import DOWN, UP, is_counter, read_again, turns_left
from .expressions import Expressions
from .facts import Facts
from .given import Given
from .lifetimes import Lives, Rows, lives_of
from .parser import Unit
from .structs import Structs
from .tokens import Unfit
from .tree import NATIVE, Case, Expr, Stmt, is_native, lines_of, statements, text_of
from .varying import BEHIND, LANES, SAME, Analysis, Shapes, root
from .weights import weight_of

_AT_ONCE = 8
"""Turns after which a loop looks whether only few lanes are left in it."""
_LIGHT = 5
"""Operations of a branch that is not asked whether any lane takes it: as many as a wrong guess of a processor costs."""
_LIKELY = 60
"""And of one that nearly all lanes take, in nearly all turns of a loop."""
_RESULT = re.compile(r"\b_r\b")
_TURNS = 4
"""Of a loop that ends for all lanes at once, for want of a better number."""


class Program:
    """The functions of a kernel, and those that were written for lanes so far."""

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.facts = Facts(unit)
        self.structs = Structs(unit)
        self.analyses: dict[tuple[str, Shapes], Analysis | None] = {}
        self.made: dict[tuple[str, Shapes], LaneFunction | None] = {}
        self.written = 0

    def text(self, used: list[LaneFunction]) -> str:
        """Of these functions, and all that they call."""
        names, left = set[str](), list(used)
        while left:
            function = left.pop()
            if function.name not in names:
                names.add(function.name)
                left += function.calls
        made = [f for f in self.made.values() if f is not None and f.name in names]
        return "".join(self.structs.texts.values()) + "".join(f.text for f in sorted(made, key=lambda f: f.place))

    def writes(self, name: str) -> set[int]:
        return self.facts.of(name).parameters if name in self.unit.functions else set()

    def analysed(self, name: str, shapes: Shapes) -> Analysis | None:
        """Of a function for lanes; None where it is called for one lane after the other."""
        key = (name, shapes)
        if key not in self.analyses:
            self.analyses[key] = None  # of a function that calls itself
            try:
                function = self.unit.functions[name]
                given = {n: shape for (_, n), shape in zip(function.parameters, shapes, strict=True) if shape != SAME}
                made = Analysis(function, self.unit.body(name), self.facts.types(name), given, self.wanted, self.writes)
                made.run()
                self.analyses[key] = made
            except Unfit:
                pass
        return self.analyses[key]

    def wanted(self, name: str, shapes: Shapes) -> set[int]:
        """The pointers among the arguments of a call that have to point to lanes, and do not yet."""
        if all(shape == SAME for shape in shapes):
            return set()
        analysis = self.analysed(name, shapes)
        return self.writes(name) if analysis is None else analysis.wants

    def lanes(self, name: str, shapes: Shapes) -> LaneFunction | None:
        """The function for lanes; None where it is called for one lane after the other."""
        key = (name, shapes)
        if key not in self.made:
            self.made[key] = None
            analysis = self.analysed(name, shapes)
            if analysis is not None and not analysis.wants:
                try:
                    made = LaneFunction(self, analysis, f"{name}_lanes_{len(self.made)}", shapes)
                    made.text = made.write()
                    made.place = self.written = self.written + 1
                    self.made[key] = made
                except Unfit:
                    pass
        return self.made[key]


@dataclass
class _Around:
    """A loop or switch around a statement. mask: of the lanes in it."""

    kind: str
    mask: str
    is_varying: bool
    counter: str = ""
    """What a loop that counts has declared for its turn."""
    own: frozenset[str] = frozenset()
    """Variables that are only used here from now on: what those of lanes that have left are is of no interest."""


@dataclass
class LaneFunction(Expressions):
    """One function for lanes, and what is known of it."""

    name: str
    shapes: Shapes
    homes: dict[str, str] = field(default_factory=dict)
    """Where a variable was declared: the mask that stood there."""
    text: str = ""
    place: int = 0
    """In the order of functions: after what it calls."""
    masks: int = 0
    has_returned: bool = False
    """Lanes have left what is written so far."""
    around: list[_Around] = field(default_factory=list)
    lives: Lives = field(default_factory=Lives)
    likely: set[Expr] = field(default_factory=set)
    """What says whether a loop has another turn."""
    wholes: set[str] = field(default_factory=set)
    """Those that others stand in, once they are declared."""
    given: Given = field(default_factory=Given)

    def write(self) -> str:
        function = self.analysis.function
        self.is_divergent = any(self.analysis.loops.values())
        for name, shape in self.analysis.shapes.items():
            type = self.analysis.types.names[name]
            self.program.structs.check_size(type[:-1] if shape == BEHIND else type)
        parameters = [f"{self._parameter(t, s)} {n}" for (t, n), s in zip(function.parameters, self.shapes, strict=True)]
        for (_, name), shape in zip(function.parameters, self.shapes, strict=True):
            self.homes[name] = "" if shape == BEHIND else "_m"
        is_void = function.result == "void"
        result = "void" if is_void else self.many(function.result)
        lines = [f"static {result} {self.name}({', '.join(['_spy_mask _m', *parameters])})", "{", "_spy_mask _gone(false);"]
        last = "return;" if is_void else "return _r;"
        self.lives = lives_of([name for _, name in function.parameters], self.analysis.body, self._is_large, self._is_filled_later)
        self.likely = turns_left(self.analysis.body)
        body = self.block(self.analysis.body, "_m", last)
        # structs that are returned are made where they go; numbers would leave their registers for that
        is_small = is_void or is_native(function.result)
        if is_small or not (body and body[-1].startswith("return ")):
            body.append(last)
        if not is_void and (is_small or any(_RESULT.search(line) for line in body)):
            lines.append(f"{result} _r{'{}' if is_native(function.result) else ''};")
        return "\n".join([*lines, *body, "}"]) + "\n"

    def _is_large(self, name: str) -> bool:
        """Whether a variable has parts in lanes."""
        type = self.analysis.types.names[name]
        return self.analysis.shapes.get(name) == LANES and not is_native(type) and self.program.structs.is_open(type)

    def _is_filled_later(self, rows: Rows) -> bool:
        is_row = self.analysis.shape(rows.array) == LANES and self.direct_place(rows.array) is not None
        return is_row and self.analysis.loops[id(rows.loop)] and is_native(self.analysis.types.of(rows.first.place or rows.array))

    def _parameter(self, type: str, shape: str) -> str:
        if shape == BEHIND:
            return f"{self.many(type[:-1])}*"
        return self.many(type) if shape == LANES else type

    # --- statements

    def new_mask(self) -> str:
        self.masks += 1
        return f"_m{self.masks}"

    def block(self, body: tuple[Stmt, ...], mask: str, end: str) -> list[str]:
        """end: the statement that goes where this mask ends; "" where no lane leaves."""
        lines: list[str] = []
        for k, s in enumerate(body):
            self.given.forget_pointed(s)
            if s.kind in ("declare", "assign", "call"):
                made = self._simple(s, mask)
                lines += [*self.flush(), made]
            elif s.kind == "if":
                is_end = k + 1 == len(body) or self.is_light(body[k + 1 :])  # not worth asking whether a lane is left
                lines += self._branch(s, mask, "" if is_end else end)
            elif s.kind == "loop":
                lines += self._loop(s, mask, end)
            elif s.kind == "switch":
                lines += self._switch(s, mask, end)
            elif s.kind == "return":
                lines += self._return(s, mask)
            else:
                lines += self._leave(s.kind, mask)
        return lines

    def _simple(self, s: Stmt, mask: str) -> str:
        if s.kind == "declare":
            return self._declaration(s, mask)
        if s.kind == "assign":
            return self._assignment(s, mask)
        assert s.value is not None
        return self.statement(s.value, mask)

    def _return(self, s: Stmt, mask: str) -> list[str]:
        lines: list[str] = []
        is_whole = mask == "_m" and not self.has_returned
        self.has_returned = True
        if s.value is not None:
            value = self.value(s.value, self.analysis.function.result, mask)
            if is_whole:  # all lanes that came
                return [*self.flush(), f"return {value};"]
            lines = [*self.flush(), f"_spy_set({mask}, _r, {value});"]
        return [*lines, f"_gone = _gone | {mask};", f"{mask} = _spy_mask(false);"]

    def _declaration(self, s: Stmt, mask: str) -> str:
        self.homes[s.name] = mask
        if is_counter(s.name) and any(a.counter == s.name for a in self.around):
            return ""  # declared around the loop
        if self.analysis.shapes.get(s.name, SAME) == SAME:
            return f"{s.type} {s.name}{'' if s.value is None else ' = ' + text_of(s.value)};"
        type = self.many(s.type)
        if any(whole == s.name for whole, _ in self.lives.parts.values()):
            return self._declared(s.name)
        if s.name in self.wholes:
            return ""  # it stands there
        if s.name in self.lives.parts:
            whole, place = self.lives.parts[s.name]
            self.homes[whole] = mask
            lines = f"{self._declared(whole)} auto& {s.name} = {text_of(place)};"
            return lines if s.value is None else f"{lines} {s.name} = {self.value(s.value, s.type, mask)};"
        if s.value is None:
            if is_native(s.type):
                self.given.paths[s.name] = None
            return f"{type} {s.name}{'{}' if is_native(s.type) else ''};"
        value = self.value(s.value, s.type, mask)
        if self.before and self.before[-1].startswith(f"const auto {value} = "):  # made where it stays
            value = self.before.pop().split(" = ", 1)[1].removesuffix(";")
        if s.name in self.lives.ends:
            return self._overlaid(s.name, value)
        return f"{type} {s.name} = {value};"

    def _overlaid(self, name: str, value: str) -> str:
        """The declaration of a variable with that of a later one, in one place so that a part of both is the same."""
        whole, there, here = self.lives.ends[name]
        self.wholes.add(whole)
        types = [self.many(self.analysis.types.names[n]) for n in (name, whole)]
        parts = [f"__builtin_offsetof({type}, {text_of(e).split('.', 1)[1]})" for type, e in zip(types, (here, there), strict=True)]
        both = f"_both_{name}"
        lines = f"_spy_overlaid<{', '.join([*types, *parts])}> {both}; auto& {name} = *new ({both}.first()) {types[0]}({value});"
        return f"{lines} auto& {whole} = {both}.second();"

    def _declared(self, name: str) -> str:
        """The declaration of a variable that others stand in, in front of the first of these; "" where it stands already."""
        if name in self.wholes:
            return ""
        self.wholes.add(name)
        return f"{self.many(self.analysis.types.names[name])} {name};"

    def _assignment(self, s: Stmt, mask: str) -> str:
        assert s.place is not None and s.value is not None
        if self.shape(s.place) == SAME and self.shape(s.value) == SAME:
            return f"{text_of(s.place)} = {text_of(s.value)};"
        if s.value.kind == "name" and self.lives.parts.get(s.value.text, ("", s.value))[1] is s.place:
            return ""  # it stands there
        if any(rows.fill is s for rows in self.lives.filled):
            if self._is_alone(s.place, mask):
                return ""  # behind the loop
            self.lives.filled = [rows for rows in self.lives.filled if rows.fill is not s]
        end = self.lives.ends.get(root(s.value).text)
        if end is not None and end[1] is s.place and end[2] is s.value:
            parts = f"{text_of(s.place)}, {text_of(s.value)}"
            return f"if constexpr (!decltype(_both_{root(s.value).text})::is_same) _spy_copy({parts});"
        type = self.analysis.types.of(s.place)
        is_first, chosen = self.given.first(s.place)
        place = self.direct_place(s.place)
        if place is None or not type:
            return self.store_at(s.place, s.value, mask) or self.store(s.place, s.value, mask)
        is_whole = is_first or self._is_alone(s.place, mask)
        if is_whole and self.shape(s.value) == SAME and not is_native(type):
            return f"_spy_fill({place}, {text_of(s.value)});"
        value = self.value(s.value, type, mask)
        rows = next((rows for rows in self.lives.filled if rows.first is s), None)
        if rows is not None:
            array, at = self.direct_place(rows.array), text_of(s.place.kids[1])
            return f"_spy_first({mask}, {array}, {at}, {value}, {self.value(rows.value, type, mask)});"
        if is_whole:  # lanes that are gone from here never look again
            return f"{place} = {value};" if is_native(type) else f"_spy_copy({place}, {value});"
        around, set_where = self.given.asked.get(mask, ("", ""))
        if set_where and is_native(type) and (chosen or self._is_alone(s.place, around)):  # nor do those that did not come to the branch
            return f"{set_where}, {place}, {value});"
        return f"_spy_set({mask}, {place}, {value});"

    def _is_alone(self, place: Expr, mask: str) -> bool:
        """Whether only lanes of this mask look at a variable from here on: it is declared here, or it is the loop's around this
        statement, and gets a value for all lanes that are still in that."""
        loop, name = next((a for a in reversed(self.around) if a.is_varying), None), root(place).text
        is_own = loop is not None and loop.mask == mask and name in loop.own and self.analysis.shapes.get(name) == LANES
        return is_own or self.homes.get(name) == mask

    def _leave(self, kind: str, mask: str) -> list[str]:
        target = self.around[-1] if kind == "break" else next(a for a in reversed(self.around) if a.kind == "loop")
        if not target.is_varying:
            return [f"{kind};"]
        back = target.kind == "switch" or kind == "continue"
        if target.kind == "switch":
            self.given.paths.clear()  # they come back with what they have
        lines = [f"{target.mask}_on = {target.mask}_on | {mask};"] if back else []
        return [*lines, f"{mask} = _spy_mask(false);"]

    def _check(self, mask: str, end: str) -> list[str]:
        return [f"if (!_spy_any({mask})) {end}"] if end else []

    def _branch(self, s: Stmt, mask: str, end: str) -> list[str]:
        assert s.value is not None
        leaves = may_leave(s)
        if self.shape(s.value) == SAME:
            lines = [f"if ({text_of(s.value)})", "{", *self.block(s.body, mask, end), "}"]
            if s.other:
                lines += ["else", "{", *self.block(s.other, mask, end), "}"]
            return [*lines, *self._check(mask, end)] if leaves else lines
        first, second = self.new_mask(), self.new_mask()
        condition = self.value(s.value, "bool", mask)
        lines = [*self.flush(), f"const _spy_mask {first}_if = {condition};"]
        lines += [f"_spy_mask {first} = {mask} & {first}_if;", f"_spy_mask {second} = {mask} & !{first}_if;"]
        always = [self.is_light(s.body, _LIKELY if s.value in self.likely else _LIGHT), self.is_light(s.other)]
        needs_masks = leaves or any(part and not a for part, a in zip((s.body, s.other), always, strict=True))
        for name, body, is_always in ((first, s.body, always[0]), (second, s.other, always[1])):
            self.given.enter(name)
            if not needs_masks:
                self.given.asked[name] = (mask, f"_spy_set{'' if name == first else '_unless'}({first}_if")
            if is_always:
                self.always += 1
                lines += ["{", *self.block(body, name, ""), "}"]
                self.always -= 1
            elif body:
                lines += [f"if (_spy_any({name})) do", "{", *self.block(body, name, "break;"), "} while (false);"]
            self.given.leave()
        return [*lines, f"{mask} = {first} | {second};", *self._check(mask, end)] if leaves else lines

    def is_light(self, body: tuple[Stmt, ...], most: int = _LIGHT) -> bool:
        """Whether statements are done for lanes that do not need them as well as for those that do: they only compute, and less
        than to ask takes."""
        return bool(body) and weight_of(body, self.analysis) <= most

    def _loop(self, s: Stmt, mask: str, end: str) -> list[str]:
        loop = _Around("loop", self.new_mask(), self.analysis.loops[id(s)])
        self.around.append(loop)
        self.depth += loop.is_varying
        self.given.paths.clear()
        counter = next((kid.name for kid in s.body[:2] if s.name and kid.kind == "declare"), "")
        loop.counter = counter if loop.is_varying else ""
        loop.own = self.lives.own.get(id(s), frozenset()) if s.type != DOWN else loop.own  # there, lanes come later
        if loop.is_varying and s.type == DOWN:
            lines = self._down(s, loop, mask)
        elif not loop.is_varying:
            self.turns *= _TURNS
            lines = ["for (;;)", "{", *self.block(s.body, mask, ""), "}"]
            self.turns //= _TURNS
        else:
            lines, after = [f"_spy_mask {loop.mask} = {mask};"], f"{loop.mask}_n++"
            if s.type == UP:
                assert s.value is not None
                lines.append(f"int32_t {counter} = {text_of(s.value)};")
                after += f", {counter} = {self._stepped(s, counter)}"
            lines += [f"for (int {loop.mask}_n = 1; _spy_any({loop.mask}); {after})", "{"]
            few = f"if ({loop.mask}_n % {_AT_ONCE} == 0 && _spy_count({loop.mask}) <= SPY_FEW_LANES)"
            rest = [self._fill(rows, counter, mask) for rows in self.lives.filled if rows.loop is s]
            lines += [few, "{", *rest, *self._few(s, loop.mask), *[f"{counter} = INT32_MAX;"] * bool(rest), "break;", "}"]
            lines.append(f"_spy_mask {loop.mask}_on(false);")
            lines += ["do {", *self.block(s.body, loop.mask, "break;"), "} while (false);"]
            lines += [f"{loop.mask} = {loop.mask} | {loop.mask}_on;", "}", *rest]
            if may_leave(s):
                lines += [f"{mask} = {mask} & !_gone;", *self._check(mask, end)]
        self.depth -= loop.is_varying
        self.around.pop()
        return lines

    def _fill(self, rows: Rows, counter: str, mask: str) -> str:
        value = self.value(rows.value, self.analysis.types.of(rows.first.place or rows.array), mask)
        return f"_spy_fill_from({self.direct_place(rows.array)}, {counter}, {value});"

    def _stepped(self, s: Stmt, counter: str) -> str:
        step = s.body[-1].value
        assert step is not None
        return f"{counter} {step.text} {text_of(step.kids[1])}"

    def _down(self, s: Stmt, loop: _Around, mask: str) -> list[str]:
        """A loop that counts down: lanes take part from where they begin. Where few do for a while, these go first."""
        assert s.value is not None
        now, name, last, until = loop.counter, s.name, text_of(s.value), f"{loop.mask}_until"
        lines = [f"int32_t {now} = _spy_most({mask}, {name}, {last} - 1);"]
        lines += [f"for (int {loop.mask}_n = 0; {now} >= {last}; {loop.mask}_n++, {now} = {self._stepped(s, now)})", "{"]
        few = f"_spy_count({mask} & ({name} >= _spy_lanes<int32_t>({now} - {_AT_ONCE - 1}))) <= SPY_FEW_LANES"
        lines += [f"if ({loop.mask}_n % {_AT_ONCE} == 0 && {few})", "{"]
        lines += [f"const int32_t {until} = {now} - {_AT_ONCE - 1} > {last} ? {now} - {_AT_ONCE - 1} : {last};"]
        lines += [f"{name} = _spy_lanes_min({name}, _spy_lanes<int32_t>({now}));"]
        test = Expr("binary", ">=", (Expr("name", name), Expr("name", until)))
        part = Stmt("loop", body=(Stmt("if", value=test, other=s.body[0].other), *s.body[1:]))
        lines += [f"const _spy_mask {loop.mask} = {mask} & ({name} >= _spy_lanes<int32_t>({until}));"]
        lines += [*self._few(part, loop.mask), f"{now} = {until};", "continue;", "}"]
        lines += [f"_spy_mask {loop.mask} = {mask} & ({name} >= _spy_lanes<int32_t>({now}));"]
        rows = dict(self.rows)
        lines += [*self._read_rows(s, now), *self.block(s.body[2:-1], loop.mask, ""), "}"]
        self.rows = rows
        return [*lines, f"_spy_set({mask}, {name}, _spy_lanes_min({name}, _spy_lanes<int32_t>({last} - 1)));"]

    def _read_rows(self, s: Stmt, now: str) -> list[str]:
        """Rows of arrays that a turn reads more than once, and does not write: each stands in a variable of its own."""
        lines: list[str] = []
        for e in read_again(s.body, now, lambda kid: self.shape(kid) == BEHIND):
            array = self.direct_place(e.kids[0]) if is_native(self.analysis.types.of(e)) else None
            if array is not None and self.direct_place(e) is not None:
                self.rows[e] = f"_row{self.temporaries}"
                self.temporaries += 1
                lines.append(f"const auto {self.rows[e]} = _spy_row({array}, {now});")
        return lines

    def _few(self, s: Stmt, mask: str) -> list[str]:
        """The rest of a loop for few lanes, one after the other. Variables are copied for it, so that those of the loop for all
        lanes can stay in registers."""
        inner = list(statements(s.body))
        expressions = [e for kid in inner for e in kid.expressions()]
        names = {part.text for e in expressions for part in e.walk() if part.kind == "name"} - {kid.name for kid in inner}
        used = sorted(n for n in names if self.analysis.shapes.get(n, SAME) != SAME)
        written = {root(kid.place).text for kid in inner if kid.place is not None}
        written |= {root(part).text for e in expressions for part in e.walk() if part.kind == "unary" and part.text == "&"}
        written |= {n for n in used if self.analysis.shapes[n] == BEHIND}
        written &= set(used)
        place = {n: f"(*{n})" if self.analysis.shapes[n] == BEHIND else n for n in used}
        lines = [f"auto _c_{n} = {place[n]};" for n in used]
        lines += [f"_spy_for_each_alone({mask}, [&](int _l)", "{"]
        for n in used:
            is_behind = self.analysis.shapes[n] == BEHIND
            type = self.analysis.types.names[n]
            lines.append(f"{type[:-1]} _o_{n} = _spy_get(_c_{n}, _l); {type} {n} = &_o_{n};" if is_behind else
                         f"{type} {n} = _spy_get(_c_{n}, _l);")  # fmt: skip
        result = self.analysis.function.result
        lines += [] if result == "void" else [f"{result} _result;"]
        left = "auto _left = [&] { return true; };" if result == "void" else (
            f"auto _left = [&](const {result}& x) {{ _result = x; return true; }};"
        )
        keep = "" if result == "void" else "_spy_put(_c_r, _l, _result); "
        returns = _returns(s)
        lines += [left] if returns else []
        lines += ["const bool _is_gone = [&]() -> bool", "{", *lines_of((s,)), "return false;", "}();"]
        lines.append(f"if (_is_gone) {{ {keep}_c_gone.put(_l, -1); }}" if returns else "(void)_is_gone;")
        lines += [f"_spy_put(_c_{n}, _l, {'_o_' if self.analysis.shapes[n] == BEHIND else ''}{n});" for n in sorted(written)]
        copies = ["auto _c_gone = _gone;"] + ([] if result == "void" else ["auto _c_r = _r;"]) if returns else []
        back = ["_gone = _c_gone;"] + ([] if result == "void" else ["_r = _c_r;"]) if returns else []
        return [*copies, *lines, "});", *back, *(f"{place[n]} = _c_{n};" for n in sorted(written))]

    def _switch(self, s: Stmt, mask: str, end: str) -> list[str]:
        assert s.value is not None
        entry = _Around("switch", self.new_mask(), self.analysis.loops[id(s)])
        self.around.append(entry)
        type = self.analysis.types.of(s.value)
        if not entry.is_varying:
            lines = [f"switch ({text_of(s.value)})", "{"]
            for case in s.cases:
                labels = [f"case {text_of(label)}:" for label in case.labels] + ["default:"] * case.is_default
                lines += [*labels, "{", *self.block(case.body, mask, ""), "break;", "}"]
            lines.append("}")
        elif type not in NATIVE:
            raise Unfit("what a switch looks at")
        else:
            value = self.value(s.value, type, mask)
            lines = [*self.flush(), f"_spy_mask {entry.mask}_on(false);", f"const auto {entry.mask}_of = {value};"]
            lines += [f"_spy_mask {entry.mask} = {mask};"]
            for case in sorted(s.cases, key=lambda case: case.is_default):
                lines += self._case(case, entry.mask, type)
            lines += [f"{mask} = {entry.mask}_on | {entry.mask};", *(self._check(mask, end) if may_leave(s) else [])]
        self.around.pop()
        return lines

    def _case(self, case: Case, around: str, type: str) -> list[str]:
        """Lanes with other values stay in the mask of the switch. `default` is the last case."""
        name = self.new_mask()
        chosen = " | ".join(f"({around}_of == {type}({text_of(label)}))" for label in case.labels)
        lines = [f"_spy_mask {name} = {around}{'' if case.is_default else f' & ({chosen})'};", f"{around} = {around} & !{name};"]
        self.given.enter(name)
        lines += [f"if (_spy_any({name})) do", "{", *self.block(case.body, name, "break;"), "} while (false);"]
        self.given.leave()
        return [*lines, f"{around}_on = {around}_on | {name};"]


def may_leave(s: Stmt) -> bool:
    """Whether lanes may leave the block around a statement: by a return, or out of a loop around it."""
    if s.kind in ("return", "break", "continue"):
        return True
    inner = [kid for part in s.parts() for kid in part]
    if s.kind == "loop":
        return any(_returns(kid) for kid in inner)
    return any(may_leave(kid) for kid in inner)


def _returns(s: Stmt) -> bool:
    return s.kind == "return" or any(_returns(kid) for part in s.parts() for kid in part)


__all__ = ["BEHIND", "LANES", "SAME", "Expr", "LaneFunction", "Program"]
