"""A few figures of whichever package is imported as `slangpy`, through what this one and shader-slang's have in common.

    PYTHONPATH=<folder with a package> python benchmarks/peer_slangpy.py [--device cuda] [--bits 28] [--output figures.json]

Run it with each package on the same machine, one after the other. Prints JSON: seconds of one call (medians of batches),
bytes moved by it, and the error beside NumPy float64. What fails is written down with its reason.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import slangpy as spy

LETTERS = "abcdefghjklmnopq"  # i is the index
SOURCE = f"""
import slangpy;
[Differentiable] float polynomial(float a, float b, float c, float x) {{ return a * x * x + b * x + c; }}
float3 scale3(float3 v, float3 w, float s) {{ return v * s + w; }}
float sum_of_16(int i, {", ".join(f"Tensor<float, 1> {letter}" for letter in LETTERS)})
{{
    return {" + ".join(f"{letter}[i]" for letter in LETTERS)};
}}
float sum_of_rows(int i, Tensor<float, 2> x)
{{
    float s = 0;
    for (int k = 0; k < 16; k++)
        s += x[k, i];
    return s;
}}
float two(float a, float b) {{ return a + b; }}
"""


class Peer:
    """The package, a device of it, and arrays on the device."""

    def __init__(self, device: str) -> None:
        self.device: Any = spy.create_device(type=getattr(spy.DeviceType, device))
        self.module: Any = spy.Module.load_from_source(self.device, "peer_programs", SOURCE)
        self.rng = np.random.default_rng()
        self.wait: Callable[[], None] = getattr(self.device, "wait", None) or self.device.wait_for_idle

    def random(self, *shape: int) -> np.ndarray:
        return self.rng.random(shape, np.float32)

    def tensor(self, values: np.ndarray, dtype: str = "float") -> Any:
        shape = values.shape[:-1] if dtype == "float3" else values.shape
        made = spy.Tensor.empty(self.device, shape, dtype)
        made.storage.copy_from_numpy(np.ascontiguousarray(values))
        return made

    def poisoned(self, shape: tuple[int, ...], dtype: str = "float") -> Any:
        """Not numbers, so that what is not written is seen."""
        return self.tensor(np.full((*shape, 3) if dtype == "float3" else shape, np.nan, np.float32), dtype)

    def seconds(self, call: Callable[[], Any], limit: float = 2.0) -> float:
        """Median of batches of some 5 ms, after 0.3 s of work for the clocks."""
        begun = time.perf_counter()
        while time.perf_counter() - begun < 0.3:
            call()
            self.wait()
        begun = time.perf_counter()
        call()
        self.wait()
        batch = int(np.clip(5e-3 / max(time.perf_counter() - begun, 1e-7), 1, 1000))
        times: list[float] = []
        end = time.perf_counter() + limit
        while len(times) < 3 or (len(times) < 100 and time.perf_counter() < end):
            begun = time.perf_counter()
            for _ in range(batch):
                call()
            self.wait()
            times.append((time.perf_counter() - begun) / batch)
        return float(np.median(times))


Figure = tuple[Callable[[], Any], int, Callable[[], float]]
"""A call, the bytes that it moves, and its error once it has run."""


def error_of(result: Any, expected: np.ndarray) -> float:
    """Of a sample of what a call computed, by the largest number expected."""
    got = np.asarray(result.to_numpy(), np.float64).reshape(-1)[: expected.size].reshape(expected.shape)
    if not np.isfinite(got).all():
        return float("inf")
    return float(np.abs(got - expected).max() / np.abs(expected).max())


def polynomial(p: Peer, bits: int) -> Figure:
    count = 1 << bits
    values = np.resize(p.random(min(count, 1 << 24)), count)
    x, y = p.tensor(values), p.poisoned((count,))
    sample = values[: 1 << 24].astype(np.float64)
    expected = 2 * sample * sample + 8 * sample - 1
    return lambda: p.module.polynomial(2.0, 8.0, -1.0, x, _result=y), 8 * count, lambda: error_of(y, expected)


def float3(p: Peer, bits: int) -> Figure:
    count = 1 << (bits - 3)
    data = p.random(count, 3)
    v, w, out = p.tensor(data, "float3"), p.tensor(data[::-1], "float3"), p.poisoned((count,), "float3")
    expected = data.astype(np.float64) * 1.5 + data[::-1]
    return lambda: p.module.scale3(v, w, 1.5, _result=out), 36 * count, lambda: error_of(out, expected)


def sixteen(p: Peer, whole: bool) -> Figure:
    width = 1 << 20
    values, index = p.random(16, width), p.rng.integers(0, width, width, np.int32)
    i, y = p.tensor(index, "int"), p.poisoned((width,))
    expected = values.astype(np.float64)[:, index].sum(0)
    if whole:
        x = p.tensor(values)
        return lambda: p.module.sum_of_rows(i, x, _result=y), 72 * width, lambda: error_of(y, expected)
    rows = [p.tensor(row) for row in values]
    return lambda: p.module.sum_of_16(i, *rows, _result=y), 72 * width, lambda: error_of(y, expected)


def warm_call(p: Peer) -> Figure:
    a, b = p.random(4), p.random(4)
    x, z, y = p.tensor(a), p.tensor(b), p.poisoned((4,))
    return lambda: p.module.two(x, z, _result=y), 0, lambda: error_of(y, a.astype(np.float64) + b)


def backward(p: Peer, bits: int) -> Figure:
    """Seeds are 1; the gradients of all calls add up, so their share of the sum is compared."""
    count = 1 << (bits - 2)
    values = p.random(count)
    x, y = p.tensor(values).with_grads(), p.tensor(np.zeros(count, np.float32)).with_grads()
    y.grad_in.storage.copy_from_numpy(np.ones(count, np.float32))
    x.grad_out.storage.copy_from_numpy(np.zeros(count, np.float32))
    expected = 4 * values.astype(np.float64) + 8
    call = lambda: p.module.polynomial.bwds(2.0, 8.0, -1.0, x, _result=y)  # noqa: E731
    return call, 16 * count, lambda: error_of(x.grad_out, expected)


def copied(p: Peer, bits: int) -> Figure:
    count = 1 << bits
    values = p.random(min(count, 1 << 24))
    x, y = p.tensor(np.resize(values, count)), p.poisoned((count,))

    def copy() -> None:
        encoder = p.device.create_command_encoder()
        encoder.copy_buffer(y.storage, 0, x.storage, 0, 4 * count)
        p.device.submit_command_buffer(encoder.finish())

    return copy, 8 * count, lambda: error_of(y, values.astype(np.float64))


def figures(bits: int) -> dict[str, Callable[[Peer], Figure]]:
    return {
        "copy": lambda p: copied(p, bits),
        "polynomial": lambda p: polynomial(p, bits),
        "float3 function": lambda p: float3(p, bits),
        "16 tensors of 2^20 through an index tensor": lambda p: sixteen(p, False),
        "16 rows of 2^20 through an index tensor": lambda p: sixteen(p, True),
        "one warm call": warm_call,
        "bwds": lambda p: backward(p, bits),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda", choices=["cuda", "vulkan", "cpu"])
    parser.add_argument("--bits", type=int, default=28, help="2^bits elements of the largest arrays (bwds: a quarter)")
    parser.add_argument("--output", type=Path, help="where the JSON goes, besides to the screen")
    options = parser.parse_args()
    peer = Peer(options.device)
    found: dict[str, Any] = {}
    for name, make in figures(options.bits).items():
        try:
            call, moved, error = make(peer)
            call()
            peer.wait()
            found[name] = {"error": error()}
            seconds = peer.seconds(call)
            found[name] |= {"seconds": seconds, "bytes_per_second": moved / seconds}
        except Exception as problem:  # the other figures are wanted all the same
            found[name] = {"failed": f"{type(problem).__name__}: {problem}"[:500]}
    about = {"package": str(Path(spy.__file__).parent), "version": getattr(spy, "__version__", "?")}
    text = json.dumps(about | {"device": options.device, "bits": options.bits, "figures": found}, indent=1)
    print(text)
    if options.output:
        options.output.write_text(text)
    return 1 if any("failed" in figure for figure in found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
