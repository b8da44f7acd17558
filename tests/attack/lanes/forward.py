"""Forward programs with loops and branches, with lanes and without, as a family: see ../family.py."""

from __future__ import annotations

from dataclasses import dataclass

from ..forward import family
from ..forward.cases import case_of, runs
from ..forward.expressions import Scope, int_const, var
from ..forward.grammar import SWITCHES, Flow, Grammar
from ..forward.inputs import ForwardProgram
from ..forward.types import SCALARS
from ..nodes import Node
from .cases import LaneCase, lane_family

ALWAYS = frozenset({"if", "loop", "while", "leave", "return", "switch", "divide", "shift"})
WIDE = ("i32", "u32", "f32", "f64", "i64", "u64")


@dataclass
class LaneGrammar(Grammar):
    """Draws programs with more of what lanes do at different times. Two of three have only the types that lanes compute."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.left = self.rng.choice((6, 10, 16, 24))
        self.used |= {name for name in ALWAYS if name in SWITCHES and name not in self.without}
        if self.rng.random() < 0.67:
            names = [name for name in WIDE if SCALARS[name].kind != "u" or "unsigned" not in self.without]
            self.scalars = ["b", "i32", *self.rng.sample(names, 2)]

    def statement(self, scope: Scope, flow: Flow) -> list[Node]:
        if self.left > 0 and flow.depth < 3 and "loop" in self.used and self.rng.random() < 0.3:
            self.left -= 1
            return self._loop(scope, flow)
        return super().statement(scope, flow)

    def bound(self, scope: Scope) -> Node:
        """Most loops end at another time for each element."""
        given = [var(v.name, v.ty) for v in scope.vars if v.ty in ("i32", "u32", "f32")]
        if not given or self.rng.random() < 0.2:
            return super().bound(scope)
        chosen = self.rng.choice(given)
        number = chosen if chosen.ty == "i32" else Node("bits", [chosen], "i32")
        return Node("bin", [number, int_const(self.rng.choice((3, 7, 15)))], "i32", "&")


def draw_programs(seed: int, count: int, without: frozenset[str]) -> list[ForwardProgram]:
    programs: list[ForwardProgram] = []
    number = seed
    while len(programs) < count:
        program = LaneGrammar(number, without).draw()
        number += 1_000_003
        has_loop = any(node.op in ("for", "while", "do") for node in program.main.body.walk())
        if (has_loop or len(programs) % 5 == 0) and runs(program):
            programs.append(program)
    return programs


def draw(seed: int, count: int, without: frozenset[str], route: str) -> LaneCase:
    return LaneCase(case_of(seed, draw_programs(seed, count, without), route or "numpy", "special" not in without))


FAMILY = lane_family(family.FAMILY, draw)
