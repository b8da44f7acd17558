"""Random programs that only copy, add and subtract, so that their gradients are whole numbers, known exactly.

Arithmetic with a function between (sin, a product) hides the faults of compilers in how gradients of plain copies and sums
are collected. A program is drawn as Slang text beside Python code on rows of integer coefficients: a variable holds the
coefficients of the inputs a, b and c."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

Row = np.ndarray
State = dict[str, Row]
Run = Callable[[State], None]
SCALARS = ("a", "b", "c", "x", "y", "v.x", "v.y", "w[1]", "h[0]", "h[1]", "s.p", "s.q.x", "s.q[1]", "t.p")
SLOTS = {"w[1]": "w.y", "s.q[1]": "s.q.y"}
PAIRS = {"v": ("v.x", "v.y"), "w": ("w.x", "w.y"), "s.q": ("s.q.x", "s.q.y"), "t.q": ("t.q.x", "t.q.y")}
WHOLE = {"s": ("s.p", "s.q.x", "s.q.y"), "t": ("t.p", "t.q.x", "t.q.y")}
LIMIT = 1 << 20

HEAD = """
struct S : IDifferentiable
{
    float p; float2 q;
    [Differentiable] [mutating] void inc(float z) { p += z; q.x -= p; }
    [Differentiable] float sum(float z) { return p + q.y - z; }
}
[Differentiable] void swap(inout float i, inout float j) { float k = i; i = j; j = k; }
[Differentiable] void give(float i, out float j) { j = i; }
[Differentiable] void add_to(float i, inout float j) { j += i; }
[Differentiable] float kept(float i, inout float j) { return i; }
[Differentiable] float less(float i, float j) { return i - j; }
[Differentiable] void turn(inout float2 i) { i = float2(i.y, i.x); }
[Differentiable] void shift(float i, inout S j) { j.q.y += j.p - i; }
"""
START = """float x = a - b; float y = c; float2 v = float2(a, c); float2 w = float2(b, a + c);
    float h[2] = { b, c - a }; S s; s.p = c; s.q = float2(b, a); S t; t.p = a - c; t.q = v;"""


class Break(Exception):
    """Leaves a loop of the Python side."""


class Continue(Exception):
    """Ends an iteration of the Python side."""


class TooLarge(Exception):
    """Coefficients that float32 may round."""


def slot(name: str) -> str:
    return SLOTS.get(name, name)


@dataclass
class Writer:
    draw: random.Random
    copies_of_structs: bool = True
    lines: list[str] = field(default_factory=list)
    counters: int = 0

    def scalar(self, *others: str) -> str:
        return self.draw.choice([name for name in SCALARS if slot(name) not in map(slot, others)])

    def statement(self, indent: str, depth: int, loop: str) -> Run:
        kinds = [self.assign, self.assign, self.update, self.update, self.call, self.call, self.pair, self.method]
        if self.copies_of_structs:
            kinds.append(self.whole)
        if depth < 3 and self.draw.random() < 0.35:
            return self.draw.choice([self.repeat, self.repeat, self.branch])(indent, depth, loop)
        if loop and self.draw.random() < 0.08:
            return self.leave(indent, loop)
        text, run = self.draw.choice(kinds)()
        self.lines.append(indent + text)
        return run

    def block(self, indent: str, depth: int, loop: str, count: int) -> Run:
        parts = [self.statement(indent, depth, loop) for _ in range(count)]

        def run(state: State) -> None:
            for part in parts:
                part(state)

        return run

    def assign(self) -> tuple[str, Run]:
        to, i, j = self.scalar(), self.scalar(), self.scalar()
        kind = self.draw.randrange(4)
        text = (f"{i}", f"{i} + {j}", f"{i} - {j}", f"less({i}, {j})")[kind]
        factor = (0, 1, -1, -1)[kind]

        def run(state: State) -> None:
            state[slot(to)] = state[slot(i)] + factor * state[slot(j)]

        return f"{to} = {text};", run

    def update(self) -> tuple[str, Run]:
        to, i, sign = self.scalar(), self.scalar(), self.draw.choice((1, -1))

        def run(state: State) -> None:
            state[slot(to)] = state[slot(to)] + sign * state[slot(i)]

        return f"{to} {'+' if sign > 0 else '-'}= {i};", run

    def call(self) -> tuple[str, Run]:
        i = self.scalar()
        j = self.scalar(i)
        a, b = slot(i), slot(j)
        kind = self.draw.choice(("swap", "give", "add_to", "kept"))

        def run(state: State) -> None:
            if kind == "swap":
                state[a], state[b] = state[b], state[a]
            elif kind == "kept":
                state["x"] = state[a]
            else:
                state[b] = state[a] + (state[b] if kind == "add_to" else 0)

        if kind == "kept" and b == "x":
            return self.call()
        return f"{'x = ' if kind == 'kept' else ''}{kind}({i}, {j});", run

    def pair(self) -> tuple[str, Run]:
        to, i = self.draw.choice(list(PAIRS)), self.draw.choice(list(PAIRS))
        kind = self.draw.randrange(3)
        first, second = self.scalar(), self.scalar()

        def run(state: State) -> None:
            if kind == 0:
                values = [state[name] for name in PAIRS[i]]
            elif kind == 1:
                values = [state[own] + state[name] for own, name in zip(PAIRS[to], PAIRS[i], strict=True)]
            else:
                values = [state[slot(first)], state[slot(second)]]
            state.update(zip(PAIRS[to], values, strict=True))

        return (f"{to} = {i};", f"{to} += {i};", f"{to} = float2({first}, {second});")[kind], run

    def method(self) -> tuple[str, Run]:
        i, kind = self.scalar(), self.draw.randrange(4)
        one, pair = self.draw.choice("st"), self.draw.choice(list(PAIRS))

        def run(state: State) -> None:
            p, x, y = (state[name] for name in WHOLE[one])
            if kind == 0:
                state[f"{one}.p"] = p + state[slot(i)]
                state[f"{one}.q.x"] = x - state[f"{one}.p"]
            elif kind == 1:
                state[slot(i)] = p + y - state["b"]
            elif kind == 2:
                state[f"{one}.q.y"] = y + p - state[slot(i)]
            else:
                first, second = PAIRS[pair]
                state[first], state[second] = state[second], state[first]

        if i.startswith(one) and kind != 1:
            return self.method()
        return (f"{one}.inc({i});", f"{i} = {one}.sum(b);", f"shift({i}, {one});", f"turn({pair});")[kind], run

    def whole(self) -> tuple[str, Run]:
        to, i = self.draw.sample("st", 2)

        def run(state: State) -> None:
            state.update({name: state[other] for name, other in zip(WHOLE[to], WHOLE[i], strict=True)})

        return f"{to} = {i};", run

    def condition(self, counter: str) -> tuple[str, Callable[[State], bool]]:
        name, limit = self.draw.choice([counter, "n"] if counter else ["n"]), self.draw.randrange(3)
        return f"{name} > {limit}", lambda state: int(state[name]) > limit

    def branch(self, indent: str, depth: int, loop: str) -> Run:
        text, test = self.condition(loop)
        self.lines.append(f"{indent}if ({text}) {{")
        then = self.block(indent + "    ", depth + 1, loop, self.draw.randint(1, 3))
        other = self.block("", 0, "", 0)
        if self.draw.random() < 0.5:
            self.lines.append(f"{indent}}} else {{")
            other = self.block(indent + "    ", depth + 1, loop, self.draw.randint(1, 2))
        self.lines.append(indent + "}")
        return lambda state: then(state) if test(state) else other(state)

    def leave(self, indent: str, loop: str) -> Run:
        text, test = self.condition(loop)
        kind = self.draw.choice((Break, Continue))
        self.lines.append(f"{indent}if ({text}) {kind.__name__.lower()};")

        def run(state: State) -> None:
            if test(state):
                raise kind

        return run

    def repeat(self, indent: str, depth: int, loop: str) -> Run:
        name, count = f"i{self.counters}", self.draw.randint(1, 4)
        self.counters += 1
        self.lines.append(f"{indent}[MaxIters({count})] for (int {name} = 0; {name} < {count}; {name}++) {{")
        body = self.block(indent + "    ", depth + 1, name, self.draw.randint(1, 4))
        self.lines.append(indent + "}")

        def run(state: State) -> None:
            for i in range(count):
                state[name] = np.int64(i)
                try:
                    body(state)
                except Continue:
                    continue
                except Break:
                    break
                if max(int(np.abs(row).max()) for row in state.values()) > LIMIT:
                    raise TooLarge

        return run


def start(n: int) -> State:
    a, b, c = np.eye(3, dtype=np.int64)
    state = {"a": a, "b": b, "c": c, "x": a - b, "y": c, "v.x": a, "v.y": c, "w.x": b, "w.y": a + c}
    state |= {"h[0]": b, "h[1]": c - a, "s.p": c, "s.q.x": b, "s.q.y": a, "t.p": a - c, "t.q.x": a, "t.q.y": c}
    return state | {"n": np.int64(n)}


def program(seed: int, name: str, copies_of_structs: bool = True) -> tuple[str, Row]:
    """Slang text of `float name(float a, float b, float c, int n)`, and d(result)/d(a, b, c) for n = 0, 1, 2, 3."""
    for attempt in range(100):
        writer = Writer(random.Random(f"{seed}:{attempt}"), copies_of_structs)
        run = writer.block("    ", 0, "", writer.draw.randint(3, 9))
        parts = writer.draw.sample([*SCALARS, "t.q.x"], 4)
        rows = []
        try:
            for n in range(4):
                state = start(n)
                run(state)
                rows.append(
                    state[slot(parts[0])] + state[slot(parts[1])] - state[slot(parts[2])] + state[slot(parts[3])]
                )
        except TooLarge:
            continue
        if max(np.abs(rows).max() for rows in rows) < LIMIT:
            body = "\n".join(writer.lines)
            result = f"return {parts[0]} + {parts[1]} - {parts[2]} + {parts[3]};"
            head = f"[Differentiable] float {name}(float a, float b, float c, int n)"
            return f"{head}\n{{\n    {START}\n{body}\n    {result}\n}}\n", np.array(rows)
    raise AssertionError(f"seed {seed}: no program with small coefficients in 100")
