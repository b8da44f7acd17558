"""Loops whose end differs by invocation on the CPU: this package with lanes and without, numba and Dr.Jit where they are.

    python benchmarks/cpu_divergent.py [--size 768] [--rounds 20] [--threads 1]

Processor time of the process in milliseconds (other work on the machine counts less than on the clock), the least of all
rounds; the ways take turns in each round. `DRJIT_LIBLLVM_PATH` names LLVM for Dr.Jit. Results are compared: those with lanes
to the last bit.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import slangpy as spy
from slangpy.config import config

SOURCE = Path(__file__).with_name("divergent.slang").read_text()
STEPS = {
    "mandelbrot": 200, "march": 64, "escape": 200, "shade": 64, "walk": 50, "skewed": 20, "collatz": 100, "gcd": 1, "newton": 30,
    "bisect": 30, "few": 20, "wide": 100, "dots": 60, "hashes": 60, "polynomial": 1, "sines": 1,
}  # fmt: skip
"""The last two have no loop that ends at different times; `walk` and `gcd` do too little for all elements at once."""
RESULTS = {"mandelbrot": "int", "collatz": "int", "gcd": "int", "hashes": "uint"}


def mandelbrot(x: Any, y: Any, most: int, out: Any) -> None:
    """As numba compiles it, without fast arithmetic."""
    for k in range(x.size):
        a, b, i = np.float32(0), np.float32(0), 0
        while i < most:
            a, b = a * a - b * b + x[k], np.float32(2) * a * b + y[k]
            if a * a + b * b > np.float32(4):
                break
            i += 1
        out[k] = i


def in_drjit(x: np.ndarray, y: np.ndarray, most: int) -> Callable[[], Any]:
    """Mandelbrot in Dr.Jit's LLVM backend; wants `drjit.llvm`."""
    dr, llvm = importlib.import_module("drjit"), importlib.import_module("drjit.llvm")
    cx, cy = llvm.Float(x), llvm.Float(y)

    def step(i: Any, a: Any, b: Any, left: Any) -> tuple[Any, ...]:
        a, b = a * a - b * b + cx, 2 * a * b + cy
        out = a * a + b * b > 4
        return dr.select(out, i, i + 1), a, b, left & ~out

    def run() -> Any:
        zero = dr.zeros(llvm.Float, x.size)
        first = (dr.zeros(llvm.Int, x.size), zero, zero, dr.full(llvm.Bool, True, x.size))
        found = dr.while_loop(first, lambda i, a, b, left: left & (i < most), step)[0]
        dr.eval(found)
        dr.sync_thread()
        return found

    return run


def called(function: Any, points: Any, most: int, others: tuple[Any, ...], out: Any) -> Any:
    function(points, most, *others, _result=out)
    return out.to_numpy()


def others(device: spy.Device) -> dict[str, tuple[Any, ...]]:
    """What some functions take besides points and steps."""
    table = spy.Tensor.from_numpy(device, np.sin(np.arange(1024, dtype=np.float32)))
    picture = device.create_texture(
        type=spy.TextureType.texture_2d, width=8, height=8, format=spy.Format.rgba32_float,
        usage=spy.TextureUsage.shader_resource, data=np.random.default_rng(1).random((8, 8, 4), np.float32),
    )  # fmt: skip
    return {"walk": (table,), "shade": (picture, device.create_sampler())}


def ways(points: np.ndarray, threads: int) -> dict[str, dict[str, Callable[[], Any]]]:
    """By function and way."""
    found: dict[str, dict[str, Callable[[], Any]]] = {name: {} for name in STEPS}
    for lanes in (False, True):
        config.cpu_lanes = lanes
        device = spy.Device(type=spy.DeviceType.cpu)
        module = spy.Module.load_from_source(device, "cpu_divergent", SOURCE)
        given = spy.Tensor.empty(device, points.shape[:1], "float2")
        given.copy_from_numpy(points)
        more = others(device)
        for name, most in STEPS.items():
            out = spy.Tensor.empty(device, points.shape[:1], RESULTS.get(name, "float"))
            run = partial(called, getattr(module, name), given, most, more.get(name, ()), out)
            run()  # compiles
            found[name]["lanes" if lanes else "without"] = run
    x, y = np.ascontiguousarray(points[:, 0]), np.ascontiguousarray(points[:, 1])
    if importlib.util.find_spec("numba") is not None and threads == 1:
        compiled, out = importlib.import_module("numba").njit(mandelbrot), np.zeros(x.size, np.int32)
        found["mandelbrot"]["numba"] = lambda: (compiled(x, y, 200, out), out)[1]
    if importlib.util.find_spec("drjit") is not None:
        importlib.import_module("drjit").set_thread_count(threads)
        found["mandelbrot"]["Dr.Jit"] = in_drjit(x, y, 200)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=768)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    config.cpu_threads = given.threads
    y, x = np.meshgrid(np.linspace(-1.5, 1.5, given.size), np.linspace(-2, 1, given.size), indexing="ij")
    points = np.stack([x.ravel(), y.ravel()], -1).astype(np.float32)
    for name, runs in ways(points, given.threads).items():
        results = {way: np.array(run()) for way, run in runs.items()}
        assert results["without"].tobytes() == results["lanes"].tobytes(), name
        best = dict.fromkeys(runs, np.inf)
        for _ in range(given.rounds):
            for way, run in runs.items():
                start = time.process_time()
                run()
                best[way] = min(best[way], time.process_time() - start)
        equal = [f"{way}: {np.mean(r == results['lanes']):.4f} equal" for way, r in results.items() if way not in ("lanes", "without")]
        print(f"{name:12}", *(f"{way} {1e3 * t:7.2f} ms" for way, t in best.items()),
              f"{best['without'] / best['lanes']:.2f} times as fast", *equal, sep="  ")


if __name__ == "__main__":
    main()
