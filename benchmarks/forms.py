"""What kernels gain whose threads handle several invocations: programs of `python -m benchmarks`, and three more, with these
kernels and with plain ones, in turn on one device. Times are the device's own (device.profile()).

    python benchmarks/forms.py [--device cuda] [--counts 26] [--only stencil,transposed-2-d] [--each 2,4,8]

`each`: invocations of one thread, of functions that pick elements in calls of one dimension. Here all of them may have several,
and calls of any size. Plans are made anew: run it with SLANGPY_DISABLE_CACHE=1, since plans on disk do not tell the forms
apart. Results are compared with NumPy float64.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np

import slangpy as spy
from benchmarks.programs import Bench, Program, error_of, programs
from slangpy.plan.emit import variants

NEVER = 1 << 62
NAMES = "elementwise,rows,indirect,sixteen,gather,stencil,blur,product,escape,transposed-2-d,permuted-4-d,strided-2-d"
SOURCE = """
import slangpy;
float blur(int2 at, Tensor<float, 2> x)
{
    int2 last = int2(x.shape[1], x.shape[0]) - 1;
    float sum = 0;
    for (int dy = -2; dy <= 2; dy++)
        for (int dx = -2; dx <= 2; dx++)
            sum += x[clamp(at.y + dy, 0, last.y), clamp(at.x + dx, 0, last.x)];
    return sum / 25;
}
float product(int2 at, Tensor<float, 2> a, Tensor<float, 2> b)
{
    float sum = 0;
    for (int k = 0; k < a.shape[1]; k++)
        sum += a[at.y, k] * b[k, at.x];
    return sum;
}
// iterations until z leaves a circle, as a color: neighbours take different times
float escape(int2 at, Tensor<float, 1> colors, float step)
{
    float2 c = at * step - float2(2.0, 1.25), z = 0;
    int n = 0;
    while (n < 63 && dot(z, z) < 4)
    {
        z = float2(z.x * z.x - z.y * z.y, 2 * z.x * z.y) + c;
        n++;
    }
    return colors[n];
}
"""


def blur(b: Bench) -> Program:
    side = int(b.count**0.5)
    values = b.random(side, side)
    x, y, grid = b.tensor(values), b.poisoned((side, side)), spy.grid((side, side))
    module = spy.Module.load_from_source(b.device, "form_programs", SOURCE)
    padded = np.pad(values.astype(np.float64), 2, mode="edge")
    expected = sum(padded[i : i + side, j : j + side] for i in range(5) for j in range(5)) / 25
    return Program("blur", 0, {"slangpy": lambda: module.blur(grid, x, _result=y)}, lambda: error_of(y, np.asarray(expected)))


def product(b: Bench) -> Program:
    side = int(b.count**0.5)
    left, right = b.random(side, 64), b.random(64, side)
    a, c, y, grid = b.tensor(left), b.tensor(right), b.poisoned((side, side)), spy.grid((side, side))
    module = spy.Module.load_from_source(b.device, "form_programs", SOURCE)
    call = {"slangpy": lambda: module.product(grid, a, c, _result=y)}
    return Program("product", 0, call, lambda: error_of(y, left.astype(np.float64) @ right))


def escape(b: Bench) -> Program:
    side = int(b.count**0.5)
    colors, y, grid = b.random(64), b.poisoned((side, side)), spy.grid((side, side))
    table, step = b.tensor(colors), 2.5 / side
    module = spy.Module.load_from_source(b.device, "form_programs", SOURCE)

    def error() -> float:
        """The part of wrong elements: on the border rounding decides."""
        axis = np.arange(side) * step
        c: Any = axis[None] - 2.0 + 1j * (axis[:, None] - 1.25)
        z: Any = np.zeros_like(c)
        n = np.zeros(c.shape, int)
        for _ in range(63):
            inside = z.real**2 + z.imag**2 < 4
            n += inside
            z = np.where(inside, z * z + c, z)
        return float(np.mean(y.to_numpy() != colors[n]))

    call = {"slangpy": lambda: module.escape(grid, table, step, _result=y)}
    return Program("escape", 0, call, error, tolerance=0.02)


OWN: dict[str, Callable[[Bench], Program]] = {"blur": blur, "product": product, "escape": escape}


def made(device: spy.Device, name: str, count: int, seed: int, several: int) -> Program:
    """A program that has been called once, with kernels for `several` invocations of a thread (1: plain ones)."""
    names = ("PATCH_LEAST", "PICKS_LEAST", "_MANY_TENSORS", "_SPREAD")
    before = [getattr(variants, known) for known in names]
    for known, value in zip(names, (1, 1, 1, several) if several > 1 else (NEVER, NEVER, 1, 1), strict=True):
        setattr(variants, known, value)
    try:
        bench = Bench(device, None, None, count, np.random.default_rng(seed))
        program = {**programs(bench), **OWN}[name](bench)
        program.calls["slangpy"]()
        device.wait()
    finally:
        for known, value in zip(names, before, strict=True):
            setattr(variants, known, value)
    error = program.check()
    assert error <= program.tolerance, (name, several, error)
    return program


def kernel_time(device: spy.Device, call: Callable[[], Any]) -> float:
    """Median seconds of a call's kernel."""
    for _ in range(20):
        call()
    with device.profile() as profile:
        for _ in range(40):
            call()
    return median(event.duration for event in profile.events)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--counts", default="26", help="powers of two: elements of each program")
    parser.add_argument("--only", default=NAMES)
    parser.add_argument("--each", default="4")
    options = parser.parse_args()
    names = options.only.split(",")
    if unknown := [name for name in names if name not in NAMES.split(",")]:
        parser.error(f"--only: there is no program {', '.join(unknown)}; there are: {NAMES}")
    if os.environ.get("SLANGPY_DISABLE_CACHE") != "1":
        parser.error("set SLANGPY_DISABLE_CACHE=1: plans on disk do not tell the forms apart")
    device = spy.create_device(spy.DeviceType[options.device])
    forms = [1, *(int(each) for each in options.each.split(","))]
    print(f"{device.info.adapter_name}; microseconds, least of three rounds")
    print(f"{'program':24}{'elements':>10}" + "".join(f"{'plain' if form == 1 else f'{form} each':>10}" for form in forms))
    for name in names:
        for count in options.counts.split(","):
            found = [made(device, name, 1 << int(count), 1, form) for form in forms]
            rounds = [[kernel_time(device, program.calls["slangpy"]) for program in found] for _ in range(3)]
            times = [min(times) * 1e6 for times in zip(*rounds, strict=True)]
            print(f"{name:24}{f'2^{count}':>10}" + "".join(f"{time:10.1f}" for time in times), flush=True)


if __name__ == "__main__":
    main()
