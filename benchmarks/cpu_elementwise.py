"""The polynomial over many floats on the CPU device, beside np.copyto and NumPy, in one run.

    python benchmarks/cpu_elementwise.py [--elements 16777216] [--seconds 2]

Bandwidth counts one read and one write of each element. Inputs are random, outputs are poisoned before every variant
and checked after it. Prints the median of calls that alternate between the variants, so that all see the same machine.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable

import numpy as np

import slangpy as spy

SOURCE = """
float polynomial(float a, float b, float c, float x)
{
    return a * x * x + b * x + c;
}
"""


def machine() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            name = next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        name = "unknown processor"
    return f"{name}, {len(os.sched_getaffinity(0))} of {os.cpu_count()} cores"


def measure(variants: dict[str, Callable[[], object]], seconds: float) -> dict[str, float]:
    """Median seconds of each variant."""
    times: dict[str, list[float]] = {name: [] for name in variants}
    for call in variants.values():
        call()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times[next(iter(times))]) < 5:
        for name, call in variants.items():
            start = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--elements", type=int, default=1 << 24)
    parser.add_argument("--seconds", type=float, default=2.0, help="of measuring, for each variant")
    options = parser.parse_args()

    x = np.random.default_rng().standard_normal(options.elements, dtype=np.float32)
    expected = np.float32(2) * x * x + np.float32(8) * x + np.float32(-1)
    device = spy.create_device(type=spy.DeviceType.cpu)
    polynomial = spy.Module.load_from_source(device, "cpu_elementwise", SOURCE).polynomial
    inputs = spy.Tensor.from_numpy(device, x)
    outputs = spy.Tensor.empty_like(inputs)
    array = np.empty_like(x)

    def with_tensors() -> None:
        polynomial(2.0, 8.0, -1.0, inputs, _result=outputs)
        device.wait()

    variants: dict[str, Callable[[], object]] = {
        "np.copyto": lambda: np.copyto(array, x),
        "NumPy": lambda: 2 * x * x + 8 * x - 1,
        "slangpy, arrays": lambda: polynomial(2.0, 8.0, -1.0, x, _result=array),
        "slangpy, Tensor": with_tensors,
    }
    for name, result in (("slangpy, arrays", lambda: array), ("slangpy, Tensor", outputs.to_numpy)):
        array.fill(np.nan)
        outputs.copy_from_numpy(array)
        variants[name]()
        np.testing.assert_allclose(result(), expected, rtol=1e-5, atol=1e-5, err_msg=name)

    medians = measure(variants, options.seconds * len(variants))
    copy = medians["np.copyto"]
    print(f"{machine()}; {options.elements} float32")
    print("variant              ms      GB/s   of np.copyto")
    for name, seconds in medians.items():
        print(f"{name:16} {seconds * 1e3:7.2f}   {8 * options.elements / seconds / 1e9:7.2f}   {copy / seconds:12.2f}")


if __name__ == "__main__":
    main()
