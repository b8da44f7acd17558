"""What kernels gain whose threads handle several invocations: programs of `python -m benchmarks` with these kernels and with
plain ones, in turn on one device.

    python benchmarks/forms.py [--device cuda] [--count 26] [--only stencil,transposed-2-d] [--each 2,4,8]

`each`: invocations of one thread, of functions that pick elements in calls of one dimension. Plans are made anew: run it with
SLANGPY_DISABLE_CACHE=1, since plans on disk do not tell the forms apart. Results are compared with NumPy float64.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np

import slangpy as spy
from benchmarks.gpu_calls import timed
from benchmarks.programs import Bench, Program, programs
from slangpy.plan.emit import variants

NEVER = 1 << 62
NAMES = "elementwise,rows,indirect,sixteen,gather,stencil,transposed-2-d,permuted-4-d,strided-2-d,broadcast-2-d"


def made(device: spy.Device, name: str, count: int, seed: int, several: int) -> Program:
    """A program that has been called once, with kernels for `several` invocations of a thread (1: plain ones)."""
    patches, picks = (variants.PATCH_LEAST, variants.PICKS_LEAST) if several > 1 else (NEVER, NEVER)
    before = variants.PATCH_LEAST, variants.PICKS_LEAST, variants._SPREAD
    variants.PATCH_LEAST, variants.PICKS_LEAST, variants._SPREAD = patches, picks, several
    try:
        bench = Bench(device, None, None, count, np.random.default_rng(seed))
        program = programs(bench)[name](bench)
        program.calls["slangpy"]()
        device.wait()
    finally:
        variants.PATCH_LEAST, variants.PICKS_LEAST, variants._SPREAD = before
    error = program.check()
    assert error <= program.tolerance, (name, several, error)
    return program


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--count", type=int, default=26, help="elements: a power of two")
    parser.add_argument("--only", default=NAMES)
    parser.add_argument("--each", default="2,4,8")
    options = parser.parse_args()
    if os.environ.get("SLANGPY_DISABLE_CACHE") != "1":
        parser.error("set SLANGPY_DISABLE_CACHE=1: plans on disk do not tell the forms apart")
    device = spy.create_device(spy.DeviceType[options.device])
    forms = [1, *(int(each) for each in options.each.split(","))]
    print(f"{device.info.adapter_name}; microseconds, least of three rounds")
    print(f"{'program':32}" + "".join(f"{'plain' if form == 1 else f'{form} each':>10}" for form in forms))
    for name in options.only.split(","):
        found = [made(device, name, 1 << options.count, 1, form) for form in forms]
        calls: list[Callable[[], object]] = [program.calls["slangpy"] for program in found]
        rounds = [[timed(device, call, 5) for call in calls] for _ in range(3)]
        least = [min(times) * 1e6 for times in zip(*rounds, strict=True)]
        print(f"{name:32}" + "".join(f"{time:10.1f}" for time in least), flush=True)


if __name__ == "__main__":
    main()
