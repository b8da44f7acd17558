"""Gradients of a gather on the CPU device: 2^20 additions to targets picked at random, beside torch's index_add_.

    python benchmarks/cpu_scattered.py [--count 1048576] [--rounds 40]

Sums are compared with NumPy float64 first. Prints milliseconds: medians and least of calls in turns. torch adds on one
thread, the device uses as many as are worth it.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import slangpy as spy
from slangpy.base.optional import find_package

SOURCE = "[Differentiable] float gather(IDiffTensor<float, 1> x, no_diff int i) { return x[i]; }"


def measure(module: spy.Module, targets: int, count: int, rounds: int) -> dict[str, list[float]]:
    device, rng = module.device, np.random.default_rng()
    index, seeds = rng.integers(0, targets, count, np.int32), rng.random(count, np.float32)
    x = spy.Tensor.from_numpy(device, np.zeros(targets, np.float32)).with_grads(zero=True)
    i = spy.Tensor.from_numpy(device, index)
    y = spy.Tensor.from_numpy(device, np.zeros(count, np.float32))
    y = y.with_grads(grad_in=spy.Tensor.from_numpy(device, seeds))
    calls = {"slangpy": lambda: module.gather.bwds(x, i, _result=y)}
    calls["slangpy"]()
    expected = np.bincount(index, weights=seeds.astype(np.float64), minlength=targets)
    np.testing.assert_allclose(x.grad.to_numpy(), expected, rtol=1e-2 if targets == 1 else 1e-4, atol=1e-4)
    if torch := find_package("torch"):
        grad, where, what = torch.zeros(targets), torch.from_numpy(index), torch.from_numpy(seeds)
        calls["torch"] = lambda: grad.index_add_(0, where, what)
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            times[name].append((time.perf_counter() - start) * 1e3)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1 << 20)
    parser.add_argument("--rounds", type=int, default=40)
    options = parser.parse_args()
    device = spy.create_device(type=spy.DeviceType.cpu)
    module = spy.Module.load_from_source(device, "cpu_scattered", SOURCE)
    print(f"{device.info.adapter_name}; {options.count} additions; ms, median (least)")
    for targets in (1, 64, 1024, 1 << 16, 1 << 18, 1 << 20, 1 << 24):
        times = measure(module, targets, options.count, options.rounds)
        text = ", ".join(f"{name} {np.median(taken):.2f} ({min(taken):.2f})" for name, taken in times.items())
        print(f"{targets:9} targets: {text}", flush=True)


if __name__ == "__main__":
    main()
