"""The attack on gradients as a family: see family.py."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .cases import Case, draw_case, draw_programs, part_of
from .family import Family
from .grammar import KNOWN
from .nodes import INPUTS, Node, Program, is_matrix, is_vector
from .print_slang import batch_text
from .reference import Machine, values_of
from .shrink import Path, Rules


def runs(program: Program) -> bool:
    """Whether the reference can run it."""
    row = {given.name: np.full(given.shape, 0.4) for given in INPUTS}
    row["n"] = np.array(3)
    try:
        return isinstance(Machine(program).run(values_of(row)), (int, float))
    except Exception:
        return False


def _simple(program: Program, path: Path, node: Node) -> Iterator[Node]:
    if node.ty == "f":
        floats = [param.name for param in program.all_functions()[path[0]].params if param.ty == "f" and not param.no_diff]
        if node.op not in ("var", "comp", "index", "field"):
            yield from (Node("var", [], "f", name) for name in floats[:1])
        if node.op != "const":
            yield Node("const", [], "f", "0.5")
    elif node.ty == "i" and node.op not in ("const", "var"):
        yield Node("const", [], "i", "1")
    elif node.ty == "b" and node.op != "const":
        yield Node("const", [], "b", "true")
        yield Node("const", [], "b", "false")
    elif (is_vector(node.ty) or is_matrix(node.ty)) and "N" not in node.ty and node.op not in ("var", "make"):
        count = int(node.ty[1]) * (int(node.ty[2]) if is_matrix(node.ty) else 1)
        yield Node("make", [Node("const", [], "f", "0.5") for _ in range(count)], node.ty)


def _draw(seed: int, count: int, without: frozenset[str], route: str) -> Case:
    return draw_case(seed, draw_programs(seed, count, without), route=route)


def _again(case: Case, programs: list[Program]) -> Case:
    return draw_case(case.seed + 1, programs, case.mode, case.route, case.graph)


def _text(case: Case, programs: list[Program]) -> str:
    return batch_text(programs, case.mode)


def _stages(case: Case) -> tuple[str, ...]:
    """Reverse derivatives of all; forward ones, with the values that they come with, of every other batch; kernels of values
    alone, which torch's route always has, of every fourth."""
    if case.route == "torch":
        return ("torch",)
    return ("bwds", *["fwds"] * (case.seed % 2), *["value"] * (case.seed % 4 < 2 and case.seed % 8 < 4))


RULES = Rules(runs, _simple, "i")
FAMILY = Family(f"{__package__}.compare", KNOWN, _draw, part_of, _again, _text, RULES, stages=_stages)
