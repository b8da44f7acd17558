"""Expected values for basics.slang."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from harness import HERE, View, close, main, run_cpp, warnings_of

FILE = "basics.slang"
WORK = Path(os.environ.get("SPY_WORK", "work"))
F = np.float32


def f(*v):
    return np.array(v, F)


def zeros(*s, dtype=F):
    return np.zeros(s, dtype)


def go(entry, *args, threads=1):
    return [warnings_of(run_cpp(HERE / FILE, entry, WORK, args, threads))]


def poly_fwd():
    x, r = f(1, 2, 3, 4), zeros(4)
    yield from go("poly_fwd", View(x), View(r), threads=4)
    yield close("result", r, [9, 23, 41, 63])


def poly_bwd():
    x, g, r, seed = f(1, 2, 3, 4), zeros(4), f(7, 7, 7, 7), np.ones(4, F)
    out = View(r, grads=[seed])
    for n in (1, 2):  # gradients accumulate
        yield from go("poly_bwd", View(x, grads=[g]), discard(out), threads=4)
        yield close("x.grad", g, np.array([12, 16, 20, 24]) * n)
    yield close("result untouched", r, [7] * 4)
    yield from go("poly_bwd", View(x, grads=[None]), discard(View(r, grads=[None])), threads=4)  # absent: no fault


class discard(View):
    """A write-only argument of a backward call: null primal pointer, so that nothing is stored."""

    def __init__(self, v):
        super().__init__(v.data, v.elem, v.rank, v.grads)

    def pack(self):
        return b"\0" * 8 + super().pack()[8:]


def double_bwd():
    x, gi, go_ = f(1, 2, 3, 4), np.ones(4, F), zeros(4)
    yield from go("double_bwd", View(x, grads=[gi, go_]), threads=4)
    yield close("grad_out", go_, [2] * 4)
    yield close("grad_in", gi, [1] * 4)


W, B, X = f([1, 2, 3], [4, 5, 6]), f(0.5, -0.5), f(1, 0, -1)


def linear_fwd():
    y = zeros(2)
    yield from go("linear_fwd", View(W), View(B), View(X), View(y), threads=2)
    yield close("y", y, [-1.5, -2.5])


def linear_bwd():
    dw, db, dx = zeros(2, 3), zeros(2), zeros(3)
    out = discard(View(zeros(2), grads=[f(1, 2)]))
    yield from go("linear_bwd", View(W, grads=[dw]), View(B, grads=[db]), View(X, grads=[dx]), out, threads=2)
    yield close("dW", dw, [[1, 0, -1], [2, 0, -2]])
    yield close("db", db, [1, 2])
    yield close("dx", dx, [9, 12, 15])


def linear_bwd_partial():
    db, dx = zeros(2), zeros(3)
    out = discard(View(zeros(2), grads=[f(1, 2)]))
    yield from go("linear_bwd_partial", View(W), View(B, grads=[db]), View(X, grads=[dx]), out, threads=2)
    yield close("db", db, [1, 2])
    yield close("dx", dx, [9, 12, 15])


def rows_fwd():
    y = zeros(2, 2)
    yield from go("rows_fwd", View(f([1, 2], [3, 4])), View(f(10, 20)), View(y), threads=2)
    yield close("y", y, [[10, 20], [60, 80]])


def rows_bwd():
    dm, ds = zeros(2, 2), zeros(2)
    # the gradient's strides are its own: here the transpose of a row-major array
    dm = np.zeros((2, 2), F).T
    out = discard(View(zeros(2, 2), grads=[np.ones((2, 2), F)]))
    yield from go("rows_bwd", View(f([1, 2], [3, 4]), grads=[dm]), View(f(10, 20), grads=[ds]), out, threads=2)
    yield close("m.grad", dm, [[10, 10], [20, 20]])
    yield close("s.grad", ds, [3, 7])


RAY = np.dtype([("t", F), ("uv", F, 2)])


def ray_bwd():
    rays, grad = np.array([(1, (2, 3)), (2, (2, 3))], RAY), np.zeros(2, RAY)
    out = discard(View(zeros(2), grads=[np.ones(2, F)]))
    yield from go("ray_bwd", View(rays, grads=[grad]), out, threads=2)
    yield close("t", grad["t"], [2, 4])
    yield close("uv", grad["uv"], [[3, 2], [3, 2]])


def smooth_bwd():
    x, g, y = f(-1, 0.25, 0.5, 2), zeros(4), zeros(4)
    yield from go("smooth_bwd", View(x, grads=[g]), View(y), threads=4)
    yield close("y", y, [0, 0.15625, 0.5, 1])
    yield close("x.grad", g, [0, 1.125, 1.5, 0])


def forms_bwd():
    x, dx = np.arange(12, dtype=F).reshape(3, 4), zeros(3, 4)
    y, dy = zeros(3, 4), np.arange(1, 13, dtype=F).reshape(3, 4)
    yield from go("forms_bwd", View(x, grads=[dx]), discard(View(y, grads=[dy])))
    ds = 1 + dy[1, 1] + dy[0, 2] + 3 * dy[2, 1]
    want = zeros(3, 4)
    want[1, 1], want[1, 2], want[2, 1] = 6 * ds + 2 * dy[1, 1], 2 * ds, 2 * ds
    yield close("x.grad", dx, want)
    yield close("y untouched", y, zeros(3, 4))


def rank8_bwd():
    rng = np.random.default_rng(1)
    x, dx = rng.random((2,) * 8).astype(F), zeros(*(2,) * 8)
    y, dy = zeros(*(2,) * 8), rng.random((2,) * 8).astype(F)
    yield from go("rank8_bwd", View(x, grads=[dx]), discard(View(y, grads=[dy])))
    a, b = (0, 1, 1, 1, 0, 1, 0, 1), (0, 1, 1, 1, 0, 1, 0, 1)
    d = 1 + dy[0, 0, 0, 0, 0, 0, 0, 1] + 2 * dy[1, 1, 1, 1, 1, 1, 1, 1]
    want = zeros(*(2,) * 8)
    want[a] += d * x[b]
    want[b] += d * x[a]
    yield close("x.grad", dx, want)


def rank0_bwd():
    x, dx, y, dy = (np.array(v, F) for v in (3, 0, 0, 2))
    z, zi, zo = (np.array(v, F) for v in (5, 7, 0))
    args = View(x, grads=[dx]), discard(View(y, grads=[dy])), View(z, grads=[zi, zo])
    yield from go("rank0_bwd", *args)
    yield close("x.grad", dx, 12)
    yield close("z.grad_out", zo, 21)


def generic_bwd():
    x, dx = f([1, 2, 3]), zeros(1, 3)
    y, dy = f(1, 2, 3), zeros(3)
    z, dz = np.array([1.0, 2, 3]), np.zeros(3)
    h, dh = np.array([1, 2, 3], np.float16), np.zeros(3, np.float16)
    yield from go("generic_bwd", *(View(a, grads=[b]) for a, b in ((x, dx), (y, dy), (z, dz), (h, dh))), threads=3)
    yield close("total", dx, [[2, 4, 6]])
    for name, d in (("float", dy), ("double", dz), ("half", dh)):
        yield close(name, d, [3, 12, 27])


def through_bwd():
    x, dx, y, dy = f(1, 2), zeros(2), zeros(2), f(10, 20)
    z, zi, zo = f(3, 4), f(1, 2), zeros(2)
    yield from go("through_bwd", View(x, grads=[dx]), discard(View(y, grads=[dy])), View(z, grads=[zi, zo]), threads=2)
    yield close("x.grad", dx, [21, 81])
    yield close("z.grad_out", zo, [6, 16])


def mixed_reference(x, v, z):
    """The function of the same name, in double; returns (z, y)."""
    y, z, s = np.zeros((4, 2)), z.copy(), 0.0
    for i in range(4):
        if x[i] > 0:
            p = x[i] * x[i] if i % 2 == 0 else 3 * x[i]
            s += x[i] * x[i + 1] + p * v[i, 1]
        y[i] = v[i] * s
        z[i] += x[i] * z[i]
    return z, y


def mixed_data():
    rng = np.random.default_rng(3)
    x, v, z = rng.random(5) + 0.5, rng.random((4, 2)), rng.random(4)
    x[2] = -x[2]
    return x, v, z


def mixed_fwd():
    x, v, z = mixed_data()
    want_z, want_y = mixed_reference(x, v, z)
    zf, y = z.astype(F), zeros(4, 2)
    yield from go("mixed_fwd", View(x.astype(F)), View(v.astype(F), 1), View(zf), View(y, 1))
    yield close("z", zf, want_z)
    yield close("y", y, want_y)


def mixed_bwd():
    x, v, z = mixed_data()
    rng = np.random.default_rng(4)
    zi, dy = rng.random(4), rng.random((4, 2))

    def loss(a, b, c):
        zz, yy = mixed_reference(a, b, c)
        return (zz * zi).sum() + (yy * dy).sum()

    def numeric(k):
        args = [x, v, z]
        g = np.zeros_like(args[k])
        for at in np.ndindex(*g.shape):
            vals = []
            for step in (1e-6, -1e-6):
                moved = [a.copy() for a in args]
                moved[k][at] += step
                vals.append(loss(*moved))
            g[at] = (vals[0] - vals[1]) / 2e-6
        return g

    dx, dv, zo = zeros(5), zeros(4, 2), zeros(4)
    args = [
        View(x.astype(F), grads=[dx]),
        View(v.astype(F), 1, grads=[dv]),
        View(z.astype(F), grads=[zi.astype(F), zo]),
    ]
    yield from go("mixed_bwd", *args, discard(View(zeros(4, 2), 1, grads=[dy.astype(F)])))
    for name, got, k in (("x", dx, 0), ("v", dv, 1), ("z", zo, 2)):
        yield close(name, got, numeric(k), 1e-4)


def ints_fwd():
    x, y, z = np.array([1, 2, 3], np.int32), np.zeros(3, np.int32), np.array([10, 20, 30], np.int32)
    u, w = np.array([[5, 6, 7]], np.uint32), np.full(4, 100, np.int64)
    yield from go("ints_fwd", View(x), View(y), View(z), View(u), View(w))
    yield close("z", z, [12, 26, 42])
    yield close("y", y, [-1, 26, 42])
    yield close("w", w, [95, 94, 93, 12])


NAMES = """poly_fwd poly_bwd double_bwd linear_fwd linear_bwd linear_bwd_partial rows_fwd rows_bwd ray_bwd smooth_bwd
forms_bwd rank8_bwd rank0_bwd generic_bwd through_bwd mixed_fwd mixed_bwd ints_fwd""".split()

if __name__ == "__main__":
    main({n: (FILE, globals()[n]) for n in NAMES})
