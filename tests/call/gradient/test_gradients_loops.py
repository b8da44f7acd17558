"""Derivatives of loops: random programs against float64, and where a loop is longer than it says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from drawn import MANY, SEED
from loop_programs import KINDS, Program, module_text, programs
from tiers import gate

import slangpy as spy

pytestmark = [pytest.mark.needs_kernels, pytest.mark.one]

X, Y = 0.7, -0.4
BATCH = {spy.DeviceType.cpu: (32 if MANY > 1 else 16, 3)}
"""Programs in a module, and how deep loops are nested; elsewhere fewer, because lavapipe takes minutes to compile more."""
BATCHES = MANY
"""How many batches of random programs of each kind."""


def derivatives(device: Any, found: list[Program], name: str) -> np.ndarray:
    """Rows of value, derivative by x, derivative by y: one call, with one result seeded in each of its invocations."""
    n = len(found)
    module = spy.Module.load_from_source(device, name, module_text(found))
    x = spy.Tensor.from_numpy(device, np.full(n, X, np.float32)).with_grads()
    y = spy.Tensor.from_numpy(device, np.full(n, Y, np.float32)).with_grads()
    values = module.all(0, x, y, _result="numpy")[0]
    results = spy.Tensor.zeros(device, (n,), f"float[{n}]").with_grads()
    results.grad.copy_from_numpy(np.eye(n, dtype=np.float32))
    module.all.bwds(0, x, y, _result=results)
    return np.stack([values, x.grad.to_numpy(), y.grad.to_numpy()], 1)


def compare(device: Any, found: list[Program], name: str) -> None:
    got = derivatives(device, found, name)
    for row, program in zip(got, found, strict=True):
        right, _ = program.expected(X, Y)
        np.testing.assert_allclose(
            row, [right.value, *right.by], rtol=2e-3, atol=2e-4, err_msg=f"{program.slang}\n{program.python}"
        )


@pytest.mark.parametrize(
    ("label", "kinds", "depth", "leaves"),
    gate(
        [
            ("nested", ("for", "bounded"), 3, False),
            ("left_early", ("for", "bounded"), 3, True),
            ("while", ("while", "flag"), 2, True),
            ("mixed", KINDS, 3, True),
        ],
        lambda case: case[0] != "nested",  # loops that are left early nest as well
    ),
)
def test_random_programs(device, label, kinds, depth, leaves):
    size, deepest = BATCH.get(device.info.type, (6, 2))
    for batch in range(BATCHES):
        seed = 7919 * batch + len(label) + 104_729 * (SEED - 1)
        found = programs(seed, size, X, Y, kinds, min(depth, deepest), leaves)
        compare(device, found, f"loops_{label}_{batch}")


DENSE = """
import slangpy;
%s
[Differentiable] float dense(ITensor<float, 2> w, float3 x)
{
    float s = 0;
    for (int r = 0; r < %s; r++) {
        float y = 0;
        for (int c = 0; c < %s; c++)
            y += w.load(r, c) * x[c %% 3];
        s += y * y;
    }
    return s;
}
"""


SIZES = [(5, 8), (8, 5), (3, 33), (33, 3), (1, 20), (20, 1)]


@pytest.mark.parametrize(
    ("rows", "columns", "named"),
    gate([(*size, named) for named in (False, True) for size in SIZES], lambda case: case[2] == (case[0] > case[1])),
)
def test_dense_layers(device, rows, columns, named):
    """The states of nested loops of different lengths do not overlap."""
    if device.info.type == spy.DeviceType.vulkan:  # LLVM takes 85 s for (33, 3) and 32 s for (1, 20) in Mesa's driver
        shorter = {(33, 3): (9, 3), (3, 33): (3, 9), (1, 20): (1, 9), (20, 1): (9, 1)}
        rows, columns = shorter.get((rows, columns), (rows, columns))
    names = f"static const int ROWS = {rows};\nstatic const int COLUMNS = ROWS + {columns - rows};" if named else ""
    sizes = ("ROWS", "COLUMNS") if named else (rows, columns)
    module = spy.Module.load_from_source(device, f"dense_{rows}_{columns}_{named}", DENSE % (names, *sizes))
    rng = np.random.default_rng(rows)
    weights, x = rng.normal(size=(rows, columns)), np.array([0.3, -0.8, 0.5])
    w = spy.Tensor.from_numpy(device, weights.astype(np.float32)).with_grads()
    pair = spy.diffPair(spy.float3(*x), spy.float3(0))
    module.dense.bwds(w, pair, _result=spy.diffPair(0.0, 1.0))
    at = np.arange(columns) % 3
    y = weights @ x[at]
    by_x = np.zeros(3)
    np.add.at(by_x, at, 2 * y @ weights)
    np.testing.assert_allclose(w.grad.to_numpy(), 2 * np.outer(y, x[at]), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose([pair.grad[i] for i in range(3)], by_x, rtol=1e-4, atol=1e-4)


GENERIC = """
[Differentiable] float inner<let N : int, let M : int>(float x)
{
    float s = 1;
    [MaxIters(N)] for (int r = 0; r < N; r++)
        [MaxIters(M)] for (int c = 0; c < M; c++)
            s = s * (1 + 0.1 * sin(x * s));
    return s;
}
[Differentiable] float generic(float x) { return inner<%d, %d>(x) + inner<%d, %d>(x); }
"""


def steps(x: float, count: int) -> float:
    s = 1.0
    for _ in range(count):
        s = s * (1 + 0.1 * np.sin(x * s))
    return s


def test_generic_lengths(device):
    short, long = (2, 7) if device.info.type == spy.DeviceType.vulkan else (3, 19)  # as above: LLVM took 50 s for 3, 19
    module = spy.Module.load_from_source(device, "generic_loops", GENERIC % (short, long, long, short))
    pair = spy.diffPair(X)
    module.generic.bwds(pair, _result=spy.diffPair(0.0, 1.0))
    count = short * long
    difference = 2 * (steps(X + 1e-6, count) - steps(X - 1e-6, count)) / 2e-6
    assert pair.grad == pytest.approx(difference, rel=1e-3)


IMPORTED = """
[Differentiable] float chain(float x)
{
    float s = 1;
    int i = 0;
    [MaxIters(12)] while (i < 12) {
        i++;
        if (s > 2.5) break;
        s = s * (1 + 0.3 * sin(x * s));
    }
    return s;
}
"""


def chain(x: float) -> float:
    s = 1.0
    for _ in range(12):
        if s > 2.5:
            break
        s = s * (1 + 0.3 * np.sin(x * s))
    return s


@pytest.mark.parametrize("way", ["import chained;", '#include "chained.slang"'])
def test_loops_of_other_files(device, tmp_path, way):
    """`while` loops are mended in what a module imports or includes, too."""
    (tmp_path / "chained.slang").write_text(IMPORTED)
    main = tmp_path / "main.slang"
    main.write_text(f"{way}\n[Differentiable] float f(float x) {{ return chain(x); }}\n")
    module = spy.Module.load_from_file(device, str(main))
    pair = spy.diffPair(X)
    module.f.bwds(pair, _result=spy.diffPair(0.0, 1.0))
    assert pair.grad == pytest.approx((chain(X + 1e-6) - chain(X - 1e-6)) / 2e-6, rel=1e-3)


TOO_LONG = """
[Differentiable] float alone(float x, int n)
{
    float s = 1;
    [MaxIters(4)] for (int i = 0; i < n; i++) s = s * (1 + 0.1 * sin(x * s));
    return s;
}
[Differentiable] float outer(float x, int n)
{
    float s = 1;
    [MaxIters(4)] for (int i = 0; i < n; i++) for (int k = 0; k < 3; k++) s = s * (1 + 0.1 * sin(x * s));
    return s;
}
[Differentiable] float inner(float x, int n)
{
    float s = 1;
    for (int k = 0; k < 3; k++) [MaxIters(4)] for (int i = 0; i < n; i++) s = s * (1 + 0.1 * sin(x * s));
    return s;
}
"""


@pytest.mark.parametrize("name", ["alone", "outer", "inner"])
def test_a_loop_longer_than_it_says(device, name):
    """The CPU device notices; the other devices cannot."""
    module = spy.Module.load_from_source(device, "too_long", TOO_LONG)
    function, pair = getattr(module, name), spy.diffPair(X)
    function.bwds(pair, 4, _result=spy.diffPair(0.0, 1.0))
    count = 4 if name == "alone" else 12
    assert pair.grad == pytest.approx((steps(X + 1e-6, count) - steps(X - 1e-6, count)) / 2e-6, rel=1e-3)
    if device.info.type is spy.DeviceType.cpu:
        with pytest.raises(RuntimeError, match=rf"too_long::{name}\.bwds: .*\[MaxIters"):
            function.bwds(spy.diffPair(X), 12, _result=spy.diffPair(0.0, 1.0))


ONCE = """
[Differentiable] float NAME(float a)
{
    float s = a;
    for (int i = 0; i < 3; i++) {
        OPEN
            s += a * i;
            if (s > 1.5) { s = s * 0.5; continue; }
            if (i == 2) break;
            for (int k = 0; k < 2; k++) { if (k == 1) continue; s *= a; }
            s = s * a + 1;
        CLOSE
        s += a * a;
    }
    return s;
}
"""
ONCE_FORMS = [
    ("do {", "} while (false);"),
    ("[MaxIters(1)] do {", "}\nwhile ( 0 ) ;"),
    ("if (i >= 0) do {", "} while (false); else s = 0;"),
]


def once(a: float) -> float:
    s = a
    for i in range(3):
        s += a * i
        if s > 1.5:
            s *= 0.5
        elif i != 2:
            s = s * a * a + 1
        s += a * a
    return s


def test_do_once_with_continue(device):
    """The reverse derivative of such a loop ends the compiler. All forms by one kernel, each seeded alone."""
    source = "".join(
        ONCE.replace("NAME", f"f{k}").replace("OPEN", begin).replace("CLOSE", end) for k, (begin, end) in enumerate(ONCE_FORMS)
    )
    source += "[Differentiable] float3 all(float a) { return float3(f0(a), f1(a), f2(a)); }"
    module = spy.Module.load_from_source(device, "once", source)
    a = np.tile(np.array([[0.3, 0.9, -0.7, 2.2]]), (3, 1))
    x = spy.Tensor.from_numpy(device, a.astype(np.float32)).with_grads()
    y = module.all(x).with_grads()
    y.grad.copy_from_numpy(np.ascontiguousarray(np.broadcast_to(np.eye(3, dtype=np.float32)[:, None], (3, 4, 3))))
    module.all.bwds(x, _result=y)
    slopes = [[(once(v + 1e-6) - once(v - 1e-6)) / 2e-6 for v in row] for row in a]
    values = np.array([[once(v) for v in row] for row in a])
    np.testing.assert_allclose(y.to_numpy(), np.repeat(values[..., None], 3, 2), rtol=1e-5)
    np.testing.assert_allclose(x.grad.to_numpy(), slopes, rtol=1e-4)


VANISHING = """
[Differentiable] float f(float x, int n)
{
    float s = 1;
    int i = 0;
    [MaxIters(2)] do { [MaxIters(8)] for (int k = 0; k < 5; k++) s = s * (1 + 0.1 * sin(x * s)); i++; } while (i < 1);
    [MaxIters(2)] for (; i < 2; ) { [MaxIters(8)] for (int k = 0; k < n; k++) s = s * (1 + 0.1 * sin(x * s)); i++; }
    int j = 0;
    [MaxIters(3)] for (; ; )
    {
        if (!(j < 1)) break;
        j += 1;
        [MaxIters(8)] for (int k = 0; k < n; k++) s = s * (1 + 0.1 * sin(x * s));
        if (float(j) > 0.5f) { s *= 1; break; }
    }
    [MaxIters(3)] for (int m = 0; m < 3; m++)
    {
        [MaxIters(8)] for (int k = 0; k < n; k++) s = s * (1 + 0.1 * sin(x * s));
        if (x > 100) s = 0; else if (m < 2) break;
    }
    int p = 0;
    [MaxIters(2)] do { p += 1; [MaxIters(8)] for (int k = 0; k < n; k++) s = s * (1 + 0.1 * sin(x * s)); } while ((p < 1) && (s < 2));
    int q = 0;
    [MaxIters(2)] for (; ; )
    {
        if (!(q < 1 && s < 100)) break;
        q += 1;
        [MaxIters(8)] for (int k = 0; k < n; k++) s = s * (1 + 0.1 * sin(x * s));
    }
    return s;
}
"""


def test_outer_loops_that_vanish(device):
    """Slang sees that they run once, so that the inner loops' states have one dimension."""
    module, pair = spy.Module.load_from_source(device, "vanishing", VANISHING), spy.diffPair(X)
    module.f.bwds(pair, 7, _result=spy.diffPair(0.0, 1.0))
    assert pair.grad == pytest.approx((steps(X + 1e-6, 40) - steps(X - 1e-6, 40)) / 2e-6, rel=1e-3)


CONTINUED = {
    "once": "int i = 0; [MaxIters(2)] do { i++; y = sin(y) * a; if ((i + n) % 3 != 0) continue; y *= 1.5; } while (i < 1);",
    "false": "[MaxIters(1)] do { if (n % 3 != 0) continue; y *= a; } while (false);",
    "several": (
        "int i = 0; [MaxIters(2)] do { i++; if ((i + n) % 3 != 0) { y += a; continue; } y *= a; if (n > 2) { y += 1; continue; } y = sin(y); }"
        " while (i < 1);"
    ),
    "in a loop": (
        "[MaxIters(3)] for (int k = 0; k < 3; k++) { int i = 0; [MaxIters(3)] do { i++; if ((i + k) % 3 != n % 3) continue; y = sin(y) * a; }"
        " while (i < 1); y *= 1.1; }"
    ),
    "a loop in it": (
        "int i = 0; [MaxIters(7)] do { i++; [MaxIters(7)] do { if (i == 2) continue; y = sin(y) * a; } while (y > 5); if ((i + n) % 3 != 0)"
        " continue; y *= 1.5; } while (i < n // how often\n && y > 0);"
    ),
}


def test_continue_in_do_loops(device):
    """Of a `do` that runs once and has a `continue`, Slang 2026.12 makes SPIR-V that is invalid or ignores it. All forms by
    one kernel, each seeded alone."""
    count = len(CONTINUED)
    bodies = [body.replace("1.5", "1.5f").replace("1.1", "1.1f") for body in CONTINUED.values()]
    source = "".join(
        f"[Differentiable] float f{k}(float y, float a, int n) {{ {body} return y; }}\n" for k, body in enumerate(bodies)
    )
    results = " ".join(f"r[{k}] = f{k}(y, a, n);" for k in range(count))
    source += f"[Differentiable] float[{count}] all(float y, float a, int n) {{ float r[{count}]; {results} return r; }}"
    module = spy.Module.load_from_source(device, "continued", source)
    n = np.arange(5, dtype=np.int32)
    y, a = (spy.Tensor.from_numpy(device, np.full((count, 5), x, np.float32)).with_grads() for x in (0.6, 0.8))
    result = spy.Tensor.zeros(device, (count, 5), f"float[{count}]").with_grads()
    seeds = np.broadcast_to(np.eye(count, dtype=np.float32)[:, None], (count, 5, count))
    result.grad.copy_from_numpy(np.ascontiguousarray(seeds))
    module.all.bwds(y, a, n, _result=result)
    values = module.all(y, a, n, _result="numpy")
    steps_of = ((0, 0), (1e-6, 0), (-1e-6, 0), (0, 1e-6), (0, -1e-6))
    for k, name in enumerate(CONTINUED):
        value, *ends = np.array([[continued(name, 0.6 + s, 0.8 + t, m) for m in range(5)] for s, t in steps_of])
        np.testing.assert_allclose(values[k, :, k], value, rtol=1e-5, err_msg=name)
        by_y, by_a = (ends[0] - ends[1]) / 2e-6, (ends[2] - ends[3]) / 2e-6
        np.testing.assert_allclose(y.grad.to_numpy()[k], by_y, rtol=1e-3, atol=1e-5, err_msg=name)
        np.testing.assert_allclose(a.grad.to_numpy()[k], by_a, rtol=1e-3, atol=1e-5, err_msg=name)


def continued(name: str, y: float, a: float, n: int) -> float:
    """The bodies of CONTINUED in Python."""
    if name == "once":
        return np.sin(y) * a * (1.5 if (1 + n) % 3 == 0 else 1)
    if name == "false":
        return y * a if n % 3 == 0 else y
    if name == "several":
        if (1 + n) % 3 != 0:
            return y + a
        return y * a + 1 if n > 2 else np.sin(y * a)
    if name == "in a loop":
        for k in range(3):
            y = (np.sin(y) * a if (1 + k) % 3 == n % 3 else y) * 1.1
        return y
    i = 0
    while True:
        i += 1
        y = y if i == 2 else np.sin(y) * a
        if (i + n) % 3 == 0:
            y *= 1.5
        if not (i < n and y > 0):
            return y
