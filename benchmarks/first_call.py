"""How long a process takes to its first result: nothing cached, and with the cache that leaves.

    python benchmarks/first_call.py [--device cpu|vulkan|cuda] [--runs 5]

Each run is a process of its own with an empty cache folder, followed by one with that folder. Prints milliseconds, the
medians of the runs, for importing the package, opening the device, and loading a module with one call of it.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

CHILD = """
import json, sys, time
import numpy as np
times = [time.perf_counter()]
import slangpy as spy
times.append(time.perf_counter())
device = spy.create_device(type=spy.DeviceType[sys.argv[1]])
times.append(time.perf_counter())
source = "float polynomial(float a, float b, float c, float x) { return a * x * x + b * x + c; }"
module = spy.Module.load_from_source(device, "first_call", source)
x = np.arange(1, 5, dtype=np.float32)
assert module.polynomial(2, 8, -1, x, _result="numpy").tolist() == [9, 23, 41, 63]
times.append(time.perf_counter())
print(json.dumps([(b - a) * 1e3 for a, b in zip(times, times[1:], strict=False)]))
"""


def run(device: str, cache: str) -> list[float]:
    environment = {**os.environ, "SLANGPY_CACHE_DIR": cache}
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-c", CHILD, device],
            env=environment,
            cwd=folder,
            capture_output=True,
            text=True,
            check=True,
        )
    return json.loads(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", choices=["cpu", "vulkan", "cuda"])
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    results: dict[str, list[list[float]]] = {"nothing cached": [], "second process": []}
    for _ in range(options.runs):
        with tempfile.TemporaryDirectory() as cache:
            for times in results.values():
                times.append(run(options.device, cache))
    print(f"{options.device}, milliseconds     import   device   first call")
    for name, times in results.items():
        imported, opened, called = (statistics.median(column) for column in zip(*times, strict=True))
        print(f"{name:24} {imported:9.1f} {opened:8.1f} {called:12.1f}")


if __name__ == "__main__":
    main()
