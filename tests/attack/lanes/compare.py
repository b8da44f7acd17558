"""Runs a case with lanes and without, and compares bits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import numpy as np

import slangpy as spy
from slangpy.compiler import executable
from slangpy.config import config

from ..cases import Case as GradientCase
from ..compare import Runner as GradientRunner, begin
from ..expected import Expected
from ..failure import Failure
from ..forward.cases import Case as ForwardCase
from ..forward.compare import Runner as ForwardRunner
from .cases import LaneCase
from .strict import programs_with_lanes, strict_compiler

__all__ = ["Runner", "begin", "expected"]

BITS = {2: np.uint16, 4: np.uint32, 8: np.uint64}


def expected(case: LaneCase) -> LaneCase:
    """Nothing is computed before: the results are compared with each other."""
    return case


@dataclass
class Result:
    """An array that a call gave. program: -1 for one of all."""

    stage: str
    program: int
    array: np.ndarray


@dataclass
class Numbers:
    """In place of what is expected: `GradientRunner` compares with nothing here."""

    values: tuple[None] = (None,)
    value_slack: tuple[None] = (None,)
    tangent: tuple[()] = ()
    tangent_slack: tuple[()] = ()


class GradientResults(GradientRunner):
    """Keeps what `.bwds` and the other calls gave, where its base class compares it."""

    results: list[Result]

    def open(self, optimized: bool) -> spy.Device:
        options = {} if optimized else {"optimization": spy.SlangOptimizationLevel.none}
        return spy.Device(type=spy.DeviceType.cpu, compiler_options=options, enable_hot_reload=False)

    def _compare_rows(self, case: GradientCase, kind: str, stage: str, got: np.ndarray, want: Any, slack: Any) -> list[Failure]:
        self.results += [Result(stage, k, row) for k, row in enumerate(got)]
        return []

    def _compare_gradients(self, case: GradientCase, stage: str, got: dict[str, np.ndarray], want: Expected) -> list[Failure]:
        for array in got.values():
            own = case.count if array.shape[:1] == (case.count,) and array.ndim > 1 else 0
            self.results += [Result(stage, k, row) for k, row in enumerate(array)] if own else [Result(stage, -1, array)]
        return []


class Runner:
    """Devices without lanes and with them."""

    def __init__(self, name: str, optimized: bool, report: Callable[[str], None]):
        if name != "cpu":
            raise ValueError(f"lanes are of the cpu device; got {name}")
        self.report = report
        config.cpu_threads = 1  # else threads decide in which order sums of gradients are added
        self.forward = [ForwardRunner("cpu", optimized, report) for _ in range(2)]
        self.gradients = [GradientResults("cpu", optimized, report) for _ in range(2)]

    def run(self, case: LaneCase, want: LaneCase, stages: tuple[str, ...] = ()) -> list[Failure]:
        results: list[list[Result]] = []
        codes: list[bytes] = []
        for on in (False, True):
            compiler = strict_compiler(lambda label, code: codes.append(code))
            with patch.object(config, "cpu_lanes", on), patch.object(executable, "compile_kernel", compiler):
                made = self._results(case.inner, int(on), stages)
            if isinstance(made, Failure):
                return [made]
            results.append(made)
        found = [programs_with_lanes(code) for code in codes]
        case.lanes = len(set[int]().union(*(some for some, _ in found)))
        case.loops = len(set[int]().union(*(loops for _, loops in found)))
        return [f for a, b in zip(*results, strict=True) if (f := _difference(a, b)) is not None]

    def _results(self, case: ForwardCase | GradientCase, on: int, stages: tuple[str, ...]) -> list[Result] | Failure:
        if isinstance(case, GradientCase):
            runner = self.gradients[on]
            runner.results = []
            failures = runner.run(case, Numbers(), stages)  # type: ignore[arg-type]
            return next((f for f in failures), runner.results)
        runner = self.forward[on]
        runner.count += 1
        self.report("compile")
        try:
            called = runner._call(runner.load(case), case)
        except Exception as error:
            return Failure("error", "call", -1, f"lanes {bool(on)}: {type(error).__name__}: {error}")
        return [Result("call", k, array) for k, result in enumerate(called) for array in _flat(result)]


def _difference(a: Result, b: Result) -> Failure | None:
    x, y = np.atleast_1d(a.array), np.atleast_1d(b.array)
    same = x == y
    if x.dtype.kind == "f":
        bits = BITS[x.dtype.itemsize]
        same = (np.ascontiguousarray(x).view(bits) == np.ascontiguousarray(y).view(bits)) | (np.isnan(x) & np.isnan(y))
    if np.all(same):
        return None
    at = tuple(map(int, np.argwhere(~same)[0]))
    return Failure("wrong value", a.stage, a.program, f"{x.dtype} {at}: {x[at]!r} without lanes, {y[at]!r} with them")


def _flat(result: Any) -> list[np.ndarray]:
    if isinstance(result, dict):
        return [array for part in result.values() for array in _flat(part)]
    return [np.asarray(result)]
