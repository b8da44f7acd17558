"""Random programs without derivatives over all scalar types, against NumPy; README.md says how to run more.

SLANGPY_ATTACK_FORWARD  programs per device; default: 40
SLANGPY_ATTACK_SEED     which ones
"""

from __future__ import annotations

import os
import re

import numpy as np
import pytest

import slangpy as spy

from .forward import compare
from .forward.cases import ROWS, Case, draw, runs
from .forward.compare import Runner, expected
from .forward.family import FAMILY
from .forward.grammar import GATE_WITHOUT, Grammar
from .forward.numbers import Numbers, Value
from .forward.print_slang import program_text
from .forward.types import base
from .hunt import Hunt, seed_of
from .nodes import Program
from .shrink import shrink, size

SEED = int(os.environ.get("SLANGPY_ATTACK_SEED", "1"))
BATCH = 20


@pytest.mark.slow
@pytest.mark.needs_kernels
def test_random_forward_programs(device_type: spy.DeviceType) -> None:
    hunt = Hunt(FAMILY, [device_type.name], GATE_WITHOUT, BATCH, optimized=False, limit=400)
    failures: list[str] = []
    compared = 0
    programs = int(os.environ.get("SLANGPY_ATTACK_FORWARD", 40))
    for batch in range((programs + BATCH - 1) // BATCH):
        for record in hunt.batch(seed_of(SEED, batch), route=("numpy", "tensor")[batch % 2]):
            compared += ROWS * record["programs"] - record["masked"]
            for finding in record["findings"]:
                at = f"{finding['class_']}: batch {finding['seed']}, program {finding['place']}, {finding['made']}"
                failures.append(f"{at}\n{finding['text']}\n{finding['source']}")
    hunt.worker.close()
    assert not failures, f"{len(failures)} programs fail\n" + "\n".join(failures)[:8000]
    assert compared > 0.75 * ROWS * programs, f"only {compared} rows could be compared"


@pytest.fixture(scope="module")
def right() -> tuple[Case, Runner]:
    """Programs that fail in nothing."""
    case = draw(seed_of(SEED, 1), 12, GATE_WITHOUT, "numpy")
    return case, Runner("cpu", False, lambda _: None)


@pytest.mark.slow
@pytest.mark.needs_kernels
def test_wrong_kernels_are_found(right: tuple[Case, Runner], monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels of other functions than the reference fail, and so do results that are not written."""
    case, runner = right
    want = expected(case)
    assert not runner.run(case, want)
    text = compare.batch_text
    monkeypatch.setattr(
        compare, "batch_text", lambda programs: re.sub(r"    r(\d+) = (p_.*);", r"    \2;", text(programs))
    )
    assert len(runner.run(case, want)) >= case.count * 2 // 3  # what is not written may be right by chance
    monkeypatch.setattr(compare, "batch_text", lambda programs: re.sub(r" \+ | < | \? ", _other, text(programs)))
    wrong = runner.run(case, want)
    assert {failure.kind for failure in wrong} == {"wrong value"} and len(wrong) >= case.count // 3


def _other(match: re.Match[str]) -> str:
    return {" + ": " - ", " < ": " >= ", " ? ": " == false ? "}[match.group(0)]


def number(ty: str, *values: object) -> Value:
    a = np.array(values, base(ty).dtype)
    return Value(ty, a, np.zeros(a.shape) if base(ty).kind == "f" else None)


@pytest.mark.parametrize(
    ("ty", "x", "operator", "y", "result"),
    [
        ("i8", 127, "+", 1, -128),
        ("u8", 3, "-", 5, 254),
        ("i16", -32768, "*", -1, -32768),
        ("i32", -7, "/", 2, -3),
        ("i32", -7, "%", 2, -1),
        ("i64", 7, "/", -2, -3),
        ("i64", 7, "%", -2, 1),
        ("i8", -128, ">>", 3, -16),
        ("u8", 200, "<<", 1, 144),
        ("u64", 2**64 - 1, "%", 10, 5),
        ("u64", 2**63, "/", 3, 2**63 // 3),
        ("f16", 2048.0, "+", 1.0, 2048.0),
        ("f64", -7.5, "%", 2.0, -1.5),
    ],
)
def test_reference(ty: str, x: float, operator: str, y: float, result: float) -> None:
    """Worked examples: widths wrap, division goes toward 0, the remainder has the sign of the dividend."""
    numbers = Numbers(1)
    got = numbers.binary(operator, number(ty, x), number(ty, y), ty)
    assert got.a[0] == result and got.a.dtype == base(ty).dtype and not numbers.lost[0]


@pytest.mark.parametrize(
    ("ty", "x", "operator", "y"),
    [
        ("i32", 1, "/", 0),
        ("u16", 1, "%", 0),
        ("i64", -(2**63), "/", -1),
        ("i8", 1, "<<", 8),
        ("u32", 1, ">>", 32),
        ("f16", 6e4, "+", 6e4),
    ],
)
def test_undefined_is_left_out(ty: str, x: float, operator: str, y: float) -> None:
    numbers = Numbers(1)
    numbers.binary(operator, number(ty, x), number(ty, y), ty)
    assert numbers.lost[0]


def test_bounds_follow_rounding() -> None:
    """A sum that is exact has no bound, one that is rounded has one; a comparison within it is left out."""
    numbers = Numbers(2)
    total = numbers.binary("+", number("f32", 1, 1), number("f32", 2, 1e-9), "f32")
    assert total.e is not None and total.e[0] == 0 and 1e-8 < total.e[1] < 1e-6
    numbers.compare("<=", total, number("f32", 3, 1), "b")
    assert numbers.lost.tolist() == [False, True]


def test_programs_are_repeatable() -> None:
    """A seed names the same program in every run, and other seeds other ones."""
    texts = [program_text(Grammar(seed).draw(), 0) for seed in range(30)]
    assert texts == [program_text(Grammar(seed).draw(), 0) for seed in range(30)]
    assert len(set(texts)) == 30


def test_all_types_and_constructs_are_drawn() -> None:
    ops = {node.op for seed in range(300) for node in Grammar(seed).draw().nodes()}
    assert ops >= set(
        "const var bin cmp logic neg not inv fn ucall mcall field comp index make braces tern select cast bits mul dot".split()
    )
    assert ops >= set("decl assign step if for while do break continue return switch mutcall".split())
    types = {node.ty.split(":")[0].split("[")[0] for seed in range(100) for node in Grammar(seed).draw().nodes()}
    assert types >= {"b", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "f32", "f64"}


def test_shrinking_keeps_what_fails() -> None:
    """A program that 'fails' because of one construct is cut down to it."""

    def failing(programs: list[Program]) -> list[Program]:
        return [smaller for smaller in programs if any(node.op == "switch" for node in smaller.main.body.walk())]

    seed = next(s for s in range(400) if failing([Grammar(s).draw()]) and runs(Grammar(s).draw()))
    program = Grammar(seed).draw()
    small = shrink(program, failing, 10, FAMILY.rules, group=5)
    assert failing([small]) and runs(small)  # type: ignore[arg-type]
    assert size(small) < 40 and size(small) < size(program)
