"""Which variables of a function differ by lane, and which loops lanes leave one by one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from .counters import is_counter
from .facts import COUNTS, Types
from .tokens import Unfit
from .tree import Expr, Function, Stmt

SAME, LANES, BEHIND = "same", "lanes", "behind"
"""How a value stands: one for all lanes, one for each, or a pointer (one for all) to one for each."""

Shapes = tuple[str, ...]
Called = Callable[[str, Shapes], set[int]]
"""Of a function and the shapes of its arguments: which pointers that are the same have to point to lanes instead."""


def root(place: Expr) -> Expr:
    """The innermost expression of a place: a variable, if it has one."""
    while place.kind in ("member", "index") or (place.kind == "unary" and place.text in "*&"):
        place = place.kids[0]
    return place


@dataclass
class Analysis:
    """Of one function with parameters of given shapes."""

    function: Function
    body: tuple[Stmt, ...]
    types: Types
    shapes: dict[str, str]
    """Of variables; those that are not here are the same for all lanes."""
    called: Called
    writes: Callable[[str], set[int]]
    """Through which parameters a function writes."""
    loops: dict[int, bool] = field(default_factory=dict)
    """By the identity of loops and switches: whether lanes leave them one by one."""
    homes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    wants: set[int] = field(default_factory=set)
    """Parameters that came as pointers to one value, and have to point to lanes."""
    known: dict[int, tuple[Expr, str]] | None = None
    """Once variables have their shapes, those of expressions by identity: the writer asks at each level of deep ones."""

    def run(self) -> None:
        parameters = [name for _, name in self.function.parameters]
        while True:
            before = (dict(self.shapes), sum(self.loops.values()))
            self.homes = dict.fromkeys(parameters, ())
            self._block(self.body, ())
            if before == (self.shapes, sum(self.loops.values())):
                self.known = {}
                return

    # --- expressions

    def shape(self, e: Expr) -> str:
        if self.known is None or e.kind == "name":
            return self._shape(e)
        found = self.known.get(id(e))
        if found is None:
            found = self.known[id(e)] = (e, self._shape(e))
        return found[1]

    def _shape(self, e: Expr) -> str:
        if e.kind == "name":
            return self.shapes.get(e.text, SAME)
        if e.kind == "call" and e.text == COUNTS:
            return LANES  # once for each
        if e.kind == "unary" and e.text == "&":
            inner = self.shape(e.kids[0])
            return BEHIND if inner == LANES and self.is_stored(e.kids[0]) else inner
        if e.kind == "unary" and e.text == "*" and self.shape(e.kids[0]) == BEHIND:
            return LANES
        return LANES if any(self.shape(kid) != SAME for kid in e.kids) else SAME

    def is_stored(self, place: Expr) -> bool:
        """Whether a place is in a variable that has lanes, and not in memory that lanes point to."""
        if place.kind == "name":
            return self.shapes.get(place.text, SAME) != SAME and not self._is_pointer(place)
        if place.kind == "index":
            return self.is_stored(place.kids[0])
        if place.kind == "member" and place.by == ".":
            return self.is_stored(place.kids[0])
        if (place.kind == "member" and place.by == "->") or (place.kind == "unary" and place.text == "*"):
            return self.shape(place.kids[0]) == BEHIND
        return False

    def _is_pointer(self, place: Expr) -> bool:
        return self.shapes.get(place.text) == BEHIND

    # --- statements

    def _differs(self, name: str) -> None:
        if self.shapes.get(name, SAME) != SAME:
            return
        for k, (type, parameter) in enumerate(self.function.parameters):
            if parameter == name and type.endswith("*"):
                self.shapes[name] = BEHIND
                self.wants.add(k)
                return
        self.shapes[name] = LANES

    def _written(self, place: Expr, differs: bool, regions: tuple[int, ...]) -> None:
        name = root(place)
        if name.kind != "name":
            return  # memory
        if name.text not in self.homes:
            raise Unfit("a variable from outside")
        if self.types.names[name.text].endswith("*") and place.kind == "name":
            differs = differs or self.homes[name.text] != regions
            if differs:
                self.shapes[name.text] = LANES
        elif differs or self.shape(place) != SAME or self.homes[name.text] != regions:
            self._differs(name.text)

    def _calls(self, e: Expr, regions: tuple[int, ...]) -> None:
        for part in e.walk():
            if part.kind != "call" or not self.writes(part.text):
                continue
            shapes = tuple(self.shape(kid) for kid in part.kids)
            wants = self.called(part.text, shapes)
            for k in self.writes(part.text):
                given = part.kids[k]
                self._written(given.kids[0] if given.kind == "unary" and given.text == "&" else Expr("unary", "*", (given,)),
                              k in wants, regions)  # fmt: skip

    def _block(self, body: tuple[Stmt, ...], regions: tuple[int, ...]) -> None:
        for s in body:
            if s.kind == "declare":
                self.homes[s.name] = regions
                if s.value is not None and not is_counter(s.name):
                    shape = self.shape(s.value)
                    if shape == BEHIND:
                        raise Unfit("a pointer to lanes")
                    if shape != SAME:
                        self.shapes[s.name] = LANES
            for e in s.expressions():
                self._calls(e, regions)
            if s.kind == "assign":
                assert s.place is not None and s.value is not None
                self._written(s.place, self.shape(s.value) != SAME, regions)
            elif s.kind in ("if", "loop", "switch"):
                self._inner(s, regions)

    def _inner(self, s: Stmt, regions: tuple[int, ...]) -> None:
        if s.kind == "if":
            differs = s.value is not None and self.shape(s.value) != SAME
        else:
            differs = (s.value is not None and self.shape(s.value) != SAME) or any(
                self._leaves(part, False, s.kind) for part in s.parts()
            )
            self.loops[id(s)] = self.loops.get(id(s), False) or differs
            differs = self.loops[id(s)]
        for part in s.parts():
            self._block(part, (*regions, id(s)) if differs else regions)

    def _leaves(self, body: tuple[Stmt, ...], diverged: bool, kind: str, breaks: bool = True, continues: bool = True) -> bool:
        """Whether lanes leave a loop or switch (`kind`) with this body one by one. breaks, continues: whether these leave it
        from here."""
        for s in body:
            alone = diverged or kind == "switch" or not breaks
            if s.kind == "return" or (s.kind == "break" and breaks and alone) or (s.kind == "continue" and continues and alone):
                return True
            inner = diverged or (s.kind != "loop" and s.value is not None and self.shape(s.value) != SAME)
            here = (breaks and s.kind == "if", continues and s.kind != "loop")
            if s.kind in ("if", "loop", "switch") and any(self._leaves(part, inner, kind, *here) for part in s.parts()):
                return True
        return False
