"""Central differences of a call, with an estimate of how far they can be trusted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .leaves import Leaf, Vector
from .problem import Problem

SMALLER = (1 / 4, 1 / 16, 1 / 64, 1 / 256, 1 / 1024)
LARGER = (4.0, 16.0, 64.0)


@dataclass(frozen=True)
class Estimate:
    value: float
    uncertainty: float


class Differences:
    """Derivatives of sum(weight * output) by differences.

    Outputs are subtracted and added up in float64. Without a fixed step, differences at h and h/2 are extrapolated
    (the error is then of fourth order in h), and h is made smaller until the two agree.
    """

    def __init__(self, problem: Problem, weights: dict[int, Vector], eps: float | None, rtol: float) -> None:
        self._problem, self._weights, self._eps, self._rtol = problem, weights, eps, rtol
        self._precision = max(leaf.epsilon for leaf in problem.outputs.values())
        self.evaluations = 0

    def along(self, key: int, direction: Vector, analytic: Vector, scale: float) -> Estimate:
        """The derivative along `direction` of input `key`.

        analytic: its gradient, used only to account for the rounding of perturbed inputs. scale: of the tolerance.
        """
        leaf = self._problem.leaves[key]
        size = float(np.max(np.abs(direction)))
        reach = float(np.max(np.where(direction != 0, np.maximum(np.abs(leaf.values), 1.0), 0.0)))
        if self._eps is not None:
            value, noise = self._central(key, leaf, direction, analytic, self._eps * reach / size)
            return Estimate(value, noise)
        step = max(self._precision, leaf.epsilon) ** 0.2 * reach / size
        best, bend, noise = self._extrapolated(key, leaf, direction, analytic, step)
        for factor in LARGER if noise > bend else SMALLER:
            if best.uncertainty <= 0.05 * self._rtol * max(abs(best.value), 0.1 * scale):
                break
            found = self._extrapolated(key, leaf, direction, analytic, step * factor)[0]
            if np.isfinite(found.value) and not found.uncertainty >= best.uncertainty:
                best = found
        return best

    def _extrapolated(
        self, key: int, leaf: Leaf, direction: Vector, analytic: Vector, h: float
    ) -> tuple[Estimate, float, float]:
        """From the differences at h and h/2; and how far they are apart, and the part of rounding."""
        coarse, _ = self._central(key, leaf, direction, analytic, h)
        fine, noise = self._central(key, leaf, direction, analytic, h / 2)
        value = (4 * fine - coarse) / 3
        bend = abs(value - fine)
        if not np.isfinite(value):
            return Estimate(float("nan"), float("inf")), float("inf"), noise
        return Estimate(value, bend + noise), bend, noise

    def _central(self, key: int, leaf: Leaf, direction: Vector, analytic: Vector, h: float) -> tuple[float, float]:
        """The difference quotient, and how much of it may be rounding of the outputs."""
        up, down = leaf.rounded(leaf.values + h * direction), leaf.rounded(leaf.values - h * direction)
        taken = (up - down) / (2 * h)
        if not np.any(taken):
            return float("nan"), float("inf")
        above, below = self._problem.evaluate({key: up}), self._problem.evaluate({key: down})
        self.evaluations += 2
        total, moved, still = 0.0, 0.0, 0.0
        for i, weight in self._weights.items():
            change = above[i] - below[i]
            total += float(np.sum(weight * change))
            rounding = weight * np.maximum(np.abs(above[i]), np.abs(below[i])) * self._problem.leaves[i].epsilon
            moved += float(np.sum(rounding**2, where=change != 0))
            still = max(still, float(np.max(np.abs(rounding), initial=0.0)))
        # What does not move may depend on nothing, or on too little to be seen.
        value, noise = total / (2 * h), (float(np.sqrt(moved)) or still) / (2 * h)
        # What was taken is not quite the direction that was asked for.
        if np.count_nonzero(direction) == 1:
            ratio = float(taken[direction != 0][0] / direction[direction != 0][0])
            return value / ratio, noise / ratio
        stray = analytic * (taken - direction)
        return value - float(np.sum(stray, where=np.isfinite(stray))), noise


__all__ = ["Differences", "Estimate"]
