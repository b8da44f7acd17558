"""Random differentiable programs against torch.float64: value, gradient and tangent; README.md says how to run more.

SLANGPY_ATTACK       programs per device; default: 6
SLANGPY_ATTACK_SEED  which ones
"""

from __future__ import annotations

import os
import re
from multiprocessing.context import SpawnProcess
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

import slangpy as spy

from . import compare
from .cases import Case
from .compare import Runner
from .expected import _mask_chaos, expected
from .gradients import FAMILY, RULES, runs
from .grammar import GATE_WITHOUT, Grammar
from .hunt import Hunt, seed_of
from .nodes import Function, Node, Param, Program
from .print_slang import program_text
from .shrink import candidates, shrink, size
from .worker import Answer, Worker

FIRST = {"vulkan": 6}  # the batch that the run begins with; Mesa 22 compiles the 5th for minutes
SEED = int(os.environ.get("SLANGPY_ATTACK_SEED", "1"))
BATCHES = {"vulkan": 5}
PROGRAMS = {"vulkan": 5}


@pytest.mark.slow
@pytest.mark.needs_kernels
def test_random_programs(device_type: spy.DeviceType, tmp_path: Path) -> None:
    batch_size = BATCHES.get(device_type.name, 3)
    hunt = Hunt(FAMILY, [device_type.name], GATE_WITHOUT, batch_size, optimized=False, limit=400)
    failures: list[str] = []
    compared = 0
    programs = int(os.environ.get("SLANGPY_ATTACK", PROGRAMS.get(device_type.name, 6)))
    first = FIRST.get(device_type.name, 0)
    for batch in range(first, first + (programs + batch_size - 1) // batch_size):
        for record in hunt.batch(seed_of(SEED, batch), route=("tensor", "torch")[batch % 2]):
            compared += 2 * record["programs"] - record["masked"]
            for finding in record["findings"]:
                at = f"{finding['class_']}: batch {finding['seed']}, program {finding['place']}, {finding['made']}"
                failures.append(f"{at}\n{finding['text']}\n{finding['source']}")
    hunt.worker.close()
    assert not failures, f"{len(failures)} programs fail\n" + "\n".join(failures)[:8000]
    assert compared > 1.5 * programs, f"only {compared} rows could be compared"


def test_starting_changes_no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads start several processes at once. One that changed the environment meanwhile ended others before their first word."""
    seen: list[dict[str, str]] = []
    monkeypatch.setattr(SpawnProcess, "start", lambda _: seen.append(dict(os.environ)))
    monkeypatch.setattr(SpawnProcess, "join", lambda *_: None)
    monkeypatch.setattr(SpawnProcess, "is_alive", lambda _: False)
    before = dict(os.environ)
    worker = Worker(FAMILY.worker)
    worker._start()
    worker.close()
    assert seen == [before]


@pytest.mark.slow
@pytest.mark.needs_kernels
def test_wrong_numbers_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels of another function than the reference fail in each of the three ways, and those of the same one in none."""
    case = Hunt(FAMILY, ["cpu"], GATE_WITHOUT, 4).draw(seed_of(SEED, 1), "tensor")
    want = expected(case)
    runner = Runner("cpu", False, lambda _: None)
    assert not runner.run(case, want)
    right = compare.batch_text
    monkeypatch.setattr(compare, "batch_text", lambda *given: re.sub(r"(r\[\d+\] =) ", r"\1 1.003f * ", right(*given)))
    found = {(failure.kind, failure.program) for failure in runner.run(case, want)}
    for kind in ("wrong value", "wrong gradient", "wrong tangent"):
        assert len({k for what, k in found if what == kind}) >= case.count // 2, found


def test_rows_without_a_tolerance_are_left_out() -> None:
    """Noise that grows from 1e-6 to a noticeable part of the value has no bound; what grows less is compared."""
    case = Hunt(FAMILY, ["cpu"], GATE_WITHOUT, 4).draw(seed_of(SEED, 1), "tensor")
    exact = np.full((case.count, 2), -4.0)
    near = exact + 1e-4
    before = case.weights.copy()
    assert not _mask_chaos(case, [exact], [[near], [exact]])
    assert (case.weights == before).all()
    near[1, 0] += 2e-3
    assert _mask_chaos(case, [exact], [[exact], [near]])
    before[:, 1, 0] = 0
    assert (case.weights == before).all()


def test_programs_are_repeatable() -> None:
    """A seed names the same program in every run, and other seeds other ones."""
    texts = [program_text(Grammar(seed).draw(), 0) for seed in range(20)]
    assert texts == [program_text(Grammar(seed).draw(), 0) for seed in range(20)]
    assert len(set(texts)) == 20


def test_shrinking_keeps_what_fails() -> None:
    """A program that 'fails' because of one construct is cut down to it."""
    seed = next(s for s in range(200) if any(node.op == "switch" for node in Grammar(s).draw().main.body.walk()))
    program = Grammar(seed).draw()

    def failing(programs: list[Program]) -> list[Program]:
        return [smaller for smaller in programs if any(node.op == "switch" for node in smaller.main.body.walk())]

    small = shrink(program, failing, 20, RULES, group=5)
    assert any(node.op == "switch" for node in small.nodes()) and runs(small)
    assert size(small) < 45 and size(small) < size(program)
    assert not any(runs(smaller) and size(smaller) < size(small) for smaller in failing(list(candidates(small, RULES))))


def test_programs_that_read_an_out_parameter_before_its_value_do_not_run() -> None:
    """Else shrinking would go on to programs that Slang leaves undefined."""

    def var(name: str) -> Node:
        return Node("var", [], "f", name)

    first = Node("assign", [var("y"), var("x")], text="=")
    helper = Function("f@", [Param("x", "f"), Param("y", "f", "out")], "f", Node("block", [first, Node("return", [var("y")])]))
    call = Node("xcall", [Node("empty"), Node("bin", [var("a"), var("a")], "f", "+"), var("a")], text="f@")
    main = Function("p@", [Param("a", "f")], "f", Node("block", [call, Node("return", [var("a")])]))
    program = Program(0, main, [helper], [], [], [], [])
    assert runs(program)
    del helper.body.kids[0]
    assert not runs(program)


class TooSmall:
    """In place of a worker: no room for more than two programs, and for two only in a new process; one program is wrong."""

    def __init__(self, wrong: int):
        self.wrong = wrong
        self.asked: list[tuple[int, tuple[str, ...]]] = []
        self.is_new = True

    def close(self) -> None:
        self.is_new = True

    def ask(self, case: Case, device: str, optimized: bool, stages: tuple[str, ...] = ()) -> Answer:
        del device, optimized
        self.asked.append((case.count, stages))
        seeds = [program.seed for program in case.programs]
        room, self.is_new = 2 if self.is_new else 1, False
        if case.count > 2:
            text = "RuntimeError: its functions keep 20000 bytes in variables"
        elif case.count > room:
            text = "MemoryError: out of memory: CUDA failed to launch 'k'"
        else:
            wrong = [{"kind": "wrong gradient", "stage": "bwds", "program": k, "text": ""} for k, seed in enumerate(seeds) if seed == self.wrong]
            return Answer(wrong, {"masked": 1})
        return Answer([{"kind": "error", "stage": "bwds", "program": -1, "text": text}], {"masked": 100})


def test_calls_that_are_too_large_are_halved() -> None:
    hunt = Hunt(FAMILY, ["vulkan"], count=8, every=False)
    case = hunt.draw(42)
    wrong = case.programs[5].seed
    hunt.worker = TooSmall(wrong)  # type: ignore[assignment]
    (found,) = hunt.examine(case, "vulkan")
    assert (found.place, found.program_seed, found.class_) == (5, wrong, "wrong gradient")
    assert {count: [c for c, _ in hunt.worker.asked].count(count) for count in (8, 4, 2)} == {8: 1, 4: 2, 2: 8}
    assert hunt.counts == {"masked": 4, "split": 3, **dict.fromkeys(FAMILY.stages(case), 8)}
