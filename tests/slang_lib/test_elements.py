"""Expected values for elements.slang."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import numpy as np
from harness import HERE, View, close, main, run_cpp, warnings_of

FILE = "elements.slang"
WORK = Path(os.environ.get("SPY_WORK", "work"))
F, H = np.float32, np.float16


def zeros(*s, dtype=F):
    return np.zeros(s, dtype)


def go(entry, *args, threads=1):
    return [warnings_of(run_cpp(HERE / FILE, entry, WORK, args, threads))]


PARTICLE = np.dtype(
    {
        "names": ["position", "weight", "energy", "m", "tail", "id"],
        "formats": [(F, 3), H, np.float64, (F, (2, 3)), (F, 2), np.int32],
        "offsets": [0, 12, 16, 24, 48, 56],
        "itemsize": 64,
    }
)
# Without the integer, but of the same alignment.
PARTICLE_GRAD = np.dtype(
    {
        "names": ["position", "weight", "energy", "m", "tail"],
        "formats": [(F, 3), H, np.float64, (F, (2, 3)), (F, 2)],
        "offsets": [0, 12, 16, 24, 48],
        "itemsize": 56,
    }
)


class Mixed(View):
    """A tensor whose gradient has another element type than the primal."""

    def __init__(self, data, grad):
        super().__init__(data)
        self.grad = grad

    def pack(self):
        return View(self.data).pack() + View(self.grad).pack()


def particle_bwd():
    p, g = np.zeros(2, PARTICLE), np.zeros(2, PARTICLE_GRAD)
    p["position"], p["weight"], p["energy"], p["tail"], p["id"] = [[1, 2, 3], [4, 5, 6]], [0.5, 2], [3, 4], 1, 9
    p["m"] = np.arange(12, dtype=F).reshape(2, 2, 3)
    yield from go("particle_bwd", Mixed(p, g), threads=2)
    want = 2 * p["position"]
    want[:, 1] += p["weight"]
    yield close("position", g["position"], want)
    yield close("weight", g["weight"], p["position"][:, 1])
    yield close("energy", g["energy"], 2 * p["energy"])
    m = np.zeros((2, 2, 3))
    m[:, 0, 0], m[:, 1, 2] = p["m"][:, 1, 2], p["m"][:, 0, 0]
    yield close("m", g["m"], m)
    yield close("tail", g["tail"], [[0, 3], [0, 3]])


def vectors_bwd():
    v = np.arange(6, dtype=F).reshape(2, 3)
    h, d, f = v.astype(H), v.astype(np.float64), np.arange(8, dtype=F).reshape(2, 4)
    gv, gh, gd, gf = (np.zeros_like(a) for a in (v, h, d, f))
    args = [View(a, 1, grads=[g]) for a, g in ((v, gv), (h, gh), (d, gd), (f, gf))]
    yield from go("vectors_bwd", *args, threads=2)
    seed = np.array([1, 2, 3])
    yield close("float3", gv, 2 * v * seed)
    yield close("half3", gh, np.tile(2 * seed, (2, 1)))
    yield close("double3", gd, 2 * v * seed)
    yield close("float4", gf, np.tile([0, 3, 2, 1], (2, 1)))


def blocks_bwd():
    m, a = np.arange(6, dtype=F).reshape(1, 2, 3), np.array([[2, 3, 4]], F)
    h, v = np.ones((1, 3, 3), H), np.ones((1, 2, 2), F)
    gm, ga, gh = (np.zeros_like(x) for x in (m, a, h))
    yield from go("blocks_bwd", View(m, 2, grads=[gm]), View(a, 1, grads=[ga]), View(h, 2, grads=[gh]), View(v, 2))
    yield close("float2x3", gm[0], [[4, 0, 0], [0, 0, 0]] + np.array([[0, 0, 0], [0, 0, 0]]))
    yield close("float[3]", ga, [[4, 0, 2]])
    yield close("half3x3", gh[0], [[0, 0, 0], [0, 0, 0], [0, 4, 0]])


def sample_bwd():
    x, g = np.arange(12, dtype=F).reshape(3, 4), zeros(3, 4)
    x3, g3 = np.repeat(x[..., None], 3, 2).copy(), zeros(3, 4, 3)
    y = zeros(4)
    yield from go("sample_bwd", View(x, grads=[g]), View(x3, 1, grads=[g3]), View(y))
    yield close("sample", y, [8, 3, 4, 12])  # value; clamped corner; d/du = 1 * width, d/dv = 4 * height
    want = zeros(3, 4)
    want[1, 2], want[2, 2] = 0.5, 0.5
    yield close("gradient", g, want)
    yield close("gradient of float3", g3, want[..., None] * np.array([1, 2, 3]))


def once_bwd():
    x, g, u, gu = np.array([1, 2, 3, 4], F), np.full(4, 77, F), np.array([10, 20], F), zeros(2)
    yield from go("once_bwd", View(x, grads=[g]), View(u, grads=[gu]), threads=2)
    yield close("x.grad", g, [3, 3, 10, 10])
    yield close("u.grad", gu, [7, 0])


def scatter_fwd():
    f, h, d, i = zeros(5), zeros(1, 3, dtype=H), zeros(2, 2, dtype=np.float64), zeros(1, dtype=np.int32)
    u, m, a = zeros(1, dtype=np.uint64), zeros(1, 2, 3), zeros(1, 3)
    c = np.zeros(1, np.dtype([("sum", F), ("count", np.int32)]))
    hh = zeros(2, dtype=H)
    args = [View(f), View(h, 1), View(d), View(i), View(u), View(m, 2), View(a, 1), View(c), View(hh, 1)]
    n, workers = 300, 2  # small enough for sums in half to be exact
    todo = [threading.Thread(target=lambda: run_cpp(HERE / FILE, "scatter_fwd", WORK, args, n)) for _ in range(workers)]
    run_cpp(HERE / FILE, "scatter_fwd", WORK, args, 0)  # build once
    for t in todo:
        t.start()
    for t in todo:
        t.join()
    n *= workers
    yield close("float", f, [n, 2 * n, n, n, 2 * n])
    yield close("half3", h, [[n, 2 * n, 3 * n]])
    yield close("double", d, [[0, 0.75 * n], [0, 0]])
    yield close("int", i, [-n])
    yield close("uint64", u, [n << 33])
    yield close("float2x3", m[0], np.arange(1, 7).reshape(2, 3) * n)
    yield close("float[3]", a, [[n, 2 * n, 3 * n]])
    yield close("user's addition", [c["sum"][0], c["count"][0]], [n / 2, n])
    yield close("half2", hh, [n, 2 * n])


def wide_bwd():
    x, g, b, own = np.array([1, 2, 3], H), zeros(3), zeros(1, dtype=H), np.ones(3, H)
    yield from go("wide_bwd", View(x), View(g), View(b), View(own), threads=3)
    yield close("float gradient", g, [2, 4, 6])
    yield close("accumulated", b, [12])
    yield close("added", own, [3, 5, 7])


def far_fwd():
    big, other = np.zeros((3, 2**30), np.int8), np.zeros((3, 2**30), np.int8)
    big[2, -1] = 41
    back = np.arange(4, dtype=F)[::-1]
    flags, y = np.array([False, True]), zeros(3)
    yield from go("far_fwd", View(big), View(other), View(back), View(flags), View(y))
    yield close("far element", other[2, -1], 42)
    yield close("y", y, [3, 1, 2**30 - 1])


NAMES = "particle_bwd vectors_bwd blocks_bwd sample_bwd once_bwd scatter_fwd wide_bwd far_fwd".split()

if __name__ == "__main__":
    main({n: (FILE, globals()[n]) for n in NAMES})
