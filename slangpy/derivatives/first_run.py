"""A net under all derivatives: the first run of each backward plan is compared with forward mode along a direction."""

from __future__ import annotations

import threading
import warnings
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from .._native import DiffPair, TorchPair, TorchSlot
from ..errors import CallError, SlangCompileError
from ..run.snapshots import is_registered
from .differences import Differences
from .leaves import Vector
from .problem import Problem

TOLERANCE = {2: 5e-2, 4: 2e-3, 8: 1e-6}
"""Relative, by the bytes of a number, of what the parts of a product with the Jacobian add up to in magnitude."""

_state = threading.local()


def check_first_run(node: Any, args: tuple[Any, ...], kwargs: dict[str, Any], values: list[Any]) -> None:
    """Warns (RuntimeWarning) where the derivatives of a backward call are not those of its function.

    Called by native code after the first run of a plan of `node` (`function.bwds`), where `device.check_gradients` is on,
    with the arguments of that call; `values`: what the TorchSlots among them stand for. It works on copies.
    """
    if getattr(_state, "busy", False):
        return
    _state.busy = True
    try:
        _check(node, args, kwargs, iter(values))
    except (CallError, SlangCompileError, RuntimeError, ValueError, TypeError, NotImplementedError) as error:
        _warn(f"{node.label}: its derivatives were not checked: {_first_line(error)}")
    finally:
        _state.busy = False


def _check(node: Any, args: tuple[Any, ...], kwargs: dict[str, Any], values: Iterator[Any]) -> None:
    positional = tuple(_primal(value, values) for value in args)
    named = {name: _primal(value, values) for name, value in kwargs.items()}
    named.pop("_append_to", None)
    problem = _problem(node._with(bwds=False), positional, named)
    if problem is None or problem.reads_back or not problem.inputs or not problem.outputs:
        return
    rng = np.random.default_rng(zlib.crc32(node.label.encode()))
    weights = {i: leaf.rounded(_random(rng, leaf.values.size)) for i, leaf in problem.outputs.items()}
    gradients = problem.pull(weights)
    checks = _Comparison(problem, weights, gradients)
    for key, leaf in problem.inputs.items():
        direction = leaf.rounded(_random(rng, leaf.values.size) * np.maximum(np.abs(leaf.values), 1.0))
        message = checks.along(key, direction)
        if message:
            _warn(f"{node.label}.bwds: the gradient by {leaf.path or 'an argument'} {message}")


def _problem(node: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Problem | None:
    """The problem of a call's arguments; the last one by position may be the result's, which only `bwds` takes so.

    None where a number stands for the result: it brings no gradient, and all gradients are zero.
    """
    if isinstance(kwargs.get("_result"), (int, float)):
        return None
    try:
        return Problem(node, args, kwargs, "check_gradients")
    except CallError:
        if not args or "_result" in kwargs:
            raise
    return _problem(node, args[:-1], {**kwargs, "_result": args[-1]})


class _Comparison:
    """<J^T w, v> of the backward call against <w, J v>, by forward mode or, where that is in doubt, by differences."""

    def __init__(self, problem: Problem, weights: dict[int, Vector], gradients: dict[int, Vector]) -> None:
        self.problem, self.weights, self.gradients = problem, weights, gradients
        coarsest = max(leaf.epsilon for leaf in problem.leaves.values())
        self.tolerance = TOLERANCE[8 if coarsest < 1e-12 else 4 if coarsest < 1e-6 else 2]
        self.differences = Differences(problem, weights, None, self.tolerance)
        self.forward = True

    def along(self, key: int, direction: Vector) -> str:
        """What is wrong with the gradient by input `key`; empty: nothing."""
        parts = self.gradients[key] * direction
        backward, size = float(np.sum(parts)), float(np.sum(np.abs(parts)))
        pushed = self._push(key, direction)
        if pushed is not None and self._near(backward, pushed[0], max(size, pushed[1])):
            return ""
        found = self.differences.along(key, direction, self.gradients[key], size)
        doubt = 3 * found.uncertainty
        agrees = self._near(backward, found.value, size, doubt)
        known = bool(np.isfinite(found.value) and np.isfinite(doubt))
        if agrees and (pushed is None or doubt < 0.5 * abs(backward - pushed[0])):
            return ""  # where there is forward mode, that is what is wrong
        if pushed is None and (agrees or not known):
            return ""
        others = [f"forward mode {pushed[0]:.6g}"] if pushed is not None else []
        others += [f"differences of the function {found.value:.6g}"] if known else []
        others += ["which see through no_diff and detach()"] if pushed is None else []
        return (
            f"is wrong: along a random direction it gives {backward:.6g}, but {', '.join(others)}. What Slang "
            "differentiates wrongly is listed in docs/compiler-faults.md; spy.check_gradients(function, ...) looks for the cause"
        )

    def _push(self, key: int, direction: Vector) -> tuple[float, float] | None:
        """<w, J v> by forward mode, and what its parts are in magnitude; None where there is no forward mode."""
        if not self.forward:
            return None
        try:
            tangents = self.problem.push({key: direction})
        except (CallError, SlangCompileError, RuntimeError, NotImplementedError):
            self.forward = False
            return None
        parts = [self.weights[i] * tangents[i] for i in tangents]
        return float(sum(np.sum(p) for p in parts)), float(sum(np.sum(np.abs(p)) for p in parts))

    def _near(self, a: float, b: float, size: float, more: float = 0.0) -> bool:
        return abs(a - b) <= self.tolerance * max(abs(a), abs(b), size) + more + 1e-12


def _random(rng: np.random.Generator, count: int) -> Vector:
    return rng.uniform(0.5, 1.5, count) * rng.choice([-1.0, 1.0], count)


def _primal(value: Any, values: Iterator[Any]) -> Any:
    """An argument of a backward call as the function itself takes it."""
    if isinstance(value, TorchSlot):
        value = next(values)
    if is_registered(value):
        raise NotImplementedError(f"{type(value).__name__} is a registered class, which may keep sums of its own")
    if isinstance(value, TorchPair):
        if value.primal is not None:
            return value.primal
        like = value.seed if value.seed is not None else value.grad
        return None if like is None else like.new_empty(like.shape)
    if isinstance(value, DiffPair):
        return DiffPair(0.0, value.grad, value.needs_grad) if value.primal is None else value
    if isinstance(value, dict):
        return {name: _primal(item, values) for name, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)([_primal(item, values) for item in value])
    return value


def _first_line(error: Exception) -> str:
    return str(error).split("\n", 1)[0]


def _warn(text: str) -> None:
    warnings.warn(text, RuntimeWarning, stacklevel=4)


__all__ = ["check_first_run"]
