"""What the functions of odd/*.slang compute, for test_odd_sources.py: in Python's floats of 64 bits. `n` is not differentiated."""

from __future__ import annotations

from math import sin
from typing import Any

Vector = list[float]


# --- macros.slang
def keyword_in_a_loop(a: float, b: float, v: Vector, n: int) -> float:
    s = v[0]
    for i in range(n + 3):
        if i == 4:
            break
        s = s if i == 1 else s * a + b
    return s


def hidden_braces(a: float, b: float, v: Vector, n: int) -> float:
    s = a * b
    return s + (s * v[0]) ** 2


def hidden_loop(a: float, b: float, v: Vector, n: int) -> float:
    s = v[1]
    for i in range(n):
        for j in range(2):
            s = s * a + b * j + i
    return s


def joined_names(a: float, b: float, v: Vector, n: int) -> float:
    return (a * v[0] + 1.5 * b) * v[1]


def in_many_lines(a: float, b: float, v: Vector, n: int) -> float:
    x, y = a * v[0], b + v[1]
    return x * x * y - y


def argument_with_statements(a: float, b: float, v: Vector, n: int) -> float:
    s = a
    for _ in range(2):
        s = s * b + v[0]
    for _ in range(2):
        s += s * a
    return s


# --- texts.slang
def trips(a: float, b: float, v: Vector, n: int) -> float:
    s = a
    for _ in range(n):
        s = s * b + v[0]
    return s


def unicode_comments(a: float, b: float, v: Vector, n: int) -> float:
    s = (a * b) ** 2 + v[1]
    return s + sum(v) * a


def literals(a: float, b: float, v: Vector, n: int) -> float:
    s = a * 31 + b * 8 - 5 * v[0] + 0.1 * a * 16 + 0.5 * b * 2 + 15 * v[1]
    return s * 0.25 + 3 * a + 2 * b + 255 * v[2] * 0.01


def names_like_words(a: float, b: float, v: Vector, n: int) -> float:
    return v[0] * (a + b) * 2 + 3 * v[1] * a


def all_in_one_line(a: float, b: float, v: Vector, n: int) -> float:
    s = a
    for i in range(n):
        s = s if i == 1 else s * b + v[0]
    return s * s


# --- control.slang
def endless(a: float, b: float, v: Vector, n: int) -> float:
    s = v[0]
    for _ in range(n):
        s = s * a + b
    return s


def endless_while(a: float, b: float, v: Vector, n: int) -> float:
    s = v[0]
    for i in range(1, n + 2):
        s = s if i == 2 else s * a + b
    return s + n + 2


def do_down_with_continue(a: float, b: float, v: Vector, n: int) -> float:
    s = a
    for i in range(n - 1, -1, -1):
        s = s if i == 1 else s * b + v[0]
    return s


def counted_down(a: float, b: float, v: Vector, n: int) -> float:
    s = a
    for k in range(n - 1, -1, -1):
        s = s * b + v[0] * k
    return -s


def falls_through(a: float, b: float, v: Vector, n: int) -> float:
    s = 0 if n == 0 else a * b if n in (1, 2, 3) else v[1]
    return 1.0 if n == 8 else (s + v[0] * (n == 3)) * a


def switch_in_switch(a: float, b: float, v: Vector, n: int) -> float:
    if n == 9:
        return a
    return (b * a + v[2]) ** 2 if n == 3 else v[0]


def switch_in_loop(a: float, b: float, v: Vector, n: int) -> float:
    s = v[0]
    for i in range(n + 2):
        if i != 1:
            s = (s * a if i == 0 else (s + b * (i == 2)) * b) + v[1]
    return s


def labelled(a: float, b: float, v: Vector, n: int) -> float:
    s = v[0]
    for k in range(3 * n):
        if k == 5:
            break
        s = s * a + b * (k % 3)
    return s


def ternaries(a: float, b: float, v: Vector, n: int) -> float:
    s = (a * b if n > 2 else v[0]) if a > b else v[1] if b > v[0] else v[2] * a
    return a if n == 1 else b if n == 2 else abs(s) * (v[2] if s > 0 else 1)


def commas(a: float, b: float, v: Vector, n: int) -> float:
    s, t = a * b, b + a * b
    s *= v[0]
    for _ in range((n + 1) // 2):
        s, t = s * t, t + v[1]
    return s * t


def early_returns(a: float, b: float, v: Vector, n: int) -> float:
    s = v[0]
    for _ in range(n):
        s = s * a + v[1]
    return s * b


def unrolled(a: float, b: float, v: Vector, n: int) -> float:
    s = a
    for j in (0, 1, 2) * 3:
        s = s * b + v[j]
    return s


def loop_in_branch(a: float, b: float, v: Vector, n: int) -> float:
    s = a + sum(v) * b if n > 1 else a**3
    while n > 2 and s < 40:
        s = s * (1 + a) + b
    return s


def shadowed(a: float, b: float, v: Vector, n: int) -> float:
    s, a = a, b * v[0]
    for k in range(3):
        s = s * b * k + v[1]
    return (s + a * sum(range(n))) * a


def loops_side_by_side(a: float, b: float, v: Vector, n: int) -> float:
    s = trips(a, b, v, n)
    for _ in range(n):
        s = s * a + v[1]
    for k in range(n, 1, -1):
        s = s * b + v[2] * k
    return s


def deferred(a: float, b: float, v: Vector, n: int) -> float:
    return (a + v[0] + v[1]) ** 2 * b


def sums_of_sums(a: float, b: float, v: Vector, n: int) -> float:
    rows = [b + sum(v[i] * a * j for j in range(n) if j != 1) for i in range(3)]
    return sum(row * row for row in rows) * (a - sum(rows))


def endless_down(a: float, b: float, v: Vector, n: int) -> float:
    s = endless(a, b, v, n)
    for k in range(n - 1, -1, -1):
        s = s if k == 1 else s * b + v[1] * k
    return -2 * s


# --- declarations.slang
def nested_generics(a: float, b: float, v: Vector, n: int) -> float:
    product = a * (v[0] * v[2] + v[1] * v[0] + v[2] * v[1])
    return a * b * b + v[0] + product * (1 if a < b else 3)


def operators(a: float, b: float, v: Vector, n: int) -> float:
    x = complex(a, b)
    z = x * complex(v[0], v[1]) - complex(a, a * a)
    z = complex(z.real * b - z.imag, z.real + z.imag * b)
    return z.real**2 + z.imag**2 + (z.real * b - z.imag * a) * b


def generics(a: float, b: float, v: Vector, n: int) -> float:
    return (a * b) ** 3 + sum(v) * a + (v[0] + v[1]) * b


def fields_as_inout(a: float, b: float, v: Vector, n: int) -> float:
    scale = a * b
    return scale * (b + scale) + v[1] * a * (a + v[1] * a) + v[0]


def arrays_of_structs(a: float, b: float, v: Vector, n: int) -> float:
    w = [[a * x + i for x in v] for i in range(2)]
    w[1][0] *= b
    return sum(w[i][j] * v[j] * b for i in range(2) for j in range(3))


def inferred(a: float, b: float, v: Vector, n: int) -> float:
    x = a * b
    z = v[0] * x
    y = (z * z, v[1] * x)
    return (y[0] * y[1]) ** 2 + x * z


def swizzles(a: float, b: float, v: Vector, n: int) -> float:
    q = [b, v[1], a, v[2]]
    q[1] *= b
    q[2] *= b
    q[1] += q[3]
    return 2 * (q[0] * q[3] + q[1] * q[2]) + b * a + v[0]


def static_values(a: float, b: float, v: Vector, n: int) -> float:
    return 2.5 * v[0] * b + 0.5 * v[1] * a + 1.5 * v[2] * b


# --- newer.slang
def arrows(a: float, b: float, v: Vector, n: int) -> float:
    s = a * b
    return v[0] * s + v[1] * s * s


FORMULAS: dict[str, dict[str, Any]] = {
    "macros": {
        "keyword_in_a_loop": keyword_in_a_loop,
        "hidden_return": lambda a, b, v, n: ((a * v[1]) ** 2 + b) * v[2],
        "hidden_braces": hidden_braces,
        "hidden_assignments": lambda a, b, v, n: ((b + a * v[0]) * a + sum(v) * b) ** 2,
        "hidden_loop": hidden_loop,
        "hidden_head": lambda a, b, v, n: (a * b * v[0]) ** 2 * v[2],
        "joined_names": joined_names,
        "whole_functions": lambda a, b, v, n: sin(a) * a * sin(b * v[0]) * b * v[0] + sin(v[1]) * v[1],
        "in_many_lines": in_many_lines,
        "with_a_comment": lambda a, b, v, n: a * 2 + b * 2 * v[0],
        "macros_of_macros": lambda a, b, v, n: (a * b) ** 4 + (v[0] + v[1] ** 4) ** 2,
        "defined_again": lambda a, b, v, n: 9 * a * b * v[0] * 3,
        "argument_with_statements": argument_with_statements,
    },
    "texts": {
        "half_of_a_head": trips,
        "commented": lambda a, b, v, n: (a * b + v[0] * v[1]) * a,
        "unicode_comments": unicode_comments,
        "literals": literals,
        "names_like_words": names_like_words,
        "empty_statements": lambda a, b, v, n: a * b * v[0] + a,
        "continued_lines": lambda a, b, v, n: (a * b * v[0] + v[1]) ** 2,
        "branches_inside": lambda a, b, v, n: (a * b + v[0]) * v[1],
        "all_in_one_line": all_in_one_line,
        "one_word_a_line": lambda a, b, v, n: a * b * v[0],
        "tabs_and_feeds": lambda a, b, v, n: (a * b - b + a + v[0]) ** 2,
        "deep_brackets": lambda a, b, v, n: (a * b + v[0] * v[2]) * a,
        "calls_kept_branch": lambda a, b, v, n: (a * b) ** 2 + v[2] ** 2,
    },
    "control": {
        "endless": endless,
        "endless_while": endless_while,
        "once": lambda a, b, v, n: (a * b + v[0]) ** 2,
        "do_up": lambda a, b, v, n: trips(a, b, v, n) * n,
        "do_down_with_continue": do_down_with_continue,
        "counted_down": counted_down,
        "falls_through": falls_through,
        "switch_in_switch": switch_in_switch,
        "switch_in_loop": switch_in_loop,
        "of_an_enum": lambda a, b, v, n: a * b * 6 if n > 2 else a,
        "labelled": labelled,
        "ternaries": ternaries,
        "commas": commas,
        "early_returns": early_returns,
        "unrolled": unrolled,
        "loop_in_branch": loop_in_branch,
        "shadowed": shadowed,
        "loops_side_by_side": loops_side_by_side,
        "deferred": deferred,
        "sums_of_sums": sums_of_sums,
        "endless_down": endless_down,
    },
    "declarations": {
        "nested_generics": nested_generics,
        "names_of_spaces": lambda a, b, v, n: a * a / 2 + b * b / 2 * (v[0] ** 2 + v[0]) / 2,
        "operators": operators,
        "properties": lambda a, b, v, n: 2 * a * v[0] * b,
        "associated": lambda a, b, v, n: 3 * (a * b) ** 2 + 3 * (a * v[0]) ** 2,
        "generics": generics,
        "fields_as_inout": fields_as_inout,
        "arrays_of_structs": arrays_of_structs,
        "default_arguments": lambda a, b, v, n: a * 6 + b * v[0] * 3 + a * b,
        "inferred": inferred,
        "detached": lambda a, b, v, n: a * b + a**3 * v[0] + v[1] * b,
        "swizzles": swizzles,
        "extended_floats": lambda a, b, v, n: a * b * b + v[0] * v[1] ** 2,
        "static_values": static_values,
    },
    "newer": {
        "if_let": lambda a, b, v, n: ((a * b * n if n > 2 else v[0]) + v[1]) ** 2,
        "lambdas": lambda a, b, v, n: a * 2 * n + b * b * max(n, 7) * v[0],
        "tuples": lambda a, b, v, n: a * b * v[0] + b * n,
        "arrows": arrows,
        "sizes": lambda a, b, v, n: (a + b + a * b + v[0]) * 3 * n,
    },
}
"""By file, and by function; all take `a, b, v, n`."""
