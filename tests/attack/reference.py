"""Programs run in float64: on numbers, on numbers with noise, and on torch tensors, whose autograd gives the gradients."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import torch

from .nodes import INPUTS, Program
from .print_python import AXES, Printer


class TooLong(Exception):
    """The program takes more steps than the comparison is worth."""


class Rec(list):
    """A struct: its fields, and the name of its type."""

    tag = ""


def record(tag: str, values: list[Any]) -> list[Any]:
    made = Rec(values)
    made.tag = tag
    return made


def cp(value: Any) -> Any:
    if isinstance(value, Rec):
        return record(value.tag, [cp(item) for item in value])
    return [cp(item) for item in value] if isinstance(value, list) else value


def detach(value: Any) -> Any:
    if isinstance(value, list):
        return [detach(item) for item in value]
    return value.detach() if isinstance(value, torch.Tensor) else value


def swizzle(value: list[Any], names: str) -> list[Any]:
    return [value[AXES[name]] for name in names]


def put(value: list[Any], names: str, new: list[Any]) -> None:
    for at, name in enumerate(names):
        value[AXES[name]] = new[at]


def make(ty: str, *parts: Any) -> list[Any]:
    if ty[0] == "v":
        return list(parts)
    rows, columns = int(ty[1]), int(ty[2])
    if isinstance(parts[0], list):
        return [list(part) for part in parts]
    return [list(parts[row * columns : (row + 1) * columns]) for row in range(rows)]


class Machine:
    """One program, and the state of one run: noise, the decisions taken so far, and steps."""

    def __init__(self, program: Program):
        self.noise = 0.0
        self.rng = random.Random(0)
        self.trace: list[bool | None] = []
        self.steps = 0
        self.space: dict[str, Any] = self._space()
        exec(compile(Printer(program).text(), f"<program {program.seed}>", "exec"), self.space)
        self.main: Callable[..., Any] = self.space[program.main.name.replace("@", "_")]
        self.names = [param.name for param in program.main.params]

    def run(self, values: dict[str, Any], noise: float = 0.0, seed: int = 0) -> Any:
        self.noise, self.trace, self.steps = noise, [], 0
        self.rng = random.Random(seed)
        arguments = [self._shaken(values[name]) if noise else cp(values[name]) for name in self.names]
        return self.main(*arguments)

    def _shaken(self, value: Any) -> Any:
        if isinstance(value, list):
            shaken = [self._shaken(item) for item in value]
            return record(value.tag, shaken) if isinstance(value, Rec) else shaken
        return self._step(value)

    # ---- what the text of a program calls

    def _step(self, value: Any) -> Any:
        self.steps += 1
        if self.steps > 30000:
            raise TooLong
        if self.noise and not isinstance(value, int):
            return value * (1 + self.noise * self.rng.uniform(-1, 1)) + self.noise * 0.1 * self.rng.uniform(-1, 1)
        return value

    def _decide(self, value: Any) -> bool:
        self.trace.append(bool(value))
        return self.trace[-1]

    def _tick(self) -> None:
        self.steps += 5
        if self.steps > 30000:
            raise TooLong

    def _each(self, operator: str, left: Any, right: Any) -> Any:
        if isinstance(left, list) or isinstance(right, list):
            size = len(left) if isinstance(left, list) else len(right)
            lefts = left if isinstance(left, list) else [left] * size
            rights = right if isinstance(right, list) else [right] * size
            return [self._each(operator, a, b) for a, b in zip(lefts, rights, strict=True)]
        if operator == "+":
            return self._step(left + right)
        return self._step(left - right if operator == "-" else left * right)

    def _lifted(self, function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def lifted(value: Any) -> Any:
            if isinstance(value, list):
                return [lifted(item) for item in value]
            return self._step(function(value))

        return lifted

    def _sum(self, values: list[Any]) -> Any:
        total = values[0]
        for value in values[1:]:
            total = self._step(total + value)
        return total

    def _dot(self, left: list[Any], right: list[Any]) -> Any:
        return self._sum(self._each("*", left, right))

    def _mul(self, left: Any, right: Any) -> Any:
        if not isinstance(left[0], list):
            return [self._dot(left, [row[at] for row in right]) for at in range(len(right[0]))]
        if not isinstance(right[0], list):
            return [self._dot(row, right) for row in left]
        return [self._mul(row, right) for row in left]

    def _less(self, left: Any, right: Any) -> Any:
        return left if self._decide(self._tie(left, right) or left < right) else right

    def _more(self, left: Any, right: Any) -> Any:
        return left if self._decide(self._tie(left, right) or left > right) else right

    def _tie(self, left: Any, right: Any) -> bool:
        """With noise, now and then true for two values that are equal: min and max have no derivative there. Of two that are
        equal but for the noise it notes what no run without noise does, so that the row is left out."""
        if not self.noise or left is right:
            return False
        one, two = float(detach(left)), float(detach(right))
        if one != two and abs(one - two) < 4 * self.noise * (1 + abs(one)):
            self.trace.append(None)
        return one == two and self.rng.random() < 0.5

    def _frac(self, value: Any) -> Any:
        whole = math.floor(float(detach(value)))
        self.trace.append(bool(whole % 2))
        return value - whole

    def _custom(self, value: Callable[[], Any], *pairs: tuple[Any, Callable[[], Any]]) -> Any:
        result = detach(value())
        for given, derivative in pairs:
            if isinstance(given, torch.Tensor):
                result = result + detach(derivative()) * (given - given.detach())
        return self._step(result)

    def _method(self, this: Rec, name: str) -> Callable[..., Any]:
        return self.space[f"{this.tag}__{name}"]

    def _cross(self, a: list[Any], b: list[Any]) -> list[Any]:
        def minus(i: int, j: int) -> Any:
            return self._step(a[i] * b[j] - a[j] * b[i])

        return [minus(1, 2), minus(2, 0), minus(0, 1)]

    def _space(self) -> dict[str, Any]:
        unary = {name: self._lifted(_either(name)) for name in ("sin", "cos", "tanh", "exp", "sqrt", "log", "atan")}
        root, step = unary["sqrt"], self._step
        space: dict[str, Any] = {"N": step, "D": self._decide, "each": self._each, "tick": self._tick, "cp": cp,
                                 "detach": detach, "swizzle": swizzle, "put": put, "make": make, "record": record,
                                 "custom": self._custom, "method": self._method}  # fmt: skip
        space |= unary | {f"{name}_": function for name, function in unary.items()}
        return space | {
            "abs_": self._lifted(lambda x: -x if self._decide(x < 0) else x),
            "frac_": self._lifted(self._frac),
            "saturate_": self._lifted(lambda x: self._less(self._more(x, 0.0), 1.0)),
            "rsqrt_": self._lifted(lambda x: 1 / root(x)),
            "pow_": lambda x, y: step(x**y),
            "min_": self._less,
            "max_": self._more,
            "dot_": self._dot,
            "length_": lambda x: root(self._dot(x, x)),
            "distance_": lambda x, y: root(self._dot(d := self._each("-", x, y), d)),
            "mul_": self._mul,
            "transpose_": lambda m: [list(row) for row in zip(*m, strict=True)],
            "cross_": self._cross,
            "lerp_": lambda a, b, t: self._each("+", a, self._each("*", self._each("-", b, a), t)),
        }


def _either(name: str) -> Callable[[Any], Any]:
    of_tensor, of_number = getattr(torch, name), getattr(math, name)

    def apply(value: Any) -> Any:
        return of_tensor(value) if isinstance(value, torch.Tensor) else of_number(value)

    return apply


def values_of(row: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a program from the arrays or tensors of one row."""

    def split(value: Any) -> Any:
        if getattr(value, "ndim", 0):
            return [split(item) for item in value.unbind()] if isinstance(value, torch.Tensor) else [split(item) for item in value]
        return value if isinstance(value, torch.Tensor) else value.item()

    made = {given.name: split(row[given.name]) for given in INPUTS}
    made["s"] = record("In", [made.pop("s.p"), made.pop("s.q")])
    made["n"] = int(made["n"])
    return made
