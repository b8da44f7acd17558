"""What lanes make of branches: statements that give the same values, with bools as expressions and fewer branches."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from slangpy.compiler.text.lanes.branches import with_fewer_branches
from slangpy.compiler.text.lanes.conditions import with_conditions
from slangpy.compiler.text.lanes.counters import UP, turns_left, with_counters
from slangpy.compiler.text.lanes.flags import with_flags
from slangpy.compiler.text.lanes.lifetimes import ends_in_another, rows_in_order
from slangpy.compiler.text.lanes.parser import Parser
from slangpy.compiler.text.lanes.tokens import tokens_of
from slangpy.compiler.text.lanes.tree import Expr, Stmt, lines_of, text_of

pytestmark = pytest.mark.null

Body = tuple[Stmt, ...]
PASSES = {
    "conditions": with_conditions,
    "branches": with_fewer_branches,
    "all": lambda body: with_counters(with_fewer_branches(with_conditions(with_flags(body)))),
}


def parsed(text: str) -> Body:
    tokens = tokens_of(text)
    return Parser(tokens, frozenset({"State"}), 0, len(tokens)).block()


def simple(text: str) -> list[str]:
    return lines_of(with_fewer_branches(with_conditions(parsed(text))))


# --- an interpreter, in which a variable without a value must not be looked at


class _Leave(Exception):
    pass


def value_of(e: Expr, values: dict[str, int | bool]) -> int | bool:
    if e.kind == "literal":
        return {"true": True, "false": False}.get(e.text) if e.text in ("true", "false") else int(e.text)  # type: ignore[return-value]
    if e.kind == "name":
        return values[e.text]
    if e.kind == "unary":
        return not value_of(e.kids[0], values)
    if e.kind == "choice":
        return value_of(e.kids[1 if value_of(e.kids[0], values) else 2], values)
    if e.kind == "call":
        return int(value_of(e.kids[0], values))
    a = value_of(e.kids[0], values)
    if e.text in ("&&", "||"):
        return a if bool(a) != (e.text == "&&") else value_of(e.kids[1], values)
    b = value_of(e.kids[1], values)
    found: dict[str, Callable[[], int | bool]] = {
        "<": lambda: a < b, ">": lambda: a > b, ">=": lambda: a >= b, "==": lambda: a == b, "!=": lambda: a != b,
        "+": lambda: a + b, "-": lambda: a - b,
    }  # fmt: skip
    return found[e.text]()


def run(body: Body, values: dict[str, int | bool], left: list[int]) -> None:
    """left: how many statements may run."""
    for s in body:
        left[0] -= 1
        if left[0] < 0:
            raise TimeoutError
        if s.kind == "declare":
            values.pop(s.name, None)
            if s.value is not None:
                values[s.name] = value_of(s.value, values)
        elif s.kind == "assign":
            assert s.place is not None and s.value is not None
            values[s.place.text] = value_of(s.value, values)
        elif s.kind == "if":
            assert s.value is not None
            run(s.body if value_of(s.value, values) else s.other, values, left)
        elif s.kind == "loop":
            try:
                while True:
                    try:
                        if s.type == UP:
                            values[s.body[0].name] = values[s.name]
                        run(s.body, values, left)
                    except _Leave as leave:
                        if leave.args[0] == "break":
                            raise
            except _Leave:
                pass
        else:
            raise _Leave(s.kind)


class Drawn:
    """A random program over bools and numbers, all of which have a value where it looks at them."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.count, self.lines = rng, 0, list[str]()

    def condition(self, bools: list[str], numbers: list[str]) -> str:
        kind = self.rng.randrange(6)
        if kind < 3 and bools:
            return "!" * self.rng.randrange(2) + self.rng.choice(bools)
        if kind == 3 and len(bools) > 1:
            return f"{self.rng.choice(bools)} {self.rng.choice(['&&', '||'])} !{self.rng.choice(bools)}"
        return f"{self.rng.choice(numbers)} {self.rng.choice(['<', '>'])} {self.rng.randrange(-2, 6)}"

    def block(self, bools: list[str], numbers: list[str], depth: int, in_loop: bool) -> None:
        bools, numbers = list(bools), list(numbers)
        for _ in range(self.rng.randrange(1, 6)):
            kind = self.rng.randrange(12)
            if kind < 3:
                target = self.rng.choice(bools)
                self.lines.append(f"{target} = {self.rng.choice(['true', 'false', self.condition(bools, numbers)])};")
            elif kind < 5:
                self.lines.append(f"{self.rng.choice(numbers)} = {self.rng.choice(numbers)} + {self.rng.randrange(-1, 3)};")
            elif kind < 6:
                self.count += 1
                self.lines.append(f"bool b{self.count} = {self.condition(bools, numbers)};")
                bools.append(f"b{self.count}")
            elif kind < 9 and depth:
                self.branch(bools, numbers, depth, in_loop)
            elif kind < 10 and depth:
                self.count += 1
                name = f"i{self.count}"
                self.lines.append(f"int i{self.count} = 0; for(;;) {{ if({name} < {self.rng.randrange(1, 4)}) {{ }} else {{ break; }}")
                self.block(bools, [*numbers, name], depth - 1, True)
                self.lines.append(f"{name} = {name} + 1; }}")
            elif kind == 10 and in_loop:
                self.lines.append(f"if({self.condition(bools, numbers)}) {{ break; }} else {{ }}")

    def branch(self, bools: list[str], numbers: list[str], depth: int, in_loop: bool) -> None:
        """Also of a variable that both sides give a value first."""
        is_bool, self.count = self.rng.randrange(2) == 0, self.count + 1
        name = f"{'b' if is_bool else 'n'}{self.count}"
        self.lines.append(f"{'bool' if is_bool else 'int'} {name}; if({self.condition(bools, numbers)}) {{")
        for other in ("} else {", "}"):
            self.block(bools, numbers, depth - 1, in_loop)
            first = self.condition(bools, numbers) if is_bool else self.rng.choice(numbers)
            self.lines.append(f"{name} = {self.rng.choice(['true', 'false', first]) if is_bool else first};")
            self.block([*bools, name] if is_bool else bools, numbers if is_bool else [*numbers, name], 0, False)
            self.lines.append(other)
        (bools if is_bool else numbers).append(name)


@pytest.mark.parametrize("name", PASSES)
def test_same_values(name: str) -> None:
    changed = 0
    for seed in range(400):
        rng = random.Random(seed)
        drawn = Drawn(rng)
        drawn.block(["p", "q", "r"], ["a", "b", "c"], 3, False)
        text = "bool p = p0; bool q = q0; bool r = r0; int a = a0; int b = 1; int c = 2;" + " ".join(drawn.lines)
        text += "z0 = p; z1 = q; z2 = r;"
        body = parsed(text)
        made = PASSES[name](body)
        changed += lines_of(made) != lines_of(body)
        for k in range(8):
            given: dict[str, int | bool] = {"p0": bool(k & 1), "q0": bool(k & 2), "r0": bool(k & 4), "a0": rng.randrange(-3, 5)}
            results = []
            for part in (body, made):
                values = dict(given)
                try:
                    run(part, values, [4000])
                except TimeoutError:
                    values = {}
                results.append({n: values.get(n) for n in ("z0", "z1", "z2", *"abc")})
            assert results[0] == results[1], text
    assert changed > 200


# --- what they look like


def test_a_flag_of_two_branches() -> None:
    text = """bool go = true; for(;;) { if(go) { } else { break; } bool inside = i < n; int why;
        if(inside) { bool far = y > 4; bool stay; if(far) { stay = false; } else { stay = inside; }
            if(stay) { why = 1; } else { why = 0; } } else { why = 0; }
        if(why != 1) { go = false; } if(go) { i = i + 1; } }"""
    lines = lines_of(with_fewer_branches(with_conditions(with_flags(parsed(text)))))
    assert "why = (inside && (!far));" in lines
    assert "go = why;" in lines
    assert not [line for line in lines if "stay" in line]


def test_a_variable_of_one_side_stays_there() -> None:
    lines = simple("int t; if(p) { t = a; } else { t = b; } int u; if(p) { u = t; } else { u = t + 1; } x = u;")
    assert sum(line.startswith("if (") for line in lines) == 1
    assert lines.index("int32_t t;") > lines.index("if (p)")


def test_what_stays() -> None:
    """A condition that the first branch changes, and a bool that is computed in a branch."""
    lines = simple("bool p = c; if(p) { p = q && z; x = 1; } else { x = 2; } if(p) { x = 3; } else { y = 4; }")
    assert sum(line.startswith("if (") for line in lines) == 2
    assert "b = (y > 4);" in simple("bool b = c; if(q0) { b = y > 4; } else { b = false; } x = b;")


def test_bounds_of_loops() -> None:
    body = parsed("int i = 0; for(;;) { bool more = i < n; bool far = y > n; if(more) { y = y * 2; } else { } n2 = n2 + 2; i = i + 1; }")
    assert {text_of(e) for e in turns_left(body)} == {"(i < n)", "more"}


ROWS = """FixedArray<float, 4> zeros = { 0.0f, 0.0f, 0.0f, 0.0f }; State s; (&s)->rows = zeros; int pc = 0;
    for(;;) { FIRST if(go) { } else { break; } REST pc = pc + 1; }"""


@pytest.mark.parametrize(
    ("first", "rest", "is_found"),
    [("(&s)->rows[pc] = y;", "", True), ("(&s)->rows[pc] = y; (&s)->count = pc;", "y = (&s)->rows[pc];", True),
     ("(&s)->rows[pc] = (&s)->rows[pc] + y;", "", False), ("", "(&s)->rows[pc] = y;", False),
     ("(&s)->rows[pc] = y;", "y = (&s)->rows[pc + 1];", False), ("(&s)->rows[pc] = y;", "f(&s);", False)],
)  # fmt: skip
def test_rows_in_order(first: str, rest: str, is_found: bool) -> None:
    body = with_counters(parsed(ROWS.replace("FIRST", first).replace("REST", rest)))
    assert [text_of(rows.array) for rows in rows_in_order(body)] == ["s.rows"] * is_found
    other = with_counters(parsed(ROWS.replace("0.0f }", "1.0f }").replace("FIRST", first).replace("REST", rest)))
    assert not rows_in_order(other), "elements that differ"


@pytest.mark.parametrize(
    ("text", "is_found"),
    [("State a = f(x); State b; (&b)->head = y; (&b)->tail = a.part; g(&b);", True),
     ("State b; (&b)->head = y; State a = f(x); (&b)->tail = a.part; g(&b);", False),
     ("State a = f(x); State b; (&b)->head = y; (&b)->tail = a.part; z = a.other;", False),
     ("State a = f(x); State b; (&b)->head = a.part; (&b)->tail = a.part;", False),
     ("State a = f(x); State b; g(&b); (&b)->tail = a.part;", False)],
)  # fmt: skip
def test_ends_in_another(text: str, is_found: bool) -> None:
    body = parsed(text)
    assert list(ends_in_another(body, lambda name: True, {})) == ["a"] * is_found
    assert not ends_in_another(body, lambda name: name != "b", {})
    if is_found:  # what stands in the other one from before the variable has its value
        early = parsed("State c; c.x = y;" + text)
        assert not ends_in_another(early, lambda name: True, {"c": ("b", Expr("member", "head", (Expr("name", "b"),), "."))})
