"""Functional calls on a GPU device beside a plain device-to-device copy and an empty launch, in one run.

    python benchmarks/gpu_calls.py [cuda|vulkan|d3d12|cpu] [--bits 28]

Arrays have 2^bits elements; one of 2^27 floats is the most that a d3d12 device over libvkd3d takes.

Prints a table last. Inputs are fresh random numbers, outputs are poisoned and compared with NumPy float64.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

import slangpy as spy

SOURCE = """
[Differentiable] float polynomial(float a, float b, float c, float x) { return a * x * x + b * x + c; }
float3 scale3(float3 v, float3 w, float s) { return v * s + w; }
[shader("compute")] [numthreads(1, 1, 1)] void nothing() {}
"""


def timed(device: spy.Device, function, repeats: int = 20) -> float:
    """Median seconds of one call, waiting for the device around each batch of 20: a wait takes some 100 us.

    A GPU that has idled needs some 100 ms of work before its clocks are up.
    """
    start = time.perf_counter()
    while time.perf_counter() - start < 0.3:
        function()
        device.wait()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        for _ in range(20):
            function()
        device.wait()
        times.append((time.perf_counter() - start) / 20)
    return float(np.median(times))


def overhead(device: spy.Device, function, count: int = 5000) -> float:
    """Microseconds of one asynchronous call."""
    function()
    device.wait()
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(count):
            function()
        best = min(best, (time.perf_counter() - start) / count)
        device.wait()
    return best * 1e6


def empty_launch() -> Callable[[], None] | None:
    """A launch without our code, where CuPy is installed."""
    try:
        import cupy  # pyright: ignore[reportMissingImports]
    except ImportError:
        return None
    kernel = cupy.RawKernel('extern "C" __global__ void nothing() {}', "nothing")
    return lambda: kernel((1,), (1,), ())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("device", nargs="?", default="cuda", choices=["cuda", "vulkan", "d3d12", "cpu"])
    parser.add_argument("--bits", type=int, default=28)
    options = parser.parse_args()
    name = options.device
    device = spy.create_device(spy.DeviceType[name])
    module = spy.Module.load_from_source(device, "gpu_calls", SOURCE)
    rng = np.random.default_rng()
    rows: list[tuple[str, str]] = [("device", device.info.adapter_name)]

    count = 1 << options.bits
    chunk = rng.random(min(count, 1 << 26), dtype=np.float32)
    x = spy.Tensor.from_numpy(device, np.tile(chunk, count // chunk.size))
    y = spy.Tensor.empty(device, (count,), "float")
    y.storage.copy_from_numpy(np.full(1024, 0xFF, np.uint8))

    def copy() -> None:
        encoder = device.create_command_encoder()
        encoder.copy_buffer(y.storage, 0, x.storage, 0, count * 4)
        device.submit_command_buffer(encoder.finish())

    copied = timed(device, copy)
    bandwidth = 2 * count * 4 / copied / 1e9
    rows.append((f"copy, {count} float32", f"{bandwidth:.0f} GB/s"))
    polynomial = module.polynomial
    seconds = timed(device, lambda: polynomial(2.0, 8.0, -1.0, x, _result=y))
    got = y[: chunk.size].to_numpy()
    reference = 2.0 * chunk.astype(np.float64) ** 2 + 8.0 * chunk - 1.0
    error = np.abs(got - reference).max()
    assert error < 1e-5, error
    rows.append(
        (f"polynomial, {count} float32", f"{2 * count * 4 / seconds / 1e9:.0f} GB/s, {copied / seconds:.3f} of copy")
    )
    del x, y

    count = 1 << (options.bits - 3)
    data = rng.random((count, 3), dtype=np.float32)
    v = spy.Tensor.from_numpy(device, data, target_slang_dtype="float3")
    w = spy.Tensor.from_numpy(device, data[::-1].copy(), target_slang_dtype="float3")
    out = spy.Tensor.empty(device, (count,), "float3")
    seconds = timed(device, lambda: module.scale3(v, w, 1.5, _result=out))  # noqa: F821 (deleted below, after the last use)
    error = np.abs(out.to_numpy() - (data.astype(np.float64) * 1.5 + data[::-1])).max()
    assert error < 1e-5, error
    rate = 36 * count / seconds / 1e9
    rows.append((f"float3 function, {count} rows of 36 bytes", f"{rate:.0f} GB/s, {rate / bandwidth:.3f} of copy"))
    del v, w, out

    x = spy.Tensor.from_numpy(device, np.arange(1, 5, dtype=np.float32))
    y = spy.Tensor.empty(device, (4,), "float")
    rows.append(
        ("warm call, result given", f"{overhead(device, lambda: polynomial(2.0, 8.0, -1.0, x, _result=y)):.2f} us")
    )
    rows.append(
        ("warm call, keywords", f"{overhead(device, lambda: polynomial(a=2.0, b=8.0, c=-1.0, x=x, _result=y)):.2f} us")
    )
    rows.append(("warm call, result allocated", f"{overhead(device, lambda: polynomial(2.0, 8.0, -1.0, x)):.2f} us"))
    slang_module = device.load_module_from_source(
        "gpu_calls_empty", '[shader("compute")] [numthreads(1,1,1)] void nothing() {}'
    )
    kernel = device.create_compute_kernel(device.link_program([slang_module], [slang_module.entry_point("nothing")]))
    rows.append(("empty kernel through dispatch", f"{overhead(device, lambda: kernel.dispatch([1, 1, 1])):.2f} us"))
    if name == "cuda" and (empty := empty_launch()):
        rows.append(("empty kernel launched through CuPy", f"{overhead(device, empty):.2f} us"))
    assert np.array_equal(y.to_numpy(), np.array([9, 23, 41, 63], np.float32)), y.to_numpy()

    print()
    for label, figure in rows:
        print(f"{label:48} {figure}")


if __name__ == "__main__":
    main()
