"""What a call with torch tensors costs beside its kernel: microseconds for 4 elements, median of several rounds.

    python torch_overhead.py [--device cpu|cuda] [--rounds 15] [--calls 1000]

"empty Function" is a torch.autograd.Function that launches nothing: what torch itself takes for a node, forward and
backward; "two launches by hand" is what anybody writes who has two kernels. The last lines are the ratios of a Slang
call to them; all are measured in alternating rounds.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch  # pyright: ignore[reportMissingImports]

import slangpy as spy

SOURCE = "[Differentiable] float polynomial(float a, float b, float c, float x) { return a * x * x + b * x + c; }"


class Empty(torch.autograd.Function):
    """A node that computes nothing."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        return torch.empty_like(x)

    @staticmethod
    def backward(ctx: Any, seed: torch.Tensor) -> torch.Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        return seed


class EmptySaving(torch.autograd.Function):
    """The same, with what any node needs that computes a gradient: a saved input and memory for the result."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx.save_for_backward(x)
        return torch.empty_like(x)

    @staticmethod
    def backward(ctx: Any, seed: torch.Tensor) -> torch.Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        (x,) = ctx.saved_tensors
        return torch.zeros_like(x)


class TwoLaunches(torch.autograd.Function):
    """The least that a node by hand does: memory and one launch in each direction, the input saved."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx.save_for_backward(x)
        y = torch.empty_like(x)
        torch.mul(x, x, out=y)
        return y

    @staticmethod
    def backward(ctx: Any, seed: torch.Tensor) -> torch.Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        (x,) = ctx.saved_tensors
        g = torch.empty_like(x)
        torch.mul(x, seed, out=g)
        return g


def microseconds(function: Callable[[], Any], calls: int, synchronise: Callable[[], None]) -> float:
    synchronise()
    start = time.perf_counter()
    for _ in range(calls):
        function()
    taken = time.perf_counter() - start
    synchronise()
    return taken / calls * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", choices=("cpu", "cuda"))
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--calls", type=int, default=1000)
    options = parser.parse_args()
    device = spy.create_torch_device(type=spy.DeviceType[options.device])
    polynomial = spy.Module.load_from_source(device, "overhead", SOURCE).polynomial
    plain = torch.rand(4, device=options.device)
    x = plain.clone().requires_grad_(True)
    result, seed = torch.empty_like(plain), torch.ones_like(plain)

    cases: dict[str, Callable[[], Any]] = {
        "torch.mul(out=)": lambda: torch.mul(plain, plain, out=result),
        "call, result given": lambda: polynomial(2, 8, -1, plain, _result=result),
        "call, result allocated": lambda: polynomial(2, 8, -1, plain),
        "empty Function, forward + backward": lambda: Empty.apply(x).backward(seed),  # pyright: ignore
        "saving Function, forward + backward": lambda: EmptySaving.apply(x).backward(seed),  # pyright: ignore
        "two launches by hand, forward + backward": lambda: TwoLaunches.apply(x).backward(seed),  # pyright: ignore
        "call, forward + backward": lambda: polynomial(2, 8, -1, x).backward(seed),
        "torch eager, forward + backward": lambda: (2 * x * x + 8 * x - 1).backward(seed),
    }
    synchronise = torch.cuda.synchronize if options.device == "cuda" else lambda: None
    found: dict[str, list[float]] = {name: [] for name in cases}
    for function in cases.values():
        microseconds(function, 50, synchronise)
    for _ in range(options.rounds):
        for name, function in cases.items():
            found[name].append(microseconds(function, options.calls, synchronise))
    medians = {name: statistics.median(values) for name, values in found.items()}
    for name, median in medians.items():
        print(f"{name:42} {median:8.2f} us")
    for name in ("empty Function", "two launches by hand"):
        ratio = medians["call, forward + backward"] / medians[name + ", forward + backward"]
        print(f"{'call / ' + name:42} {ratio:8.2f}")


if __name__ == "__main__":
    main()
