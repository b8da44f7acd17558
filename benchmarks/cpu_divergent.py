"""Loops whose end differs by invocation on the CPU: this package with lanes and without, and numba, Dr.Jit and Vulkan's CPU
driver (lavapipe) where they are.

    python benchmarks/cpu_divergent.py [--size 768] [--rounds 12] [--threads 1] [--only march,shade] [--keep "2 cores ..."]

Processor time of the process in milliseconds (other work on the machine counts less than on the clock), the least of all
rounds; the ways take turns in each round. `DRJIT_LIBLLVM_PATH` names LLVM for Dr.Jit (16 and later). Results are compared: those
with lanes to the last bit. --keep puts the rows that have peers into benchmarks/results/cpu.json; its value names the machine.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import slangpy as spy
from slangpy.config import config

HERE = Path(__file__).parent
SOURCE = (HERE / "divergent.slang").read_text()
KEPT = HERE / "results" / "cpu.json"
STEPS = {
    "mandelbrot": 200, "march": 64, "escape": 200, "shade": 64, "bumps": 64, "iterated.bwds": 20, "walk": 50, "lookup": 60, "waves": 48,
    "fog": 48, "heights": 64, "skewed": 20, "collatz": 100, "gcd": 1, "newton": 30, "bisect": 30, "few": 20, "wide": 100,
    "dots": 60, "hashes": 60, "polynomial": 1, "sines": 1,
}  # fmt: skip
"""The last two have no loop that ends at different times; `walk` and `gcd` do too little for all elements at once."""
RESULTS = {"mandelbrot": "int", "collatz": "int", "gcd": "int", "hashes": "uint"}
TITLES = {
    "mandelbrot": "Mandelbrot set, 200 steps", "march": "ray marching of a distance field, 64 steps",
    "escape": "escape loop with inner branches", "shade": "sphere tracer of 64 steps with textures",
    "bumps": "sphere tracer that samples a texture at each of 64 steps", "iterated.bwds": "gradient of an escape loop, 20 steps",
}  # fmt: skip
"""What --keep names the rows that have peers."""
PICTURE = np.random.default_rng(1).random((8, 8, 4), np.float32)
OURS = ("lanes", "without")
LEAST = 0.05
"""Seconds that are measured at once."""
Run = Callable[[], Any]


def called(function: Any, points: Any, most: int, others: tuple[Any, ...], out: Any) -> Any:
    function(points, most, *others, _result=out)
    return out.to_numpy()


def differentiated(function: Any, x: Any, most: int, y: Any) -> Any:
    x.grad.clear()
    function.bwds(x, most, _result=y)
    return x.grad.to_numpy()


def others(device: spy.Device) -> dict[str, tuple[Any, ...]]:
    """What some functions take besides points and steps."""
    table = spy.Tensor.from_numpy(device, np.sin(np.arange(1024, dtype=np.float32)))
    usage = spy.TextureUsage.shader_resource
    picture = device.create_texture(
        type=spy.TextureType.texture_2d, width=8, height=8, format=spy.Format.rgba32_float, usage=usage, data=PICTURE,
    )  # fmt: skip
    data = np.random.default_rng(2).random((64, 64), np.float32)
    heights = device.create_texture(
        type=spy.TextureType.texture_2d, width=64, height=64, format=spy.Format.r32_float, usage=usage, data=data,
    )  # fmt: skip
    sampler = device.create_sampler()
    return {"walk": (table,), "lookup": (table,), "shade": (picture, sampler), "bumps": (picture, sampler), "heights": (heights, sampler)}


def ours(kind: spy.DeviceType, points: np.ndarray, steps: dict[str, int]) -> dict[str, Run]:
    """By function."""
    device = spy.Device(type=kind)
    module = spy.Module.load_from_source(device, "cpu_divergent", SOURCE)
    given = spy.Tensor.empty(device, points.shape[:1], "float2")
    given.copy_from_numpy(points)
    more, found = others(device), {}
    for name, most in steps.items():
        if name.endswith(".bwds"):
            x = spy.Tensor.from_numpy(device, np.ascontiguousarray(points[:, 0])).with_grads()
            y = spy.Tensor.empty(device, points.shape[:1], "float").with_grads()
            y.grad.copy_from_numpy(np.ones(points.shape[0], np.float32))
            found[name] = partial(differentiated, getattr(module, name.split(".")[0]), x, most, y)
        else:
            out = spy.Tensor.empty(device, points.shape[:1], RESULTS.get(name, "float"))
            found[name] = partial(called, getattr(module, name), given, most, more.get(name, ()), out)
        found[name]()  # compiles
    return found


def ways(points: np.ndarray, threads: int, names: list[str]) -> dict[str, dict[str, Run]]:
    """By function and way."""
    steps, sides = {name: STEPS[name] for name in names}, dict[str, dict[str, Run]]()
    for way, lanes in (("without", False), ("lanes", True)):
        config.cpu_lanes = lanes
        sides[way] = ours(spy.DeviceType.cpu, points, steps)
    if importlib.util.find_spec("numba") is not None and threads == 1:
        sides["numba"] = importlib.import_module("divergent_numba").runs(points, STEPS)
    if importlib.util.find_spec("drjit") is not None:
        sides["Dr.Jit"] = importlib.import_module("divergent_drjit").runs(points, STEPS, PICTURE, threads)
    peers = {name: most for name, most in steps.items() if name in TITLES}
    if any("llvmpipe" in adapter.name for adapter in spy.Device.enumerate_adapters(spy.DeviceType.vulkan)):
        os.environ["LP_NUM_THREADS"] = str(threads)
        sides["lavapipe"] = ours(spy.DeviceType.vulkan, points, peers)
    return {name: {way: runs[name] for way, runs in sides.items() if name in runs} for name in steps}


def measured(runs: dict[str, Run], rounds: int) -> dict[str, float]:
    """Seconds of processor time by way."""
    calls = {way: 1 + int(LEAST / timed(run, 5)) for way, run in runs.items()}
    best = dict.fromkeys(runs, np.inf)
    for _ in range(rounds):
        for way, run in runs.items():
            best[way] = min(best[way], timed(run, calls[way]))
    return best


def timed(run: Run, calls: int) -> float:
    """The mean of some calls: of a thread that is running elsewhere, systems count the last milliseconds later."""
    start = time.process_time()
    for _ in range(calls):
        run()
    return max((time.process_time() - start) / calls, 1e-6)


def keep(rows: dict[str, dict[str, float]], threads: int, machine: str) -> None:
    """In place of rows of the same programs, where the first of this script stands; of one thread first."""
    count = "one thread" if threads == 1 else f"{threads} threads' processor time"
    made = [
        {"script": "benchmarks/cpu_divergent.py", "program": f"{TITLES[name]}, {count}", "microseconds": round(1e6 * best["lanes"]),
         "peers": {"without lanes" if way == "without" else way: round(1e6 * t) for way, t in best.items() if way != "lanes"}}
        for name, best in rows.items() if name in TITLES
    ]  # fmt: skip
    run = json.loads(KEPT.read_text())
    rows_before, script, titles = run["rows"], made[0]["script"], {row["program"] for row in made}
    at = next(i for i, row in enumerate(rows_before) if row["script"] == script)
    own = [row for row in rows_before if row["script"] == script and row["program"] not in titles] + made
    own.sort(key=lambda row: not row["program"].endswith("one thread"))
    others = [row for row in rows_before if row["script"] != script]
    run["rows"] = [*others[:at], *own, *others[at:]]
    run["machine"] = machine
    KEPT.write_text(json.dumps(run, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=768)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", help="names of functions, with commas")
    parser.add_argument("--keep", metavar="MACHINE", help="write the rows that have peers")
    given = parser.parse_args()
    names = given.only.split(",") if given.only else list(STEPS)
    if unknown := [name for name in names if name not in STEPS]:
        parser.error(f"--only: there is no function {', '.join(unknown)}; there are: {', '.join(STEPS)}")
    config.cpu_threads = given.threads
    y, x = np.meshgrid(np.linspace(-1.5, 1.5, given.size), np.linspace(-2, 1, given.size), indexing="ij")
    points = np.stack([x.ravel(), y.ravel()], -1).astype(np.float32)
    rows = {}
    for name, runs in ways(points, given.threads, names).items():
        results = {way: np.array(run()) for way, run in runs.items()}
        assert results["without"].tobytes() == results["lanes"].tobytes(), name
        best = rows[name] = measured(runs, given.rounds)
        equal = [f"{way} {np.mean(np.isclose(r, results['lanes'], 1e-4)):.4f}" for way, r in results.items() if way not in OURS]
        print(f"{name:12}", *(f"{way} {1e3 * t:7.2f} ms" for way, t in best.items()),
              f"{best['without'] / best['lanes']:.2f} times as fast", *["alike:"] * bool(equal), *equal, sep="  ", flush=True)  # fmt: skip
    if given.keep:
        keep(rows, given.threads, given.keep)


if __name__ == "__main__":
    main()
