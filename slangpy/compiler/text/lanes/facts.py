"""What is known of a kernel's functions: types of expressions, and what a function writes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from .parser import Unit
from .tokens import Unfit
from .tree import NATIVE, Expr, Stmt, arguments_of, element, is_vector, statements, texel

_SUFFIXES = {"f": "float", "u": "uint32_t", "ll": "int64_t", "ull": "uint64_t", "llu": "uint64_t", "": "int32_t"}
_LETTERS = {"F32": "float", "F64": "double", "I32": "int32_t", "U32": "uint32_t", "I64": "int64_t", "U64": "uint64_t"}
_PREDICATES = ("isnan", "isfinite", "isinf")
_OTHER_RESULTS = ("sign", "asint", "asuint", "asfloat", "countbits", "firstbithigh", "firstbitlow", "frexp")
_CONSTRUCTED = (*NATIVE, "half", "int8_t", "uint8_t", "int16_t", "uint16_t")
_COMPARISONS = ("<", ">", "<=", ">=", "==", "!=", "&&", "||")

_PURE = re.compile(
    r"(?:[FIU](?:8|16|32|64)_(?!frexp|modf|sincos)\w+|_slang_(?:select|fmod|vector_get_element|vector_reshape|vector_dot)"
    r"|f16tof32|f32tof16|slang_bit_cast<[\w<>, ]+>|_spy_minus|_spy_inverse|_spy_wide"
    r"|\.(?:Sample|SampleLevel|SampleBias|SampleGrad|Load|Gather\w*))\Z"
)
"""What only computes or reads, besides functions of the kernel."""
_ATOMIC = re.compile(r"_spy_atomic_\w+\Z")
REPORTS = re.compile(r"_spy_inside_\d+\Z")
"""Functions of the library that count what is read outside of a tensor: when they do decides nothing."""
COUNTS = "_slang_atomic_add_u32"


def literal_type(text: str) -> str:
    if text in ("true", "false"):
        return "bool"
    if text == "nullptr":
        return ""
    lower = text.lower()
    if not lower.startswith("0x") and ("." in lower or "e" in lower):
        return "float" if lower.endswith("f") else "double" if lower[-1].isdigit() or lower[-1] == "." else ""
    suffix = re.search(r"[ul]*\Z", lower)
    return _SUFFIXES.get(suffix[0] if suffix else "", "")


@dataclass(frozen=True)
class Types:
    """Of expressions, where variables have the types of `names`; "" where a type is not known."""

    unit: Unit
    names: Mapping[str, str]

    def of(self, e: Expr) -> str:
        if e.kind == "literal":
            return literal_type(e.text)
        if e.kind == "name":
            return self.names.get(e.text, "")
        if e.kind == "cast":
            return e.text
        if e.kind == "call":
            return self._call(e)
        if e.kind == "member":
            return self._member(e)
        if e.kind == "index":
            owner = self.of(e.kids[0])
            return texel(owner) or element(owner)
        if e.kind == "unary":
            inner = self.of(e.kids[0])
            if e.text == "&":
                return f"{inner}*" if inner else ""
            return element(inner) if e.text == "*" else "bool" if e.text == "!" and inner == "bool" else inner
        if e.kind == "binary":
            return self._binary(e)
        return self._common(e.kids[1], e.kids[2]) if e.kind == "choice" else ""

    def _common(self, a: Expr, b: Expr) -> str:
        first, second = self.of(a), self.of(b)
        return first if first == second else ""

    def _binary(self, e: Expr) -> str:
        left, right = self.of(e.kids[0]), self.of(e.kids[1])
        if e.text in ("<<", ">>"):
            return left
        if left.endswith("*") and e.text in "+-":
            return left
        if left != right:
            return ""
        if e.text not in _COMPARISONS:
            return left if not (left == "bool" and e.text not in "&|^") else ""
        return f"Vector<bool, {arguments_of(left)[1]}>" if is_vector(left) else "bool" if left in NATIVE else ""

    def _member(self, e: Expr) -> str:
        owner = self.of(e.kids[0])
        if e.by == "->":
            owner = element(owner)
        if is_vector(owner):
            return arguments_of(owner)[0] if e.text in ("x", "y", "z", "w") else ""
        if owner.startswith("Matrix<") and e.text == "rows":
            return f"FixedArray<{element(owner)}, {arguments_of(owner)[1]}>"
        struct = self.unit.structs.get(owner)
        return struct.field(e.text) if struct else ""

    def _call(self, e: Expr) -> str:
        name = e.text
        if name in self.unit.functions:
            return self.unit.functions[name].result
        if name in _CONSTRUCTED or name in self.unit.structs or ("<" in name and not name.startswith("slang")):
            return name
        if name.startswith("slang_bit_cast<"):
            return name[len("slang_bit_cast<") : -1]
        if name in (".Sample", ".SampleLevel", ".Load"):
            return texel(self.of(e.kids[0]))
        if name == "_slang_vector_get_element":
            return element(self.of(e.kids[0]))
        if name == "_slang_select":
            return self._common(e.kids[1], e.kids[2])
        if name in ("_spy_minus", "_spy_inverse"):
            return self.of(e.kids[0])
        letters, _, function = name.partition("_")
        if letters in _LETTERS and function not in _OTHER_RESULTS:
            return "bool" if function in _PREDICATES else _LETTERS[letters]
        return ""


@dataclass
class Effects:
    """parameters: those through which a function writes. memory: it writes elsewhere; `in_loop`: more than once."""

    parameters: set[int] = field(default_factory=set)
    memory: bool = False
    in_loop: bool = False
    direct: bool = False
    """It does so itself, not what it calls."""
    reads: bool = False
    """From memory, other than its parameters."""

    def store(self, in_loop: bool) -> None:
        self.memory = True
        self.in_loop |= in_loop


class Facts:
    """Effects of functions, each found once."""

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.effects: dict[str, Effects] = {}

    def types(self, name: str) -> Types:
        function = self.unit.functions[name]
        names = {n: t for t, n in function.parameters}
        for s in statements(self.unit.body(name)):
            if s.kind == "declare":
                names[s.name] = s.type
        return Types(self.unit, names)

    def of(self, name: str) -> Effects:
        if name not in self.effects:
            self.effects[name] = made = Effects()  # also for a function that calls itself
            if not REPORTS.match(name):
                types = self.types(name)
                parameters = [n for _, n in self.unit.functions[name].parameters]
                self._walk(self.unit.body(name), _Place(types, frozenset(types.names), parameters, made), False)
        return self.effects[name]

    def of_block(self, body: tuple[Stmt, ...], types: Types, others: frozenset[str] = frozenset()) -> Effects:
        """Of statements that write to no variables but those that they declare, and others."""
        made = Effects()
        own = others.union(s.name for s in statements(body) if s.kind == "declare")
        self._walk(body, _Place(types, own, [], made), False)
        return made

    def is_ordered(self, name: str) -> bool:
        """Whether it may matter in which order elements of a call run this function: it stores in a loop, or to what it also
        reads. Stores are those of methods, so that their objects tell."""
        if self.of(name).in_loop:
            return True
        stored, read = set[str](), set[str]()
        for called in self._reached(name, set()):
            effects, parameters = self.of(called), self.unit.functions[called].parameters
            owner = parameters[0][0] if parameters and parameters[0][1].startswith("this_") else ""
            if effects.direct and not owner.endswith("*"):
                return True
            if owner.startswith("_spy_Storage_"):
                continue
            stored |= {owner} if effects.memory and owner else set()
            read |= {owner} if effects.reads and owner else set()
        return bool(stored & read)

    def has_loops(self, name: str) -> bool:
        """Whether anything in a function, or in what it calls, can end at different times."""
        reached = self._reached(name, set())
        return any(s.kind in ("loop", "switch") for f in reached for s in statements(self.unit.body(f)))

    def only_moves(self, name: str) -> bool:
        """Whether a function, with what it calls, only reads, writes, adds and the like: it calls nothing but functions of the kernel,
        and all of them can be read here."""
        try:
            inner = [s for f in self._reached(name, set()) for s in statements(self.unit.body(f))]
        except Unfit:
            return False
        calls = {part.text for s in inner for e in s.expressions() for part in e.walk() if part.kind == "call"}
        return calls <= {*self.unit.functions, *_CONSTRUCTED, "int"}

    def _reached(self, name: str, found: set[str]) -> set[str]:
        if name not in found:
            found.add(name)
            for s in statements(self.unit.body(name)):
                for e in s.expressions():
                    for part in e.walk():
                        if part.kind == "call" and part.text in self.unit.functions and not REPORTS.match(part.text):
                            self._reached(part.text, found)
        return found

    def _walk(self, body: tuple[Stmt, ...], at: _Place, in_loop: bool) -> None:
        for s in body:
            if s.place is not None:
                at.written(s.place, in_loop)
            for e in (*_inside(s.place), *([s.value] if s.value is not None else [])):
                self.expression(e, at, in_loop)
            for part in s.parts():
                self._walk(part, at, in_loop or s.kind == "loop")

    def expression(self, e: Expr, at: _Place, in_loop: bool) -> None:
        for part in e.walk():
            if part.kind == "call":
                self._call(part, at, in_loop)
            elif part.kind in ("member", "index", "unary") and at.is_memory(part):
                at.effects.reads = True

    def _call(self, e: Expr, at: _Place, in_loop: bool) -> None:
        if _ATOMIC.match(e.text):  # sums depend on the order
            at.effects.store(in_loop=True)
            return
        if e.text not in self.unit.functions:
            if not _PURE.match(e.text) and not at.types.of(e) == e.text:
                raise Unfit(e.text)
            return
        effects = self.of(e.text)
        at.effects.reads |= effects.reads
        if effects.memory:
            at.effects.store(in_loop or effects.in_loop)
        for k in effects.parameters:
            given = e.kids[k]
            at.written(given.kids[0] if given.text == "&" and given.kind == "unary" else Expr("unary", "*", (given,)), in_loop)


@dataclass
class _Place:
    """Where writes are looked at: in statements with these variables of their own, which have these effects."""

    types: Types
    own: frozenset[str]
    parameters: list[str]
    effects: Effects

    def hops(self, place: Expr) -> tuple[str, int]:
        """The variable that a place is in, and how many pointers lie between; "" where there is none."""
        hops = 0
        while place.kind in ("member", "index", "unary"):
            kid = place.kids[0]
            if place.kind == "unary" and place.text not in "*&":
                break
            if place.kind == "unary":
                hops += 1 if place.text == "*" else -1
            elif place.by == "->" or (place.kind == "index" and not element(self.types.of(kid))) or (
                place.kind == "index" and self.types.of(kid).endswith("*")
            ):
                hops += 1
            place = kid
        return (place.text if place.kind == "name" else "", hops)

    def is_memory(self, place: Expr) -> bool:
        name, hops = self.hops(place)
        return hops > (1 if name in self.parameters else 0)

    def written(self, place: Expr, in_loop: bool) -> None:
        name, hops = self.hops(place)
        if name in self.own and hops <= 0:
            return
        if name in self.parameters and hops == 1:
            self.effects.parameters.add(self.parameters.index(name))
            return
        if name and name not in self.own:
            raise Unfit("a variable from outside")
        self.effects.store(in_loop)
        self.effects.direct = True


def _inside(place: Expr | None) -> Iterator[Expr]:
    """What is computed to find a place."""
    while place is not None and place.kind in ("member", "index", "unary"):
        if place.kind == "index":
            yield place.kids[1]
        place = place.kids[0]
    if place is not None:
        yield place


__all__ = ["COUNTS", "REPORTS", "Effects", "Facts", "Types", "literal_type"]
