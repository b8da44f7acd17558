"""Whether calls in torch's graph keep anything: memory after many forward and backward passes of every form.

    python torch_memory.py [--device cpu|cuda] [--calls 100000] [--allowed 16]

Prints how far the process (and the GPU's allocator) has grown since the passes became steady, in MiB; exits with 1 when
that is more than --allowed. The garbage collector is off: what it would have to find counts as kept.
"""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Callable
from typing import Any

import torch  # pyright: ignore[reportMissingImports]

import slangpy as spy

SOURCE = """
[Differentiable] float polynomial(float a, float b, float c, float x) { return a * x * x + b * x + c; }
[Differentiable] void poly_out(float a, float x, out float y) { y = a * x * x; }
[Differentiable] void scale(float k, inout float v) { v = k * v * v; }
struct Pair : IDifferentiable { float first; float second; };
[Differentiable] float product(Pair p) { return p.first * p.second; }
"""


def resident() -> int:
    """Bytes of this process in memory."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def passes(module: Any, where: str) -> list[Callable[[], None]]:
    """One forward and backward pass in each form that a call can have."""
    x = torch.rand(256, device=where, requires_grad=True)
    a = torch.rand(1, device=where, requires_grad=True)
    seed = torch.ones(256, device=where)

    def plain() -> None:
        module.polynomial(a, 8, -1, x).backward(seed)

    def one_input() -> None:
        torch.autograd.grad(module.polynomial(a, 8, -1, x), [x], seed)

    def written() -> None:
        y = torch.empty_like(seed)
        module.poly_out(a, x, y)
        y.backward(seed)

    def given() -> None:
        module.polynomial(2, 8, -1, x, _result=torch.empty_like(seed)).backward(seed)

    def in_place() -> None:
        v = x * 1
        module.scale(a, v)
        v.backward(seed)

    def structure() -> None:
        module.product({"first": x, "second": a}).backward(seed)

    def dropped() -> None:
        module.polynomial(a, 8, -1, x)

    def without() -> None:
        with torch.no_grad():
            module.polynomial(a, 8, -1, x)

    def clear() -> None:
        x.grad = a.grad = None

    return [plain, one_input, written, given, in_place, structure, dropped, without, clear]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", choices=("cpu", "cuda"))
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument(
        "--allowed", type=float, default=16, help="MiB of the process; the GPU's allocator may not grow"
    )
    options = parser.parse_args()
    device = spy.create_torch_device(type=spy.DeviceType[options.device])
    forms = passes(spy.Module.load_from_source(device, "memory", SOURCE), options.device)
    rounds = max(options.calls // len(forms), 1)

    def on_gpu() -> int:
        return torch.cuda.memory_allocated() if options.device == "cuda" else 0

    gc.collect()
    gc.disable()
    for _ in range(200):
        for form in forms:
            form()
    before, before_gpu = resident(), on_gpu()
    for _ in range(rounds):
        for form in forms:
            form()
    grown, grown_gpu = (resident() - before) / 2**20, on_gpu() - before_gpu
    print(f"{rounds * len(forms)} passes: process {grown:+.2f} MiB, GPU {grown_gpu:+d} bytes")
    sys.exit(grown > options.allowed or grown_gpu > 0)


if __name__ == "__main__":
    main()
