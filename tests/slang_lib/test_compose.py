"""Expected values for compose.slang."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from harness import HERE, View, close, main, run_cpp, warnings_of

FILE = "compose.slang"
WORK = Path(os.environ.get("SPY_WORK", "work"))


def f(*v):
    return np.array(v, np.float32)


def go(entry, *args, threads=1):
    return [warnings_of(run_cpp(HERE / FILE, entry, WORK, args, threads))]


def helpers_bwd():
    a, b, z, c = f(1, 2), f(3, 4), f(5, 6), f(7, 8)
    ga, gb, zi, zo = f(0, 0), f(0, 0), f(1, 2), f(0, 0)
    yield from go("helpers_bwd", View(a, grads=[ga]), View(b, grads=[gb]), View(z, grads=[zi, zo]), View(c), threads=2)
    yield close("a", ga, 2 * a * c)
    yield close("b", gb, 2 * b * c)
    yield close("z", zo, zi * c)


def table_bwd():
    a, g = f(1, 2, 4), f(0, 0, 0)  # (1.5) * (3): d/da = 1.5 of 3 each, and so on
    yield from go("table_bwd", View(a, grads=[g]))
    yield close("values", g, [1.5, 1.5 + 0.75, 0.75])


def network_bwd():
    # hidden = relu(W x + b); result = relu(W hidden + b)[1] + x[0]. Reads of hidden add to its grad_out;
    # what was stored there takes its seed from grad_in, which the caller owns.
    w, b, x = f([1, 2], [3, 4]), f(0.5, 0.25), f(1, 2)
    gw, gb, gx, hi, ho = np.zeros((2, 2), np.float32), f(0, 0), f(0, 0), f(10, 20), f(0, 0)
    hidden = f(0, 0)
    args = View(w, grads=[gw]), View(b, grads=[gb]), View(x, grads=[gx]), View(hidden, grads=[hi, ho])
    yield from go("network_bwd", *args)
    h = w @ x + b
    yield close("hidden", hidden, h)
    yield close("hidden.grad_out", ho, [3, 4])
    yield close("x.grad", gx, w.T @ hi + [1, 0])
    yield close("w.grad", gw, np.outer(hi, x) + np.outer([0, 1], h))
    yield close("b.grad", gb, hi + [0, 1])


def swizzle_bwd():
    v, y = f([1, 2, 3]), f([4, 5, 6])
    gv, yi, yo = np.zeros((1, 3), np.float32), f([1, 1, 1]), np.zeros((1, 3), np.float32)
    yield from go("swizzle_bwd", View(v, 1, grads=[gv]), View(y, 1, grads=[yi, yo]))
    yield close("v", gv, [[6, 4 + 4, 2]])
    yield close("y", yo, [[2, 1, 1]])


NAMES = "helpers_bwd table_bwd network_bwd swizzle_bwd".split()

if __name__ == "__main__":
    main({n: (FILE, globals()[n]) for n in NAMES})
