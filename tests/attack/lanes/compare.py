"""Runs a case with lanes and without, and compares bits. All has lanes that can have them, not only what is worth it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from slangpy.compiler.text import short
from slangpy.config import config

from ..failure import Failure
from ..forward.cases import Case
from ..forward.compare import Runner as ForwardRunner

__all__ = ["Runner", "begin", "expected"]

BITS = {2: np.uint16, 4: np.uint32, 8: np.uint64}


def begin() -> None:
    """Nothing that a process of this family needs first."""


def expected(case: Case) -> Case:
    """Nothing is computed before: the devices are compared with each other."""
    return case


class Runner:
    """Two devices. `taken`: how many kernels had lanes."""

    def __init__(self, name: str, optimized: bool, report: Callable[[str], None]):
        if name != "cpu":
            raise ValueError(f"lanes are of the cpu device; got {name}")
        self.report = report
        self.taken = 0
        self.both = [ForwardRunner("cpu", optimized, report) for _ in range(2)]

    def run(self, case: Case, want: Case, stages: tuple[str, ...] = ()) -> list[Failure]:
        results = []
        for on, runner in zip((False, True), self.both, strict=True):
            config.cpu_lanes = on
            try:
                runner.count += 1
                self.report("compile with lanes" if on else "compile")
                results.append(list(self._results(runner, case, on)))
            except Exception as error:
                return [Failure("error", "call", -1, f"lanes {on}: {type(error).__name__}: {error}")]
        found = [self._differ(k, a, b) for k, (a, b) in enumerate(zip(*results, strict=True))]
        return [failure for failure in found if failure is not None]

    def _results(self, runner: ForwardRunner, case: Case, on: bool) -> Iterator[list[np.ndarray]]:
        original = short.with_lanes

        def strictly(text: bytes) -> bytes | None:
            made = original(text, for_all=True)
            if made is not None:  # it has to compile
                self.taken += 1
                runner.device.compile(short.short_text(made) or made, "_spy_main", label=f"lanes {case.seed}", optimization=0)
            return made

        short.with_lanes = strictly
        try:
            for result in runner._call(runner.load(case), case):
                yield _flat(result)
        finally:
            short.with_lanes = original

    def _differ(self, k: int, a: list[np.ndarray], b: list[np.ndarray]) -> Failure | None:
        for x, y in zip(a, b, strict=True):
            same = x == y
            if x.dtype.kind == "f":
                bits = BITS[x.dtype.itemsize]
                same = (np.ascontiguousarray(x).view(bits) == np.ascontiguousarray(y).view(bits)) | (np.isnan(x) & np.isnan(y))
            if not same.all():
                at = int(np.argmin(same.reshape(len(same), -1).all(1)))
                return Failure("wrong value", str(x.dtype), k, f"row {at}: {x[at]} without lanes, {y[at]} with them")
        return None


def _flat(result: Any) -> list[np.ndarray]:
    if isinstance(result, dict):
        return [array for part in result.values() for array in _flat(part)]
    return [np.asarray(result)]
