"""A case: programs that run in one call, the numbers they get, and how these lie in memory."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np

from ..layouts import Layout, draw_layout
from .grammar import Grammar
from .inputs import INPUT_STRUCT, INPUTS, ForwardProgram
from .numbers import Value
from .print_slang import named_inputs
from .reference import Machine, TooLong
from .types import base, is_struct, shape

ROWS = 61
ROUTES = ("numpy", "numpy", "tensor")


@dataclass
class Case:
    seed: int
    programs: list[ForwardProgram]
    route: str
    arrays: dict[str, np.ndarray]  # of each input that a program names, or field of the struct (s.q); one row or ROWS
    layouts: dict[str, Layout]
    masked: int = 0

    @property
    def count(self) -> int:
        return len(self.programs)

    def made(self) -> dict[str, str]:
        return {"route": self.route}

    def counts(self) -> dict[str, int]:
        return {"masked": self.masked}


class Expected:
    """What each program of a case gives, and which rows are lost; `flush`: where subnormal numbers may count as 0."""

    def __init__(self, case: Case):
        self.case = case
        self.made: dict[bool, list[tuple[Value, np.ndarray]]] = {}

    def runs(self, flush: bool) -> list[tuple[Value, np.ndarray]]:
        if flush not in self.made:
            programs = self.case.programs
            self.made[flush] = [Machine(p, ROWS, flush).run(values_of(self.case, p)) for p in programs]
        self.case.masked = sum(int(lost.sum()) for _, lost in self.made[flush])
        return self.made[flush]


def leaves(name: str) -> dict[str, str]:
    """The arrays of an input: its fields, or itself."""
    ty = INPUTS[name]
    return {f"{name}.{part}": kind for part, kind, _ in INPUT_STRUCT.fields} if is_struct(ty) else {name: ty}


def draw_numbers(rng: np.random.Generator, ty: str, size: tuple[int, ...], special: bool) -> np.ndarray:
    row = base(ty)
    if row.kind == "b":
        return rng.random(size) < 0.5
    if row.kind == "f":
        plain = rng.choice(
            [rng.uniform(-3, 3, size), np.round(rng.uniform(-9, 9, size) * 2) / 2, rng.uniform(-90, 90, size)]
        ).astype(row.dtype)
        edges = [0.0, -0.0, 1.0, -1.0, 0.5] + [
            np.inf,
            -np.inf,
            np.nan,
            row.largest,
            -row.largest,
            row.tiny,
            row.tiny / 4,
        ] * special
        return np.where(rng.random(size) < 0.12, rng.choice(np.array(edges, row.dtype), size), plain)
    plain = rng.integers(row.low, row.high, size, row.dtype, endpoint=True)
    small = rng.integers(-20 if row.kind == "i" else 0, 20, size).astype(row.dtype)
    edges = np.array(
        [row.low, row.high, row.low + 1, row.high - 1, 0, 1, row.high // 2 + 1, *((-1,) * (row.kind == "i"))], row.dtype
    )
    roll = rng.random(size)
    return np.where(roll < 0.3, rng.choice(edges, size), np.where(roll < 0.65, small, plain))


def draw_programs(seed: int, count: int, without: frozenset[str]) -> list[ForwardProgram]:
    """`count` programs that come to an end soon."""
    programs: list[ForwardProgram] = []
    number = seed
    while len(programs) < count:
        program = Grammar(number, without).draw()
        number += 1_000_003
        if runs(program):
            programs.append(program)
    return programs


def runs(program: ForwardProgram) -> bool:
    try:
        case = case_of(1, [program], "numpy", False)
        Machine(program, ROWS).run(values_of(case, program))
    except TooLong:
        return False
    return True


def case_of(seed: int, programs: list[ForwardProgram], route: str, special: bool) -> Case:
    rng, numbers = random.Random(seed ^ 0x5EED), np.random.default_rng(seed)
    route = route or rng.choice(ROUTES)
    arrays, layouts = {}, {}
    for name in named_inputs(programs):
        for leaf, ty in leaves(name).items():
            lead = rng.choice([(ROWS,)] * 8 + [(1,), ()])
            arrays[leaf] = draw_numbers(numbers, ty, lead + shape(ty), special)
            layouts[leaf] = draw_layout(rng, lead + shape(ty))
    return Case(seed, programs, route, arrays, layouts)


def draw(seed: int, count: int, without: frozenset[str], route: str) -> Case:
    return case_of(seed, draw_programs(seed, count, without), route, "special" not in without)


def part(case: Case, places: list[int]) -> Case:
    programs = [case.programs[k] for k in places]
    names = {leaf for name in named_inputs(programs) for leaf in leaves(name)}
    return Case(
        case.seed,
        programs,
        case.route,
        {name: case.arrays[name] for name in names},
        {name: case.layouts[name] for name in names},
    )


def again(case: Case, programs: list[ForwardProgram]) -> Case:
    return case_of(case.seed, programs, case.route, True)


def values_of(case: Case, program: ForwardProgram) -> dict[str, Value]:
    made: dict[str, Value] = {}
    for param in program.main.params:
        parts = []
        for leaf, ty in leaves(param.name).items():
            a = np.broadcast_to(case.arrays[leaf], (ROWS, *shape(ty))).copy()
            parts.append(Value(ty, a, np.zeros(a.shape) if base(ty).kind == "f" else None))
        made[param.name] = Value("In", kids=parts) if is_struct(param.ty) else parts[0]
    return made


expected = Expected
