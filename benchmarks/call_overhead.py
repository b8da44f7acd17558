"""What one warm call costs besides its kernel: four elements, arguments of each kind, and lists of 1 to 64 of them.

    python benchmarks/call_overhead.py [--device cpu|vulkan|cuda] [--calls 2000]

Prints microseconds, the median and the 90th percentile of blocks of 20 calls, beside np.multiply(out=) of the same
size. Calls are not waited for one by one; the device is drained after each block, inside the measured time.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import time
from collections.abc import Callable

import numpy as np

import slangpy as spy

SOURCE = """
[Differentiable]
float add(float a, float b) { return a + b; }
float3 shift(float3 v, float s) { return v + s; }
struct Pair { float a; float b; }
float total<let N : int>(Tensor<float, 1> xs[N]) { float sum = 0; for (int i = 0; i < N; i++) sum += xs[i][0]; return sum; }
float fields<let N : int>(Pair xs[N]) { float sum = 0; for (int i = 0; i < N; i++) sum += xs[i].a * xs[i].b; return sum; }
"""
LENGTHS = (1, 4, 16, 64)
BLOCK = 20


def measure(call: Callable[[], object], drain: Callable[[], object], calls: int) -> tuple[float, float]:
    """Median and 90th percentile of one call, in microseconds."""
    for _ in range(3):
        call()
    drain()
    times = []
    for _ in range(max(calls // BLOCK, 5)):
        start = time.perf_counter()
        for _ in range(BLOCK):
            call()
        drain()
        times.append((time.perf_counter() - start) / BLOCK * 1e6)
    return float(np.median(times)), float(np.percentile(times, 90))


def list_calls(device: spy.Device, module: spy.Module) -> dict[str, Callable[[], object]]:
    """Calls with a list of tensors or of dicts, by its length."""

    def call(function: spy.FunctionNode, items: list[object]) -> Callable[[], object]:
        return lambda: function(items)

    found: dict[str, Callable[[], object]] = {}
    for n in LENGTHS:
        found[f"total([Tensor] * {n})"] = call(module.total, [spy.Tensor.zeros(device, (4,), "float") for _ in range(n)])
    for n in LENGTHS if importlib.util.find_spec("torch") else ():
        torch = importlib.import_module("torch")
        place = device.torch_device
        found[f"total([torch tensor] * {n})"] = call(module.total, [torch.zeros(4, device=place) for _ in range(n)])
    for n in LENGTHS:
        found[f"fields([dict] * {n})"] = call(module.fields, [{"_type": "Pair", "a": float(i), "b": 2.0} for i in range(n)])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", choices=["cpu", "vulkan", "cuda"])
    parser.add_argument("--calls", type=int, default=2000)
    options = parser.parse_args()

    device = spy.create_device(type=spy.DeviceType[options.device])
    module = spy.Module.load_from_source(device, "call_overhead", SOURCE)
    x = np.random.default_rng().standard_normal(4, dtype=np.float32)
    y = np.empty_like(x)
    tensor, out = spy.Tensor.from_numpy(device, x), spy.Tensor.from_numpy(device, y)
    rows = spy.Tensor.from_numpy(device, np.ones((4, 3), np.float32))
    graded = tensor.with_grads()
    outgrad = out.with_grads()
    add = module.add
    backward = add.bwds
    variants: dict[str, Callable[[], object]] = {
        "np.multiply(x, x, out=y)": lambda: np.multiply(x, x, out=y),
        "add(1.0, 2.0)": lambda: add(1.0, 2.0),
        "add(array, 2.0, _result=array)": lambda: add(x, 2.0, _result=y),
        "add(array, 2.0, _result='numpy')": lambda: add(x, 2.0, _result="numpy"),
        "add(Tensor, 2.0, _result=Tensor)": lambda: add(tensor, 2.0, _result=out),
        "add(Tensor, 2.0)": lambda: add(tensor, 2.0),
        "shift(Tensor (4, 3), Tensor)": lambda: module.shift(rows, tensor),
        "add.bwds(Tensor, 2.0, Tensor)": lambda: backward(graded, 2.0, _result=outgrad),
        **list_calls(device, module),
    }
    print(f"{device.info.api_name}, {device.info.adapter_name}; microseconds a call")
    print(f"{'call':36}  median     p90")
    for name, call in variants.items():
        median, high = measure(call, device.wait, options.calls)
        print(f"{name:36} {median:7.2f} {high:7.2f}")


if __name__ == "__main__":
    main()
