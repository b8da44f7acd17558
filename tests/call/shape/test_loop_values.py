"""Values that loops carry: swapped, rotated, kept for later. Translators of SSA code order their moves wrongly here, so
each device is compared with Python, for every type that may be carried."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from calls_support import source

import slangpy as spy

pytestmark = pytest.mark.needs_kernels


def swap(a: Any, b: Any, n: int) -> Any:
    for _ in range(n):
        a, b = b, a
    return a + 2 * b


def rotate(a: Any, b: Any, n: int) -> Any:
    c = a + b
    for _ in range(n):
        a, b, c = b, c, a + 1
    return a + 2 * b + 3 * c


def keep(a: Any, b: Any, n: int) -> Any:
    old = b
    for _ in range(n):
        old = a + b
        a = a * 2 + 1
    return old + 3 * a


def leave(a: Any, b: Any, n: int) -> Any:
    old, i = b, 0
    while True:
        old, a = a, a + b
        b = old
        i += 1
        if i >= n:
            break
        if i % 2 == 1:
            continue
        a, b = b, a
    return old + 2 * a + 3 * b


def early(a: Any, b: Any, n: int) -> Any:
    for i in range(n):
        old = a
        a = a + b
        if i == 3:
            return old
        b = old
    return a + b


def nested(a: Any, b: Any, n: int) -> Any:
    s = b
    for i in range(n):
        old = a
        for _ in range(i + 1):
            a, b = b, a + 1
        s = s + old
    return s + 2 * a + 3 * b


def chosen(a: Any, b: Any, n: int) -> Any:
    for i in range(n):
        if i % 3 == 0:
            a, b = b, a
        elif i % 3 == 1:
            a = a + 1
        else:
            old = a
            a = a + b
            b = old
    return a + 2 * b


PROGRAMS = {
    swap: "for (int i = 0; i < n; i++) { T t = a; a = b; b = t; } return a + two * b;",
    rotate: "T c = a + b; for (int i = 0; i < n; i++) { T t = a; a = b; b = c; c = t + one; } "
    "return a + two * b + three * c;",
    keep: "T old = b; for (int i = 0; i < n; i++) { old = a + b; a = a * two + one; } return old + three * a;",
    leave: "T old = b; int i = 0; while (true) { old = a; a = a + b; b = old; i++; if (i >= n) break; "
    "if (i % 2 == 1) continue; T t = a; a = b; b = t; } return old + two * a + three * b;",
    early: "for (int i = 0; i < n; i++) { T old = a; a = a + b; if (i == 3) return old; b = old; } return a + b;",
    nested: "T s = b; for (int i = 0; i < n; i++) { T old = a; for (int j = 0; j <= i; j++) "
    "{ T t = a; a = b; b = t + one; } s = s + old; } return s + two * a + three * b;",
    chosen: "for (int i = 0; i < n; i++) { switch (i % 3) { case 0: { T t = a; a = b; b = t; break; } "
    "case 1: a = a + one; break; default: { T old = a; a = a + b; b = old; break; } } } return a + two * b;",
}
TYPES = {
    "float": (np.float32, ()), "int": (np.int32, ()), "uint": (np.uint32, ()), "int64_t": (np.int64, ()),
    "double": (np.float64, ()), "float3": (np.float32, (3,)), "int2": (np.int32, (2,)),
}  # fmt: skip


@pytest.mark.parametrize("type_", TYPES)
def test_carried_values(device: spy.Device, type_: str) -> None:
    """All programs by one kernel."""
    if type_ == "double" and not device.has_feature(spy.Feature.double):
        pytest.skip("no double on this device")
    dtype, tail = TYPES[type_]
    text = f"typealias T = {type_};\nstatic const T one = T(1); static const T two = T(2); static const T three = T(3);"
    text += "".join(f"\nT f{k}(T a, T b, int n) {{ {body} }}" for k, body in enumerate(PROGRAMS.values()))
    outs = ", ".join(f"out T r{k}" for k in range(len(PROGRAMS)))
    calls = " ".join(f"r{k} = f{k}(a, b, n);" for k in range(len(PROGRAMS)))
    f = source(device, f"carried_{type_}", f"{text}\nvoid all(T a, T b, int n, {outs}) {{ {calls} }}").all
    a, b = np.arange(3 * int(np.prod(tail)), dtype=dtype).reshape(3, *tail), dtype(7) + np.zeros((3, *tail), dtype)
    for n in (0, 1, 2, 3, 5, 8):
        results = [np.zeros_like(a) for _ in PROGRAMS]
        f(a, b, n, *results)
        for program, result in zip(PROGRAMS, results, strict=True):
            np.testing.assert_array_equal(result, program(a, b, n), err_msg=program.__name__)


@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_carried_conditions(device: spy.Device, n: int) -> None:
    """Of bool, which has no arithmetic."""
    f = source(
        device, "carried_bool",
        "int f(bool a, bool b, bool c, int n) { for (int i = 0; i < n; i++) { bool t = a; a = b; b = c; c = t; } "
        "return int(a) + 2 * int(b) + 4 * int(c); }",
    ).f  # fmt: skip
    values = [True, False, False]
    for _ in range(n):
        values = [values[1], values[2], values[0]]
    assert f(True, False, False, n) == sum(int(v) << i for i, v in enumerate(values))


def test_carried_conditions_of_vectors_structs_and_arrays(device: spy.Device) -> None:
    text = """
        struct Three { bool a; int k; bool2 b; };
        struct Flags { bool of_vector[3]; bool of_struct[3]; bool of_array[3]; int k; };
        Flags f(bool a, bool b, bool c, int n)
        {
            bool3 v = bool3(a, b, c);
            Three s = { a, 1, bool2(b, c) };
            bool q[3] = { a, b, c };
            for (int i = 0; i < n; i++) {
                v = v.yzx;
                bool t = s.a; s.a = s.b.x; s.b = bool2(s.b.y, t); s.k += int(s.a);
                bool u = q[0]; q[0] = q[1]; q[1] = q[2]; q[2] = u;
            }
            return { { v.x, v.y, v.z }, { s.a, s.b.x, s.b.y }, { q[0], q[1], q[2] }, s.k };
        }
    """
    f = source(device, "carried_bools", text).f
    for n in (0, 1, 2, 3, 5, 8):
        values, k = [True, False, False], 1
        for _ in range(n):
            values = [*values[1:], values[0]]
            k += values[0]
        got = f(True, False, False, n)
        assert {name: [bool(x) for x in got[name]] for name in ("of_vector", "of_struct", "of_array")} == dict.fromkeys(
            ("of_vector", "of_struct", "of_array"), values
        )
        assert got["k"] == k


@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_carried_halves(device: spy.Device, n: int) -> None:
    if not device.has_feature(spy.Feature.half):
        pytest.skip("no half on this device")
    f = source(
        device, "carried_half",
        "half f(half a, half b, int n) { for (int i = 0; i < n; i++) { half t = a; a = b; b = t; } return a + half(2) * b; }",
    ).f  # fmt: skip
    assert f(np.float16(1.5), np.float16(4), n) == swap(1.5, 4.0, n)


def test_carried_values_that_no_arithmetic_keeps(device: spy.Device) -> None:
    """Zero with a sign, infinity and no number are swapped as they are."""
    f = source(
        device, "carried_odd",
        "uint f(float a, float b, int n) { for (int i = 0; i < n; i++) { float t = a; a = b; b = t; } return asuint(b); }",
    ).f  # fmt: skip
    values = np.array([0.0, -0.0, np.inf, -np.inf, 1.17549435e-38], np.float32)
    for n, expected in ((1, values), (2, np.ones(5, np.float32))):
        assert f(values, np.ones(5, np.float32), n, _result="numpy").tolist() == expected.view(np.uint32).tolist()
