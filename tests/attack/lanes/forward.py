"""Forward programs with loops and branches, with lanes and without, as a family: see ../family.py."""

from __future__ import annotations

from dataclasses import dataclass

from ..forward import family
from ..forward.cases import case_of, runs
from ..forward.grammar import SWITCHES, Grammar
from ..forward.inputs import ForwardProgram
from ..forward.types import SCALARS
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


def draw_programs(seed: int, count: int, without: frozenset[str]) -> list[ForwardProgram]:
    programs: list[ForwardProgram] = []
    number = seed
    while len(programs) < count:
        program = LaneGrammar(number, without).draw()
        number += 1_000_003
        if runs(program):
            programs.append(program)
    return programs


def draw(seed: int, count: int, without: frozenset[str], route: str) -> LaneCase:
    return LaneCase(case_of(seed, draw_programs(seed, count, without), route or "numpy", "special" not in without))


FAMILY = lane_family(family.FAMILY, draw)
