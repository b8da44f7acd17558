"""`check_gradients`: derivatives of a function against central differences."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import CallError, SlangCompileError
from .diagnose import diagnose
from .differences import Differences, Estimate
from .leaves import Leaf, Vector
from .problem import Problem
from .report import GradientError, GradientReport, Row

RTOL = {2: 5e-2, 4: 2e-3, 8: 1e-6}
"""Default relative tolerances by the bytes of a number."""


def check_gradients(
    function: Any, /, *args: Any, eps: float | None = None, rtol: float | None = None, atol: float | None = None,
    samples: int = 32, seed: int = 0, raise_on_error: bool = True, **kwargs: Any,
) -> GradientReport:  # fmt: skip
    """Compares `function.bwds` and `function.fwds` with central differences of `function`.

    function: a function of a module; args, kwargs: as for a call (gradients that are attached play no part, and nothing
    that is passed is changed). All outputs, whole tensors included, are weighted at random and added up in float64;
    the derivative of that sum by the numbers in each differentiable input is compared.

    samples: how many numbers of each input are varied one by one; a larger input is varied along a random direction
    of all its numbers too. seed: of the random choices.
    eps: step, relative to `max(|x|, 1)`. None chooses one by the precision of the outputs, extrapolates, and shrinks the
    step where the differences do not settle.
    rtol, atol: a derivative d is right where `|d - numeric| <= atol + rtol * max(|d|, |numeric|)`. None: rtol is 2e-3 for
    float, 1e-6 for double, 5e-2 for half; atol is a tenth of rtol times the largest derivative by that input.

    Returns a GradientReport, which is true where nothing is wrong. Raises GradientError (an AssertionError with the
    report) where something is, unless raise_on_error is False; ValueError for functions that are not differentiable
    or that have nothing to differentiate. Parameters named like the options here must be passed by position.
    """
    if samples < 1:
        raise ValueError(f"check_gradients: samples must be at least 1, got {samples}")
    problem = Problem(function, args, kwargs, "check_gradients")
    check = _Check(problem, eps, rtol, atol, samples, np.random.default_rng(seed))
    report = check.run()
    if report.wrong:
        report.notes += diagnose(problem, function, report, check.pull_again, check.push_again)
        if raise_on_error:
            raise GradientError(report)
    return report


class _Check:
    def __init__(
        self, problem: Problem, eps: float | None, rtol: float | None, atol: float | None, samples: int,
        rng: np.random.Generator,
    ) -> None:  # fmt: skip
        label = problem.node.label
        if not problem.inputs:
            more = f" ({', '.join(problem.untried)} cannot be varied)" if problem.untried else ""
            raise ValueError(f"check_gradients: {label} has no differentiable input among the arguments{more}")
        if not problem.outputs:
            raise ValueError(f"check_gradients: {label} has no differentiable output among the arguments")
        self.problem, self.samples, self.rng = problem, samples, rng
        coarsest = max(leaf.epsilon for leaf in problem.leaves.values())
        self.rtol = rtol if rtol is not None else RTOL[8 if coarsest < 1e-12 else 4 if coarsest < 1e-6 else 2]
        self.atol = atol
        self.weights = {i: rng.uniform(0.5, 1.5, leaf.values.size) * rng.choice([-1, 1], leaf.values.size)
                        for i, leaf in problem.outputs.items()}  # fmt: skip
        self.weights = {i: problem.leaves[i].rounded(w) for i, w in self.weights.items()}
        self.differences = Differences(problem, self.weights, eps, self.rtol)
        self.report = GradientReport(label, rtol=self.rtol)
        self.rows: list[tuple[int, Vector, Row]] = []

    def run(self) -> GradientReport:
        problem, report = self.problem, self.report
        gradients = self._pull()
        forward = self._has_forward()
        for key, leaf in problem.inputs.items():
            self._check_input(key, leaf, gradients[key], forward)
        report.table = sorted((row for _, _, row in self.rows), key=_badness, reverse=True)
        report.evaluations = self.differences.evaluations
        if problem.untried:
            report.notes.append(f"not varied: {', '.join(problem.untried)}")
        self._note_constants()
        return report

    def _pull(self) -> dict[int, Vector]:
        try:
            return self.problem.pull(self.weights)
        except (CallError, SlangCompileError):
            raise
        except RuntimeError as error:  # on the CPU a loop beyond [MaxIters] is noticed
            self.report.notes.append(f"bwds failed: {error}")
            return {key: np.full_like(leaf.values, np.nan) for key, leaf in self.problem.inputs.items()}

    def _note_constants(self) -> None:
        for argument in dict.fromkeys(row.argument for row in self.report.table):
            rows = [row for row in self.report.table if row.argument == argument]
            if all(row.numeric == 0 == row.bwds for row in rows):
                self.report.notes.append(f"nothing depends on {argument}")
            elif all(row.state == "unsure" for row in rows):
                self.report.notes.append(
                    f"the differences by {argument} are too rough to check anything: the function may jump or be noisy "
                    "there; try other values, or double"
                )

    def _has_forward(self) -> bool:
        key, leaf = next(iter(self.problem.inputs.items()))
        try:
            self.problem.push({key: np.zeros_like(leaf.values)})
        except (CallError, RuntimeError) as error:  # forward mode is an extra
            first = str(error).split("\n", 1)[0]
            self.report.notes.append(f"fwds was not checked: {first}")
            return False
        return True

    def _check_input(self, key: int, leaf: Leaf, gradient: Vector, forward: bool) -> None:
        count = leaf.values.size
        chosen = np.arange(count) if count <= self.samples else np.sort(self.rng.choice(count, self.samples, False))
        found: list[tuple[str, Vector, Estimate, float, float | None]] = []
        scale = float(np.max(np.abs(gradient), initial=0.0, where=np.isfinite(gradient)))
        directions = [(leaf.label(int(i)), _unit(count, int(i))) for i in chosen]
        if count > self.samples:
            spread = self.rng.uniform(0.5, 1.0, count) * self.rng.choice([-1, 1], count)
            directions.append((" along a random direction", leaf.rounded(spread * np.maximum(np.abs(leaf.values), 1))))
        for label, direction in directions:
            estimate = self.differences.along(key, direction, gradient, scale)
            backward = (
                float(np.dot(gradient, direction)) if label.startswith(" ") else float(gradient[np.argmax(direction)])
            )
            pushed = self._push(key, direction, self.problem.node) if forward else None
            found.append((label, direction, estimate, backward, pushed))
        largest = max((abs(e.value) for _, _, e, _, _ in found if np.isfinite(e.value)), default=0.0)
        atol = self.atol if self.atol is not None else 0.1 * self.rtol * max(largest, min(scale, largest * 1e3))
        for label, direction, estimate, backward, pushed in found:
            row = self._judge(leaf.path, label, estimate, backward, pushed, atol)
            self.rows.append((key, direction, row))

    def _push(self, key: int, direction: Vector, node: Any) -> float:
        tangents = self.problem.push({key: direction}, node)
        return float(sum(np.sum(self.weights[i] * tangents[i]) for i in tangents))

    def _judge(
        self, path: str, label: str, estimate: Estimate, backward: float, pushed: float | None, atol: float
    ) -> Row:
        errors, wrong, state = [0.0], [], "ok"
        for name, value in (("bwds", backward), ("fwds", pushed)):
            if value is None:
                continue
            deviation, magnitude = abs(value - estimate.value), max(abs(value), abs(estimate.value))
            errors.append(deviation / max(magnitude, atol / max(self.rtol, 1e-300), 1e-300))
            allowed = atol + self.rtol * magnitude
            if deviation <= allowed:
                continue
            if np.isfinite(value) and not deviation > allowed + 3 * estimate.uncertainty:
                state = "unsure" if state == "ok" else state
            else:
                state = "wrong"
                wrong.append(name)
        if not np.isfinite(errors).all():
            errors = [float("inf")]
        return Row(
            path, label, backward, pushed, estimate.value, estimate.uncertainty, max(errors), state, tuple(wrong)
        )

    # --- the same derivatives by another version of the function
    def pull_again(self, node: Any) -> bool:
        """Whether the backward call of `node` is right where that of the function is wrong."""
        gradients = self.problem.pull(self.weights, node)
        return all(
            self._near(float(np.dot(gradients[key], direction)), row)
            for key, direction, row in self.rows
            if "bwds" in row.wrong
        )

    def push_again(self, node: Any) -> bool:
        """The same for the forward-mode call."""
        return all(
            self._near(self._push(key, direction, node), row)
            for key, direction, row in self.rows
            if "fwds" in row.wrong
        )

    def _near(self, value: float, row: Row) -> bool:
        allowed = self.rtol * max(abs(value), abs(row.numeric)) + 3 * row.uncertainty
        return abs(value - row.numeric) <= allowed + 1e-12


def _unit(count: int, index: int) -> Vector:
    direction = np.zeros(count)
    direction[index] = 1.0
    return direction


def _badness(row: Row) -> tuple[int, float]:
    return ("ok", "unsure", "wrong").index(row.state), row.error


__all__ = ["check_gradients"]
