"""A case: programs that run in one call, the numbers they get, how these lie in memory, and how the call is made."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .grammar import Grammar
from .layouts import Layout, draw_layout
from .nodes import INPUTS, Program
from .reference import Machine, TooLong, values_of

ROWS = 2  # rows of the call for each program
LIMIT = 60.0  # of values in a row that is compared
MARGIN = 3e-4  # noise under which decisions must stay as they are

MODES = ("return", "return", "out", "store", "inout")
ROUTES = ("tensor", "tensor", "torch")
GRAPHS = ("one", "chain", "shared", "detach", "in_place", "in_place_after", "twice", "accumulate", "frozen", "subset", "no_grad_first")


@dataclass
class Case:
    seed: int
    programs: list[Program]
    mode: str
    route: str
    graph: str
    shapes: dict[str, tuple[int, ...]]  # call dimensions of each input, before those of the element
    layouts: dict[str, Layout]
    arrays: dict[str, np.ndarray]  # float32 (n: int32), each of its shape and the element's
    start: np.ndarray  # what r is before the call: (K, R, K)
    weights: np.ndarray  # (2, K, R); 0 where a row is not compared
    tangents: dict[str, np.ndarray]
    notes: list[str] = field(default_factory=list)

    @property
    def count(self) -> int:
        return len(self.programs)

    def counts(self) -> dict[str, int]:
        return {"masked": int((self.weights[0] == 0).sum())}

    def made(self) -> dict[str, str]:
        return {"mode": self.mode, "route": self.route, "graph": self.graph if self.route == "torch" else ""}


def draw_programs(seed: int, count: int, without: frozenset[str]) -> list[Program]:
    """`count` programs that come to an end soon."""
    programs: list[Program] = []
    number = seed
    while len(programs) < count:
        program = Grammar(number, without).draw()
        number += 1_000_003
        row = {given.name: np.full(given.shape, 0.4) for given in INPUTS}
        row["n"] = np.array(6)
        try:
            Machine(program).run(values_of(row))
        except (TooLong, OverflowError, ZeroDivisionError):
            continue
        programs.append(program)
    return programs


def draw_case(seed: int, programs: list[Program], mode: str = "", route: str = "", graph: str = "") -> Case:
    rng, numbers = random.Random(seed ^ 0x5EED), np.random.default_rng(seed)
    count = len(programs)
    mode, route, graph = mode or rng.choice(MODES), route or rng.choice(ROUTES), graph or rng.choice(GRAPHS)
    shapes, layouts, arrays, tangents = {}, {}, {}, {}
    for given in INPUTS:
        lead = rng.choice([(count, ROWS)] * 7 + [(ROWS,), (count, 1), (1, ROWS), ()])
        shapes[given.name] = lead
        layouts[given.name] = draw_layout(rng, lead + given.shape)
        arrays[given.name] = draw_values(numbers, given.name, lead + given.shape)
        tangents[given.name] = numbers.uniform(-1, 1, lead + given.shape).astype(np.float32)
    start = numbers.uniform(-1, 1, (count, ROWS, count)).astype(np.float32)
    weights = (numbers.uniform(0.5, 1.5, (2, count, ROWS)) * numbers.choice([-1, 1], (2, count, ROWS))).astype(np.float32)
    case = Case(seed, programs, mode, route, graph, shapes, layouts, arrays, start, weights, tangents)
    settle(case, numbers)
    return case


def part_of(case: Case, places: list[int]) -> Case:
    """Some of the programs of a case, with the numbers that they had in it."""
    rng = random.Random(case.seed ^ 0x9A27)
    shapes, layouts, arrays, tangents = {}, {}, {}, {}
    for given in INPUTS:
        lead, name = case.shapes[given.name], given.name
        own = len(lead) == 2 and lead[0] == case.count
        shapes[name] = (len(places), lead[1]) if own else lead
        arrays[name], tangents[name] = (array[places] if own else array.copy() for array in (case.arrays[name], case.tangents[name]))
        layouts[name] = draw_layout(rng, shapes[name] + given.shape)
    return Case(case.seed, [case.programs[k] for k in places], case.mode, case.route, case.graph, shapes, layouts, arrays,
                case.start[places][:, :, places], case.weights[:, places], tangents)  # fmt: skip


def draw_values(numbers: np.random.Generator, name: str, shape: tuple[int, ...]) -> np.ndarray:
    if name == "n":
        return numbers.integers(0, 7, shape).astype(np.int32)
    return numbers.uniform(-1.5, 1.5, shape).astype(np.float32)


def row_of(case: Case, k: int, r: int) -> dict[str, np.ndarray]:
    row = {}
    for given in INPUTS:
        full = np.broadcast_to(case.arrays[given.name], (case.count, ROWS, *given.shape))
        row[given.name] = full[k, r].astype(np.float64 if given.name != "n" else np.int64)
    return row


def settle(case: Case, numbers: np.random.Generator) -> None:
    """Draws the numbers of rows anew that decide something by a hair's breadth; gives those up that stay so."""
    for k, program in enumerate(case.programs):
        machine = Machine(program)
        for r in range(ROWS):
            for _ in range(6):
                if steady(machine, row_of(case, k, r)):
                    break
                for given in INPUTS:
                    if len(case.shapes[given.name]) == 2 and case.shapes[given.name][0] == case.count and case.shapes[given.name][1] == ROWS:
                        case.arrays[given.name][k, r] = draw_values(numbers, given.name, given.shape)
            else:
                case.weights[:, k, r] = 0


def steady(machine: Machine, row: dict[str, Any]) -> bool:
    """Whether small changes leave the decisions of a program and, about, its value."""
    try:
        value = machine.run(values_of(row))
        trace = machine.trace
        if not abs(value) < LIMIT:
            return False
        for seed in (1, 2, 3):
            other = machine.run(values_of(row), MARGIN, seed)
            if machine.trace != trace or abs(other - value) > 0.05 * (1 + abs(value)):
                return False
    except (TooLong, OverflowError, ZeroDivisionError, ValueError):
        return False
    return True
