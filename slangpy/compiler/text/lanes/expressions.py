"""Expressions for many invocations at once.

What lanes can compute at once becomes the same expression of lanes. Everything else is computed for one lane after the other,
by the expression as it stands: `_spy_each(mask, [&](int _l) { return ...; })`, with `_spy_get(x, _l)` for variables.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Protocol

from .counters import is_counter
from .facts import REPORTS
from .parser import Unit
from .structs import Structs
from .tokens import Unfit
from .tree import NATIVE, NUMBERS, Expr, arguments_of, is_native, is_vector, texel, text_of, written
from .varying import BEHIND, LANES, SAME, Analysis, Shapes, root
from .weights import COMPARISONS, DIRECT

_MATH = frozenset("F32_exp F32_exp2 F32_log F32_log2 F32_sin F32_cos F32_pow".split())
"""Functions that lanes compute in the steps of glibc (slangpy/slang/lanes_math_cpp.h)."""
MATH_PREFIX = "_spy_lanes_of_"
_MATH_OPERATIONS = 8
"""What one of them counts for among operations of all lanes at once, in loops."""
_CHECK_OPERATIONS = 3
"""Of a test of an index, where what reports a wrong one hardly runs."""
_SAMPLES = frozenset({".Sample", ".SampleLevel", ".Load"})
"""Of textures, in slangpy/slang/lanes_textures_cpp.h."""
_PLACES = {"call": ("Vector<int32_t, 3>",), "index": ("Vector<int32_t, 2>", "Vector<uint32_t, 2>")}
"""Types of the places of texels."""
_SAMPLE_OPERATIONS = 16
"""What one of them counts for."""
_VECTOR_MATH = re.compile(
    r"F(?:32|64)_(?:sincos|sinh?|cosh?|tanh?|exp(?:2|10)?|log(?:2|10)?|pow|asin|acos|atan2?)\Z"
)
"""Functions that compilers would take from libmvec, with other bits than those of one number (prelude_cpp.h)."""
_BITS = ("&", "|", "^")


@dataclass
class Cost:
    """Operations of all lanes at once, those of one lane after the other, reads of memory at places that differ, and elements
    of local arrays at such places."""

    wide: int = 0
    single: int = 0
    reads: int = 0
    elements: int = 0

    @property
    def apart(self) -> int:
        """All that goes through lanes one after the other."""
        return self.single + self.reads + self.elements

    def add(self, other: Cost, times: int) -> None:
        self.wide += other.wide * times
        self.single += other.single * times
        self.reads += other.reads * times
        self.elements += other.elements * times


class Callable(Protocol):
    """A function for lanes."""

    name: str
    is_divergent: bool
    whole: Cost
    once: Cost
    loops: Cost


class Functions(Protocol):
    """Those of the kernel."""

    unit: Unit
    structs: Structs

    def writes(self, name: str) -> set[int]: ...
    def lanes(self, name: str, shapes: Shapes) -> Callable | None: ...


@dataclass
class Expressions:
    program: Functions
    analysis: Analysis
    is_divergent: bool = field(default=False, init=False)
    """Whether a loop in it, or in what it calls, ends at different times."""
    depth: int = field(default=0, init=False)
    """Of loops that end at different times."""
    calls: list[Any] = field(default_factory=list, init=False)
    """Functions for lanes that it calls."""
    before: list[str] = field(default_factory=list, init=False)
    """What the statement that is being written needs in front of it. Compilers contract products and sums of one piece of
    straight-line code: what has branches in it stands before, so that this is what it is without lanes."""
    temporaries: int = field(default=0, init=False)
    always: int = field(default=0, init=False)
    """Branches around what is being written that run whether a lane takes them or not."""
    rows: dict[Expr, str] = field(default_factory=dict, init=False)
    """Elements of arrays that stand in variables of their own."""
    turns: int = field(default=1, init=False)
    """How often what is being written runs, in loops that end for all lanes at once: some times each."""
    whole: Cost = field(default_factory=Cost, init=False)
    """What is written, each operation once."""
    once: Cost = field(default_factory=Cost, init=False)
    """What one run takes, with one turn of loops that end at different times."""
    loops: Cost = field(default_factory=Cost, init=False)
    """Of that, what stands in such loops."""

    def many(self, type: str) -> str:
        return self.program.structs.many(type)

    def shape(self, e: Expr) -> str:
        return self.analysis.shape(e)

    def _type(self, e: Expr) -> str:
        return self.analysis.types.of(e)

    def _count(self, wide: int, single: int, reads: int = 0, elements: int = 0) -> None:
        made = Cost(wide, single, reads, elements)
        self.whole.add(made, 1)
        for cost in (self.once, *([self.loops] if self.depth else [])):
            cost.add(made, self.turns)

    # --- places: variables and parts of them

    def _place(self, e: Expr) -> tuple[str, bool]:
        """Text of a place that is in lanes, and whether it is one for all lanes: else it is that of lane `_l`."""
        if e.kind == "name":
            return e.text, True
        kid = e.kids[0]
        if e.kind == "unary":
            if kid.kind != "name":
                raise Unfit("an address")
            return f"(*{kid.text})", True
        if e.kind == "member" and e.by == "->":
            if kid.kind != "name":
                raise Unfit("an address")
            is_open = self.program.structs.is_open(self._type(kid)[:-1])
            return (f"{kid.text}->{e.text}", True) if is_open else (f"{kid.text}->v[_l].{e.text}", False)
        inner, is_whole = self._place(kid)
        type = self._type(kid)
        if not type:
            raise Unfit("a type")
        if is_whole and not self.program.structs.is_open(type):
            inner, is_whole = f"{inner}.v[_l]", False
        if e.kind == "member":
            return f"{inner}.{e.text}", is_whole
        at = self.one(e.kids[1])
        if e in self.rows:
            return self.rows[e] if self.always else f"_spy_again({self.rows[e]}, {inner}, {at})", True
        if self.always and is_whole and is_counter(at):
            return f"_spy_row({inner}, {at})", True
        return f"{inner}[{at}]", is_whole

    def direct_place(self, e: Expr) -> str | None:
        """Text of a place that is where it is for all lanes; None of others."""
        if not self.analysis.is_stored(e):
            return None
        at = e
        while at.kids:
            if at.kind == "index" and self.shape(at.kids[1]) != SAME:
                return None
            at = at.kids[0]
        text, is_whole = self._place(e)
        return text if is_whole else None

    def store(self, place: Expr, value: Expr, mask: str) -> str:
        """An assignment for one lane after the other."""
        self._count(0, 1)
        given = self.one(value)
        if not self.analysis.is_stored(place):
            body = f"{self.each(place, value, place=place)} {{ {self.one(place)} = {given}; }}"
            return f"_spy_for_each{self.alone(place, value)}({mask}, {body});"
        text, is_whole = self._place(place)
        inner = f"_spy_put({text}, _l, {given});" if is_whole else f"{text} = {given};"
        return f"_spy_for_each{self.alone(place, value)}({mask}, {self.each(place, value, place=place)} {{ {inner} }});"

    def alone(self, *expressions: Expr) -> str:
        """Of a loop over lanes: whether it has to stay one."""
        calls = [part.text for e in expressions for part in e.walk() if part.kind == "call"]
        functions = self.program.unit.functions
        return "_alone" * any(_VECTOR_MATH.match(n) or (n in functions and not n.startswith("_spy_Storage_")) for n in calls)

    def each(self, *expressions: Expr, place: Expr | None = None) -> str:
        """How a function for one lane captures variables: what is read by lane is a copy, so that what it is of can stay in
        registers. place: what is written."""
        names = {part.text for e in expressions for part in e.walk() if part.kind == "name"}
        names -= {root(place).text} if place is not None else set()
        copied = sorted(n for n in names if self.analysis.shapes.get(n) == LANES and is_native(self.analysis.types.names[n]))
        return f"[{', '.join(['&', *copied])}](int _l)"

    def _captures(self, e: Expr) -> str:
        return "[&](int _l)" if any(self.shape(part) == BEHIND for part in e.walk()) else self.each(e)

    # --- one lane

    def one(self, e: Expr) -> str:
        """The expression for lane `_l`."""
        if self.shape(e) == SAME:
            return text_of(e)
        if self.analysis.is_stored(e):
            text, is_whole = self._place(e)
            return f"_spy_get({text}, _l)" if is_whole else text
        if e.kind == "call" and any(self.shape(kid) == BEHIND for kid in e.kids):
            return self._one_call(e)
        if self.shape(e) == BEHIND:
            raise Unfit("an address")
        return written(e, [self.one(kid) for kid in e.kids])

    def _one_call(self, e: Expr) -> str:
        """A call that writes to variables of lanes: to copies of those of one lane."""
        before, given, after = "", [], ""
        for k, kid in enumerate(e.kids):
            if self.shape(kid) != BEHIND:
                given.append(self.one(kid))
                continue
            target = kid.kids[0] if kid.kind == "unary" else Expr("unary", "*", (kid,))
            text, is_whole = self._place(target)
            before += f"auto _a{k} = {f'_spy_get({text}, _l)' if is_whole else text}; "
            after += f"_spy_put({text}, _l, _a{k}); " if is_whole else f"{text} = _a{k}; "
            given.append(f"&_a{k}")
        call = f"{e.text}({', '.join(given)});"
        is_void = self.program.unit.functions[e.text].result == "void"
        return f"[&] {{ {before}{call if is_void else 'auto _r = ' + call} {after}{'' if is_void else 'return _r; '}}}()"

    # --- all lanes

    def value(self, e: Expr, type: str, mask: str) -> str:
        """The expression for all lanes, as `type` for each."""
        if self.shape(e) == SAME:
            text = text_of(e)
            return f"_spy_lanes<{type}>({type}({text}))" if type in NATIVE else f"_spy_all<{type}>({text})"
        if self.shape(e) == BEHIND:
            raise Unfit("an address")
        direct = self._direct(e, mask) if self._type(e) == type else None
        if direct is not None:
            return direct
        self._count(0, 1)
        return self._first(f"_spy_each{self.alone(e)}({mask}, {self._captures(e)} -> {type} {{ return {self.one(e)}; }})")

    def _first(self, text: str) -> str:
        self.temporaries += 1
        self.before.append(f"const auto _t{self.temporaries} = {text};")
        return f"_t{self.temporaries}"

    def flush(self) -> list[str]:
        """The statements in front of what was just written."""
        before, self.before = self.before, []
        return before

    def statement(self, e: Expr, mask: str) -> str:
        """A call of which nothing is used but what it writes."""
        if self.shape(e) == SAME:
            return text_of(e) + ";"
        called = self._called(e, mask) if e.kind == "call" else None
        if called is not None:
            return called + ";"
        self._count(0, 1)
        return f"_spy_for_each{self.alone(e)}({mask}, {self._captures(e)} {{ {self.one(e)}; }});"

    def _direct(self, e: Expr, mask: str) -> str | None:
        place = self.direct_place(e)
        if place is not None:
            return place
        made: Any = getattr(self, f"_{e.kind}", None)
        text = made(e, mask) if made is not None else None
        if text is not None:
            self._count(1, 0)
        return text

    def _operand(self, e: Expr, mask: str) -> str:
        """Numbers that are the same for all stay so: operators take them beside lanes."""
        return f"({text_of(e)})" if self.shape(e) == SAME else self.value(e, self._type(e), mask)

    def _unary(self, e: Expr, mask: str) -> str | None:
        type = self._type(e)
        if e.text == "*" and is_native(type):
            self._count(0, 0, int(arguments_of(type)[1]) if is_vector(type) else 1)
            return self._first(f"_spy_read({mask}, {self.value(e.kids[0], self._type(e.kids[0]), mask)})")
        fits = type == "bool" if e.text == "!" else type in NUMBERS[2:] if e.text == "~" else type in NUMBERS or (
            is_vector(type) and arguments_of(type)[0] in NUMBERS
        )
        return f"({e.text}{self._operand(e.kids[0], mask)})" if fits and e.text in "!~-" else None

    def _index(self, e: Expr, mask: str) -> str | None:
        """An element at a place that differs by lane."""
        array, at = e.kids
        if texel(self._type(array)):
            return self._sample(e, mask, -1)
        if not self._is_number_at(e):
            return None
        self._count(0, 0, elements=1)
        stored = self.direct_place(array)
        if stored is None and self.shape(array) != SAME:
            return None
        return self._first(f"_spy_at({mask}, {stored or text_of(array)}, {self.value(at, self._type(at), mask)})")

    def store_at(self, place: Expr, value: Expr, mask: str) -> str | None:
        """An assignment to such an element of an array in lanes."""
        array = self.direct_place(place.kids[0]) if place.kind == "index" and self._is_number_at(place) else None
        if array is None:
            return None
        self._count(0, 0, elements=1)
        at = self.value(place.kids[1], self._type(place.kids[1]), mask)
        return f"_spy_put_at({mask}, {array}, {at}, {self.value(value, self._type(place), mask)});"

    def _is_number_at(self, e: Expr) -> bool:
        array, at = e.kids
        is_array = self._type(array).startswith("FixedArray<") and not self._type(array).endswith("*")
        return is_array and self._type(e) in NUMBERS and self._type(at) in NUMBERS[2:] and self.shape(at) != SAME

    def _binary(self, e: Expr, mask: str) -> str | None:
        left, right = e.kids
        types = (self._type(left), self._type(right))
        if types[0].endswith("*") and types[1] in NUMBERS[2:] and e.text == "+":
            return f"_spy_moved({self._operand(left, mask)}, {self._operand(right, mask)})"
        if not is_native(types[0]) or (types[0] != types[1] and e.text not in ("<<", ">>")) or not is_native(types[1]):
            return None
        type = types[0]
        if is_vector(type):
            if e.text not in "+-*/" or arguments_of(type)[0] not in NUMBERS or (e.text == "/" and arguments_of(type)[0][0] in "iu"):
                return None
        elif e.text in ("&&", "||"):
            if type != "bool" or not _is_harmless(right):
                return None
            return f"({self.value(left, type, mask)} {e.text} {self.value(right, type, mask)})"
        elif (type == "bool" and e.text not in (*_BITS, "==", "!=")) or (
            type in NUMBERS[:2] and e.text not in ("+", "-", "*", "/", *COMPARISONS)
        ):
            return None
        if e.text in ("/", "%", "<<", ">>"):
            beside = right if not e.by and self.shape(right) == SAME and e.text in ("/", "%") else None
            sides = tuple(text_of(s) if s is beside else self.value(s, t, mask) for s, t in zip(e.kids, types, strict=True))
        else:
            sides = self._operand(left, mask), self._operand(right, mask)
        if e.text in ("/", "%") and e.by:
            return f"({sides[0]} {e.text} _spy_over{{{mask}}} {e.text} {sides[1]})"
        if e.text in ("/", "%") and self.shape(right) != SAME:
            return None
        return f"({sides[0]} {e.text} {sides[1]})"

    def _choice(self, e: Expr, mask: str) -> str | None:
        return self._select(e, mask) if all(_is_harmless(kid) for kid in e.kids[1:]) else None

    def _select(self, e: Expr, mask: str) -> str | None:
        type = self._type(e)
        if self._type(e.kids[0]) != "bool" or not is_native(type):
            return None
        condition = self.value(e.kids[0], "bool", mask)
        return f"_spy_pick({condition}, {self.value(e.kids[1], type, mask)}, {self.value(e.kids[2], type, mask)})"

    def _cast(self, e: Expr, mask: str) -> str | None:
        return self._convert(e.text, e.kids[0], mask)

    def _convert(self, type: str, e: Expr, mask: str) -> str | None:
        source = self._type(e)
        if source == type:
            return self.value(e, type, mask)
        if type in NATIVE and source in NATIVE:
            if type == "bool":
                return f"({self.value(e, source, mask)} != {source}(0))"
            if source == "bool":
                return f"_spy_pick({self.value(e, source, mask)}, _spy_lanes<{type}>({type}(1)), _spy_lanes<{type}>({type}(0)))"
            return f"_spy_lanes<{type}>({self.value(e, source, mask)})"
        if is_vector(type) and source == arguments_of(type)[0] and source in NATIVE:
            return f"{self.many(type)}({self.value(e, source, mask)})"
        return None

    def _call(self, e: Expr, mask: str) -> str | None:
        name = e.text
        count = len(e.kids)
        if count == 1 and name == self._type(e) and name in NATIVE:
            return self._convert(name, e.kids[0], mask)
        if is_vector(name) and is_native(name):
            return self._vector(e, mask)
        if name in ("_spy_minus", "_spy_inverse"):
            return self._unary(Expr("unary", "-" if name == "_spy_minus" else "~", e.kids), mask)
        if name == "_slang_select":
            return self._select(e, mask)
        if name == "_slang_vector_get_element":
            vector = self._type(e.kids[0])
            if self.shape(e.kids[1]) != SAME or not is_native(vector):
                return None
            return f"{name}({self.value(e.kids[0], vector, mask)}, {text_of(e.kids[1])})"
        if name in DIRECT:
            return f"{name}({', '.join(self.value(kid, self._type(e), mask) for kid in e.kids)})"
        if name in _MATH:
            self._count(_MATH_OPERATIONS, 0)
            given = ", ".join(self.value(kid, "float", mask) for kid in e.kids)
            return self._first(f"{MATH_PREFIX}{name[4:]}({mask}, {given})")
        if name in _SAMPLES:
            return self._sample(e, mask, -1)
        called = self._called(e, mask)
        return None if called is None else self._first(called)

    def _member(self, e: Expr, mask: str) -> str | None:
        """One number of a sample."""
        kid = e.kids[0]
        is_sample = (kid.kind == "call" and kid.text in _SAMPLES) or (kid.kind == "index" and texel(self._type(kid.kids[0])))
        if not is_sample or e.text not in ("x", "y", "z", "w") or not is_vector(self._type(kid)):
            return None
        return self._sample(kid, mask, "xyzw".index(e.text))

    def _sample(self, e: Expr, mask: str, part: int) -> str | None:
        """Of a texture of two dimensions at the level 0, or given by a number for all. part: -1 for all there are."""
        texture, *given = e.kids
        type, name = texel(self._type(texture)), e.text[1:] if e.kind == "call" else "Load"
        where = 0 if name == "Load" else 1
        is_float = type == "float" or (is_vector(type) and arguments_of(type)[0] == "float")
        count = {"Sample": 2, "SampleLevel": 3}.get(name, 1)
        at = given[where] if len(given) == count else None
        fitting = ("Vector<float, 2>",) if where else _PLACES[e.kind]
        wanted = "" if at is None else self._type(at)
        if not is_float or at is None or wanted not in fitting or any(self.shape(k) != SAME for k in e.kids if k is not at):
            return None
        if any(not _is_harmless(k) for k in e.kids if k is not at):
            return None
        self._count(_SAMPLE_OPERATIONS, 0)
        others = [text_of(k) for k in given if k is not at]
        text = f"_spy_lanes_{name.lower()}<{part}>({', '.join([mask, text_of(texture), self.value(at, wanted, mask), *others])})"
        return self._first(text)

    def _vector(self, e: Expr, mask: str) -> str | None:
        scalar, count = arguments_of(e.text)
        if any(self._type(kid) != scalar for kid in e.kids) or len(e.kids) not in (1, int(count)):
            return None
        parts = ", ".join(self.value(kid, scalar, mask) for kid in e.kids)
        return f"{self.many(e.text)}({parts})"

    def _called(self, e: Expr, mask: str) -> str | None:
        """A call of the function for lanes; None where it is called for one lane after the other."""
        if e.text not in self.program.unit.functions:
            return None
        function = self.program.unit.functions[e.text]
        shapes = tuple(self.shape(kid) for kid in e.kids)
        made = self.program.lanes(e.text, shapes)
        given: list[str] = []
        for kid, (type, _), shape in zip(e.kids, function.parameters, shapes, strict=True):
            text = self._address(kid) if shape == BEHIND else text_of(kid) if shape == SAME else self.value(kid, type, mask)
            if text is None or made is None:
                if any(shapes[k] == SAME for k in self.program.writes(e.text)):
                    raise Unfit("a variable that all lanes write")
                return None
            given.append(text)
        assert made is not None
        self.is_divergent |= made.is_divergent
        self.calls.append(made)
        if REPORTS.match(e.text):
            self._count(_CHECK_OPERATIONS, 0)
        else:
            self._add(made)
        return f"{made.name}({', '.join([mask, *given])})"

    def _add(self, made: Callable) -> None:
        self.whole.add(made.whole, 1)
        self.once.add(made.once, self.turns)
        self.loops.add(made.once if self.depth else made.loops, self.turns)

    def _address(self, e: Expr) -> str | None:
        if e.kind == "name":
            return e.text
        place = self.direct_place(e.kids[0]) if e.kind == "unary" and e.text == "&" else None
        return None if place is None else f"&{place}"


def _is_harmless(e: Expr) -> bool:
    """Whether it can be computed where it is not asked for."""
    return not any(
        part.kind in ("call", "index") or part.by == "->" or (part.kind == "unary" and part.text == "*") or
        (part.kind == "binary" and part.text in "/%") for part in e.walk()
    )  # fmt: skip


__all__ = ["LANES", "Callable", "Cost", "Expressions"]
