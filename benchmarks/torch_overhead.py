"""What a call with torch tensors costs beside its kernel: microseconds for 4 elements, median of several rounds.

    python torch_overhead.py [--device cpu|cuda] [--rounds 15] [--calls 1000]

"empty Function" is a torch.autograd.Function that launches nothing: what torch itself takes for a node, forward and
backward. "node without launches" saves its input, and allocates its result and the gradient, as any node must that computes one:
no node made of a Function takes less than that and two launches, which is the floor at the end. "two launches by hand" is what
anybody writes who has two kernels, "two raw launches" the same with two Slang kernels through `ComputeKernel.dispatch`. The last
lines are the ratios of a Slang call to them; all are measured in alternating rounds.
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
RAW = """
[shader("compute")] [numthreads(32, 1, 1)]
void forward(uint3 i : SV_DispatchThreadID, uniform float* x, uniform float* y, uniform uint n)
{
    if (i.x < n) y[i.x] = 2 * x[i.x] * x[i.x] + 8 * x[i.x] - 1;
}
[shader("compute")] [numthreads(32, 1, 1)]
void backward(uint3 i : SV_DispatchThreadID, uniform float* x, uniform float* seed, uniform float* g, uniform uint n)
{
    if (i.x < n) g[i.x] = (4 * x[i.x] + 8) * seed[i.x];
}
"""


class Empty(torch.autograd.Function):
    """A node that computes nothing."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        return torch.empty_like(x)

    @staticmethod
    def backward(ctx: Any, seed: torch.Tensor) -> torch.Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        return seed


class WithoutLaunches(torch.autograd.Function):
    """All that a node needs that computes a gradient, but for the two launches."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx.save_for_backward(x)
        return torch.empty_like(x)

    @staticmethod
    def backward(ctx: Any, seed: torch.Tensor) -> torch.Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        (x,) = ctx.saved_tensors
        return torch.empty_like(x)


class EmptySaving(WithoutLaunches):
    """The same with a gradient of zeros, which is one launch."""

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


def raw_launches(device: spy.Device) -> Callable[[torch.Tensor], torch.Tensor]:
    """The polynomial as a torch.autograd.Function by hand, over raw kernels and addresses, on torch's stream."""
    module = device.load_module_from_source("overhead_raw", RAW)
    forward_kernel, backward_kernel = (
        device.create_compute_kernel(device.link_program([module], [module.entry_point(name)]))
        for name in ("forward", "backward")
    )
    options: dict[str, Any] = {}
    if device.info.type is spy.DeviceType.cuda:
        options["cuda_stream"] = spy.NativeHandle.from_cuda_stream(torch.cuda.current_stream().cuda_stream)

    class TwoRawLaunches(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
            ctx.save_for_backward(x)
            y, n = torch.empty_like(x), x.numel()
            forward_kernel.dispatch([n, 1, 1], x=x.data_ptr(), y=y.data_ptr(), n=n, **options)
            return y

        @staticmethod
        def backward(ctx: Any, seed: torch.Tensor) -> torch.Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
            (x,) = ctx.saved_tensors
            g, n = torch.empty_like(x), x.numel()
            addresses = {"x": x.data_ptr(), "seed": seed.data_ptr(), "g": g.data_ptr()}
            backward_kernel.dispatch([n, 1, 1], n=n, **addresses, **options)
            return g

    return TwoRawLaunches.apply  # pyright: ignore[reportReturnType]


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
    raw = raw_launches(device)
    launch = polynomial.prepare(2, 8, -1, plain, _result=result)
    torch.testing.assert_close(raw(x), polynomial(2, 8, -1, x))

    cases: dict[str, Callable[[], Any]] = {
        "torch.mul(out=)": lambda: torch.mul(plain, plain, out=result),
        "torch.mul": lambda: torch.mul(plain, plain),
        "call, result given": lambda: polynomial(2, 8, -1, plain, _result=result),
        "call, result allocated": lambda: polynomial(2, 8, -1, plain),
        "one launch": launch,
        "empty Function, forward + backward": lambda: Empty.apply(x).backward(seed),  # pyright: ignore
        "node without launches, forward + backward": lambda: WithoutLaunches.apply(x).backward(seed),  # pyright: ignore
        "saving Function, forward + backward": lambda: EmptySaving.apply(x).backward(seed),  # pyright: ignore
        "two launches by hand, forward + backward": lambda: TwoLaunches.apply(x).backward(seed),  # pyright: ignore
        "two raw launches, forward + backward": lambda: raw(x).backward(seed),
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
    for ours, name in (("call, result given", "torch.mul(out=)"), ("call, result allocated", "torch.mul")):
        print(f"{ours + ' / ' + name:42} {medians[ours] / medians[name]:8.2f}")
    for name in ("empty Function", "node without launches", "two launches by hand", "two raw launches"):
        ratio = medians["call, forward + backward"] / medians[name + ", forward + backward"]
        print(f"{'call / ' + name:42} {ratio:8.2f}")
    launches = 2 * medians["one launch"]
    floor = medians["node without launches, forward + backward"] + launches
    print(f"{'floor: node without launches + 2 launches':42} {floor:8.2f} us")
    print(f"{'call, forward + backward / floor':42} {medians['call, forward + backward'] / floor:8.2f}")


if __name__ == "__main__":
    main()
