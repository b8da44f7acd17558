"""Random differentiable functions made of loops, in Slang and, for what is right, in Python with float64 dual numbers."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field
from typing import Any

KINDS = ("for", "bounded", "while", "flag", "do")


class Dual:
    """A number with its derivatives by x and y."""

    def __init__(self, value: float, *by: float) -> None:
        self.value, self.by = value, by or (0.0, 0.0)

    def __add__(self, other: Any) -> Dual:
        other = lift(other)
        return Dual(self.value + other.value, *(a + b for a, b in zip(self.by, other.by, strict=True)))

    def __mul__(self, other: Any) -> Dual:
        other = lift(other)
        by = (a * other.value + b * self.value for a, b in zip(self.by, other.by, strict=True))
        return Dual(self.value * other.value, *by)

    __radd__, __rmul__ = __add__, __mul__


def lift(value: Any) -> Dual:
    return value if isinstance(value, Dual) else Dual(float(value))


def sin(a: Any) -> Dual:
    a = lift(a)
    return Dual(math.sin(a.value), *(d * math.cos(a.value) for d in a.by))


@dataclass
class Program:
    """`float NAME(int zero, float x, float y)`, which is called with zero = 0."""

    name: str
    slang: str
    python: str

    def expected(self, x: float, y: float) -> tuple[Dual, float]:
        """What it gives, and how near the closest comparison of reals was to going the other way."""
        margins = [math.inf]

        def below(a: Any, limit: float) -> bool:
            margins.append(abs(lift(a).value - limit))
            return lift(a).value < limit

        scope: dict[str, Any] = {"sin": sin, "below": below}
        exec(self.python, scope)
        return lift(scope[self.name](0, Dual(x, 1.0, 0.0), Dual(y, 0.0, 1.0))), min(margins)


@dataclass
class Writer:
    """Writes the same function in both languages, line by line."""

    random: random.Random
    kinds: tuple[str, ...]
    depth: int
    leaves: bool
    """Whether loops have break, continue and return."""
    slang: list[str] = field(default_factory=list)
    python: list[str] = field(default_factory=list)
    reals: list[str] = field(default_factory=lambda: ["x", "y"])
    counters: list[str] = field(default_factory=list)
    made: int = 0
    indent: int = 1

    def line(self, slang: str, python: str | None = None) -> None:
        self.slang.append("    " * self.indent + slang)
        if python != "":
            self.python.append("    " * self.indent + (slang.rstrip(";") if python is None else python))

    def new(self, letter: str) -> str:
        self.made += 1
        return f"{letter}{self.made}"

    def expression(self, depth: int = 2) -> str:
        pick = self.random.random()
        if depth == 0 or pick < 0.25:
            return self.random.choice(self.reals) if pick < 0.18 else f"({self.random.uniform(-1, 1):.2f})"
        if pick < 0.5:
            return f"({self.expression(depth - 1)} + {self.expression(depth - 1)})"
        if pick < 0.8:
            return f"({self.expression(depth - 1)} * {self.expression(depth - 1)})"
        if pick < 0.9 and self.counters:
            return f"({self.expression(depth - 1)} * ({self.random.choice(self.counters)} * 0.1))"
        return f"sin({self.expression(depth - 1)})"

    def condition(self) -> tuple[str, str]:
        if self.counters and self.random.random() < 0.6:
            text = f"{self.random.choice(self.counters)} {self.random.choice(('<', '>', '=='))} {self.random.randint(0, 4)}"
            return text, text
        name, limit = self.random.choice(self.reals), round(self.random.uniform(-0.8, 0.8), 2)
        return f"{name} < {limit:.2f}", f"below({name}, {limit})"

    def block(self, depth: int, in_loop: bool) -> None:
        before = len(self.reals)
        self.indent += 1
        for _ in range(self.random.randint(1, 3)):
            self.statement(depth, in_loop)
        self.indent -= 1
        del self.reals[before:]

    def statement(self, depth: int, in_loop: bool) -> None:
        pick = self.random.random()
        if depth > 0 and pick < 0.35:
            self.loop(depth)
        elif depth > 0 and pick < 0.5:
            self.branch(depth, in_loop)
        elif in_loop and self.leaves and pick < 0.7:
            slang, python = self.condition()
            word = "break" if pick < 0.6 else "continue" if pick < 0.67 else f"return {self.expression()}"
            self.line(f"if ({slang}) {word};", f"if {python}: {word}")
        elif pick < 0.78:
            self.declare(self.expression())
        else:
            self.assign()

    def declare(self, value: str) -> None:
        name = self.new("s")
        self.line(f"float {name} = {value};", f"{name} = {value}")
        self.reals.append(name)

    def assign(self) -> None:
        names = [name for name in self.reals if name[0] == "s"]
        if not names:
            return self.declare(self.expression())
        name, value, pick = self.random.choice(names), self.expression(), self.random.random()
        if pick < 0.4:
            self.line(f"{name} = {name} + 0.3 * sin({value});")
        elif pick < 0.7:
            self.line(f"{name} = {name} * (0.9 + 0.2 * sin({value}));")
        else:
            self.line(f"{name} = sin({value} + {name});")

    def branch(self, depth: int, in_loop: bool) -> None:
        slang, python = self.condition()
        self.line(f"if ({slang}) {{", f"if {python}:")
        self.block(depth - 1, in_loop)
        if self.random.random() < 0.4:
            self.line("} else {", "else:")
            self.block(depth - 1, in_loop)
        self.line("}", "")

    def loop(self, depth: int) -> None:
        kind, i = self.random.choice(self.kinds), self.new("i")
        n = self.random.choice((1, 2, 3, 5, 7))
        most, flag = n + self.random.randint(0, 3), self.new("go")
        if kind == "for":
            self.line(f"for (int {i} = 0; {i} < {n}; {i}++) {{", f"for {i} in range({n}):")
        elif kind == "bounded":
            self.line(f"[MaxIters({most})] for (int {i} = 0; {i} < zero + {n}; {i}++) {{", f"for {i} in range({n}):")
        else:
            self.line(f"int {i} = 0;", f"{i} = 0")
            self.line(f"bool {flag} = true;", f"{flag} = True")
            extra = self.condition() if kind == "while" and self.random.random() < 0.4 else ("true", "True")
            slang, python = (flag, flag) if kind == "flag" else extra
            if kind == "do":
                self.line(f"[MaxIters({most})] do {{", f"while {flag} or {i} < {n}:")
            else:
                self.line(f"[MaxIters({most})] while ({i} < {n} && {slang}) {{", f"while {i} < {n} and {python}:")
        self.counters.append(i)
        self.indent += 1
        if kind not in ("for", "bounded"):
            self.line(f"{i}++;", f"{i} += 1")
        if kind == "do":
            self.line(f"{flag} = false;", f"{flag} = False")
        if kind == "flag":
            slang, python = self.condition()
            self.line(f"if ({slang}) {flag} = false;", f"if {python}: {flag} = False")
        self.indent -= 1
        self.block(depth - 1, True)
        self.counters.remove(i)
        self.line(f"}} while ({i} < {n});" if kind == "do" else "}", "")


def write(name: str, seed: int, kinds: tuple[str, ...], depth: int, leaves: bool) -> Program:
    w = Writer(random.Random(seed), kinds, depth, leaves)
    for _ in range(w.random.randint(1, 3)):
        w.declare(w.expression(1))
    states = list(w.reals)
    w.loop(depth)
    if w.random.random() < 0.5:
        w.statement(depth - 1, False)
    total = " + ".join(f"{w.random.uniform(0.5, 1.5):.2f} * {state}" for state in states)
    w.line(f"return {total};")
    head = f"float {name}(int zero, float x, float y)"
    text = f"[Differentiable] {head}\n{{\n" + "\n".join(w.slang) + "\n}\n"
    return Program(name, text, f"def {name}(zero, x, y):\n" + "\n".join(w.python) + "\n")


def usable(program: Program, x: float, y: float) -> bool:
    """Whether float32 takes the same branches, and nothing grows out of hand."""
    try:
        result, margin = program.expected(x, y)
    except OverflowError:
        return False
    return margin > 1e-3 and abs(result.value) < 50 and max(map(abs, result.by)) < 1e3


def programs(
    seed: int, count: int, x: float, y: float, kinds: tuple[str, ...] = KINDS, depth: int = 3, leaves: bool = True
) -> list[Program]:
    found: list[Program] = []
    while len(found) < count:
        program = write(f"f{len(found)}", seed, kinds, depth, leaves)
        seed += 1_000_003
        if usable(program, x, y):
            found.append(program)
    return found


def module_text(found: list[Program]) -> str:
    """A module with `float[n] all(int zero, float x, float y)`, the results of all of them."""
    calls = "".join(f"    r[{i}] = {program.name}(zero, x, y);\n" for i, program in enumerate(found))
    n = len(found)
    return (
        "import slangpy;\n"
        + "\n".join(program.slang for program in found)
        + f"[Differentiable] float[{n}] all(int zero, float x, float y)\n{{\n    float r[{n}];\n{calls}    return r;\n}}\n"
    )
