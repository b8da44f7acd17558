"""Expressions of two integers a and b of a type T, in Slang and as NumPy makes them of the same width. In both, x is a float."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

TYPES: dict[str, Any] = {"int8_t": np.int8, "int16_t": np.int16, "int": np.int32, "int64_t": np.int64}
TYPES |= {"uint8_t": np.uint8, "uint16_t": np.uint16, "uint": np.uint32, "uint64_t": np.uint64}

Array = np.ndarray[Any, Any]
Form = Callable[[Array, Array, Any], Any]

FORMS: dict[str, Form] = {
    # what is stored, or goes on as it is
    "a + b": lambda a, b, t: a + b,
    "a - b": lambda a, b, t: a - b,
    "a * b": lambda a, b, t: a * b,
    "a * b + a - b * T(3)": lambda a, b, t: a * b + a - b * t(3),
    "-a": lambda a, b, t: -a,
    "~a": lambda a, b, t: ~a,
    "a << T(1)": lambda a, b, t: a << t(1),
    "a & b | a ^ T(5)": lambda a, b, t: a & b | a ^ t(5),
    # compared
    "a + T(1) > a": lambda a, b, t: a + t(1) > a,
    "a + b > a": lambda a, b, t: a + b > a,
    "a - b < a": lambda a, b, t: a - b < a,
    "a * b >= b": lambda a, b, t: a * b >= b,
    "-a < a": lambda a, b, t: -a < a,
    "~a == T(0)": lambda a, b, t: ~a == t(0),
    "-(a + b) != a": lambda a, b, t: -(a + b) != a,
    "- -a == a": lambda a, b, t: a == a,
    # shifted, divided
    "(a + b) >> T(1)": lambda a, b, t: (a + b) >> t(1),
    "(a << T(1)) >> T(1)": lambda a, b, t: (a << t(1)) >> t(1),
    "~a >> T(2)": lambda a, b, t: ~a >> t(2),
    "(a * T(2)) / T(2)": lambda a, b, t: divided(a * t(2), t(2), t),
    "(a + b) % T(7)": lambda a, b, t: rest(a + b, t(7), t),
    "(a - b) / T(3)": lambda a, b, t: divided(a - b, t(3), t),
    # widened
    "uint(a + b)": lambda a, b, t: (a + b).astype(np.uint32),
    "int(a - b)": lambda a, b, t: (a - b).astype(np.int32),
    "uint64_t(a * b)": lambda a, b, t: (a * b).astype(np.uint64),
    "asint(float(a + b))": lambda a, b, t: (a + b).astype(np.float32).view(np.int32),
    "asint(-float(-a) * 0.5f)": lambda a, b, t: (-(-a).astype(np.float32) * np.float32(0.5)).view(np.int32),
    # given to functions
    "min(a + b, a)": lambda a, b, t: np.minimum(a + b, a),
    "max(a - b, ~b)": lambda a, b, t: np.maximum(a - b, ~b),
    "halved(a + b)": lambda a, b, t: (a + b) >> t(1),
    "select(a > b, a, T(3))": lambda a, b, t: np.where(a > b, a, t(3)),
    "select(a > b, T(3), a + b)": lambda a, b, t: np.where(a > b, t(3), a + b),
    "a > b ? a + b : T(7)": lambda a, b, t: np.where(a > b, a + b, t(7)),
    "counted(a)": lambda a, b, t: np.minimum(np.iinfo(t).max - a.astype(object), 4) + 1,
    "compounded(a, b)": lambda a, b, t: ((a + b) * a - t(1) ^ b) << t(1),
    "places[(a + b) & T(3)]": lambda a, b, t: np.array([5, 6, 7, 8])[(a + b) & t(3)],
    # vectors
    "(vector<T, 3>(a, b, a) * b + vector<T, 3>(b, a, b)).y": lambda a, b, t: b * b + a,
    "any(vector<T, 3>(a, b, a) + vector<T, 3>(b) > vector<T, 3>(a, b, a))": lambda a, b, t: (a + b > a) | (b + b > b),
    "any(-vector<T, 2>(a, b) > vector<T, 2>(a, b))": lambda a, b, t: (-a > a) | (-b > b),
    "(~vector<T, 2>(a, b)).x == T(0)": lambda a, b, t: ~a == t(0),
    "vector<T, 2>(a, b).x + vector<T, 2>(a, b).y > a": lambda a, b, t: a + b > a,
    "(vector<T, 4>(a, b, a, b) << vector<T, 4>(T(1))).w >> T(1)": lambda a, b, t: (b << t(1)) >> t(1),
    "select(vector<bool, 2>(a > b, b > a), vector<T, 2>(a, b), vector<T, 2>(T(3))).x": lambda a, b, t: np.where(a > b, a, t(3)),
}  # fmt: skip
SIGNED: dict[str, Form] = {
    "abs(a)": lambda a, b, t: np.abs(a),
    "abs(a) < T(0)": lambda a, b, t: np.abs(a) < t(0),
    "abs(a - b) >> T(1)": lambda a, b, t: np.abs(a - b) >> t(1),
    "any(abs(vector<T, 2>(a, b)) < vector<T, 2>(T(0)))": lambda a, b, t: (np.abs(a) < t(0)) | (np.abs(b) < t(0)),
}
MATRICES: dict[str, Form] = {
    "(matrix<T, 2, 2>(a, b, b, a) + matrix<T, 2, 2>(b, a, a, b))[0][0] > a": lambda a, b, t: a + b > a,
    "(-matrix<T, 2, 2>(a, b, b, a))[1].x >> T(1)": lambda a, b, t: -b >> t(1),
    "(matrix<T, 2, 2>(a, b, b, a) * matrix<T, 2, 2>(b, a, a, b))[0].x": lambda a, b, t: a * b,
    "(~matrix<T, 2, 2>(a, b, b, a))[0][1] == T(0)": lambda a, b, t: ~b == t(0),
}
FUNCTIONS = """
T halved(T x) { return x >> T(1); }
T counted(T a) { T n = T(0); for (T i = a; i >= a && n < T(5); i++) n++; return n; }
T compounded(T a, T b) { a += b; T c = a; c *= a - b; c--; c ^= b; c <<= T(1); return c; }
"""


def divided(a: Array, b: Any, t: Any) -> Array:
    """C and Slang round towards zero, NumPy's integers downwards."""
    magnitude = np.abs(a.astype(object)) // abs(int(b))
    return (np.sign(a.astype(object)) * magnitude).astype(t)


def rest(a: Array, b: Any, t: Any) -> Array:
    return a - divided(a, b, t) * b


FAULTS_OF_NVRTC = ("counted(a)", "~a")
"""CUDA 13.0, in plain CUDA code, too: NVRTC takes `for (i = a; i >= a && n < 5; i++)` to end after its first turn, also of unsigned
numbers; and ptxas makes `int64_t(~a)` of `int64_t(-a)` - 1 where a kernel has both, which is wrong for the least number."""


def forms(name: str, matrices: bool = False, cuda: bool = False) -> dict[str, Form]:
    """Those that a type has."""
    found = FORMS | (SIGNED if name.startswith("i") else {}) | (MATRICES if matrices else {})
    return {text: form for text, form in found.items() if not (cuda and text in FAULTS_OF_NVRTC)}


def source(name: str, chosen: dict[str, Form]) -> str:
    """A function `all(a, b)` that gives what all forms make, as integers of 64 bits. Each form has a function of its own, so that
    nothing that two forms share is stored between them."""
    count = len(chosen)
    places = "T places[4] = { T(5), T(6), T(7), T(8) }; "
    functions = "\n".join(
        f"int64_t form{i}(T a, T b) {{ {places if 'places' in text else ''}return int64_t({text}); }}"
        for i, text in enumerate(chosen)
    )
    results = "\n".join(f"    r[{i}] = form{i}(a, b);" for i in range(count))
    return (
        f"typealias T = {name};\n{FUNCTIONS}{functions}\n"
        f"int64_t[{count}] all(T a, T b)\n{{\n    int64_t r[{count}];\n{results}\n    return r;\n}}\n"
    )


def values(name: str, count: int = 301) -> tuple[Array, Array]:
    """All pairs of the numbers at the edges, and random ones."""
    t = TYPES[name]
    info = np.iinfo(t)
    edges = np.array([info.min, info.min + 1, info.max, info.max - 1, info.max // 2 + 1, 0, 1, 2, 3], t)
    if info.min < 0:
        edges = np.append(edges, t(-1))
    pairs = np.array([(a, b) for a in edges for b in edges], t)
    rng = np.random.default_rng(31)
    pairs = np.concatenate([pairs, rng.integers(info.min, info.max, (count, 2), t, endpoint=True)])
    return np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])


def expected(name: str, chosen: dict[str, Form], a: Array, b: Array) -> Array:
    with np.errstate(all="ignore"):
        return np.stack([np.asarray(form(a, b, TYPES[name])).astype(np.int64) for form in chosen.values()], 1)


def differences(got: Array, wanted: Array, chosen: dict[str, Form], a: Array, b: Array) -> list[str]:
    """What is wrong, by form, with the first operands of which it is."""
    texts = []
    for i, text in enumerate(chosen):
        wrong = np.flatnonzero(got[:, i] != wanted[:, i])
        if len(wrong):
            at = wrong[0]
            texts.append(
                f"{text}: a = {a[at]}, b = {b[at]}: {got[at, i]}, expected {wanted[at, i]} ({len(wrong)} wrong)"
            )
    return texts
