"""Small networks beside torch: values and gradients against float64, then times of forward and of forward with backward.

    python benchmarks/networks.py [--device cuda] [--samples 1048576] [--dtype half] [--repeat 20] [--compile] [--keep "one H100"]
    python benchmarks/networks.py --steps 1000 [--device cpu] [--dtype float]

32 inputs, 4 hidden layers of 64, 3 outputs. --compile also times `torch.compile(mode="max-autotune")`, which takes a minute. --keep
writes the run to results/networks.json, under that name of the machine.
Times are the least of all repetitions, in milliseconds a call, of ten calls in a row; ratios are torch's time over ours. On the CPU
they are processor time of all threads. --steps learns a small image instead, with so many steps of torch's Adam from the same
first weights in both, of halves with weights kept in float: the loss of the last tenth, as a mean over --seeds first weights, has
to be within 3 % of torch's.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

import slangpy as spy
from slangpy.neural import nn

INPUTS, WIDTH, LAYERS, OUTPUTS = 32, 64, 4, 3
_AT_ONCE = 10
RESULTS = Path(__file__).with_name("results") / "networks.json"


def peer(network: nn.Network, dtype: torch.dtype) -> torch.nn.Module:
    """The same numbers in torch's layers."""
    weights, at, layers = network.weights.detach(), 0, []
    for rows, columns in network.shape.layers:
        layer = torch.nn.Linear(columns, rows).to(weights.device, dtype)
        with torch.no_grad():
            layer.weight.copy_(weights[at : at + rows * columns].reshape(rows, columns))
            layer.bias.copy_(weights[at + rows * columns : at + rows * (columns + 1)])
        at += rows * (columns + 1)
        layers += [layer, torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1])


def flat(module: torch.nn.Module) -> torch.Tensor:
    """Gradients in our order."""
    return torch.cat([parameter.grad.reshape(-1) for parameter in module.parameters() if parameter.grad is not None])


def check(network: nn.Network, x: torch.Tensor, seed: torch.Tensor) -> None:
    """Against float64, beside torch in the network's own type: of halves, many inputs land on the other side of a corner."""
    exact, plain = peer(network, torch.float64), peer(network, x.dtype)
    y = network(x)
    (gradient,) = torch.autograd.grad((y * seed).sum(), network.weights)
    expected, theirs = exact(x.double()), plain(x)
    (expected * seed.double()).sum().backward()
    (theirs * seed).sum().backward()
    for name, ours, of_torch, of_doubles in (("values", y, theirs, expected), ("gradients", gradient, flat(plain), flat(exact))):
        errors = [((value.double() - of_doubles).norm() / of_doubles.norm()).item() for value in (ours, of_torch)]
        print(f"{name}: relative error {errors[0]:.1e}, torch's {errors[1]:.1e}")
        limit = max(1.5 * errors[1], 1e-5)
        if not errors[0] < limit:
            raise SystemExit(f"{name}: expected an error below {limit:.1e}")


class Learner:
    """torch's Adam on floats: of half networks it keeps the weights in float, and losses are scaled, as training with halves is
    done. So the two differ by what their kernels round, and not by what steps in halves lose."""

    def __init__(self, module: torch.nn.Module) -> None:
        self.module, self.own = module, list(module.parameters())
        is_half = self.own[0].dtype == torch.float16
        self.scale = 1024.0 if is_half else 1.0
        self.floats = [parameter.detach().float().requires_grad_() for parameter in self.own] if is_half else self.own
        self.optimiser = torch.optim.Adam(self.floats, lr=1e-3)

    def step(self, x: torch.Tensor, image: torch.Tensor) -> float:
        for parameter in self.own:
            parameter.grad = None
        error = (self.module(x).float() - image).square().mean()
        (error * self.scale).backward()
        if self.floats is not self.own:
            for floats, parameter in zip(self.floats, self.own, strict=True):
                assert parameter.grad is not None
                floats.grad = parameter.grad.float() / self.scale
        self.optimiser.step()
        if self.floats is not self.own:
            with torch.no_grad():
                for floats, parameter in zip(self.floats, self.own, strict=True):
                    parameter.copy_(floats)
        return error.item()


def learn(network: nn.Network, steps: int) -> tuple[float, float]:
    """Mean squared errors of ours and of torch's at the end: of a picture, from 8 waves of both coordinates."""
    plain, losses = peer(network, network.weights.dtype), tuple[list[float], list[float]]([[], []])
    for module, loss in zip((network, plain), losses, strict=True):
        generator, learner = torch.Generator().manual_seed(2), Learner(module)
        for _ in range(steps):
            at = torch.rand(1024, 2, generator=generator)
            waves = (at[:, :, None] * torch.pi * 2.0 ** torch.arange(8)).flatten(1)
            x = torch.cat([waves.sin(), waves.cos()], 1).to(network.weights)
            ring = ((at - 0.5).norm(dim=1) * 20).sin()
            image = torch.stack([ring, at[:, 0], ((at * 6).floor().sum(1) % 2)], 1).to(network.weights.device)
            loss.append(learner.step(x, image))
    ours, theirs = (sum(loss[-max(steps // 10, 1) :]) / max(steps // 10, 1) for loss in losses)
    print(f"loss after {steps} steps: {ours:.5f}, torch's {theirs:.5f}, at the first {losses[0][0]:.5f} and {losses[1][0]:.5f}", flush=True)
    return ours, theirs


def compare_losses(device: spy.Device, options: argparse.Namespace) -> None:
    """Means of several first weights: one run with a few of its numbers rounded otherwise ends some per cent away from itself."""
    losses = []
    for seed in range(options.seeds):
        network = nn.Network(device, INPUTS, OUTPUTS, width=WIDTH, hidden_layers=LAYERS, dtype=options.dtype, seed=seed)
        losses.append(learn(network, options.steps))
    ours, theirs = (statistics.mean(side) for side in zip(*losses, strict=True))
    apart = [100 * (a / b - 1) for a, b in losses]
    print(f"mean of {options.seeds}: {ours:.5f}, torch's {theirs:.5f}: {100 * (ours / theirs - 1):+.1f} %, "
          f"single runs {min(apart):+.1f} to {max(apart):+.1f} %")  # fmt: skip
    if abs(ours / theirs - 1) > 0.03:
        raise SystemExit(f"expected a mean loss within 3 % of torch's; got {100 * (ours / theirs - 1):.1f} %")


@dataclass(frozen=True)
class Clock:
    """wait: until the device is done. now: in seconds."""

    wait: Callable[[], None]
    now: Callable[[], float]


def best(function: Callable[[], Any], repeat: int, clock: Clock) -> float:
    """Milliseconds of one call, of ten in a row, as a loop that trains has them."""
    times = []
    for _ in range(repeat + 2):
        clock.wait()
        start = clock.now()
        for _ in range(_AT_ONCE):
            function()
        clock.wait()
        times.append(clock.now() - start)
    return 1e3 * min(times[2:]) / _AT_ONCE


def times(module: torch.nn.Module, x: torch.Tensor, seed: torch.Tensor, repeat: int, clock: Clock) -> tuple[float, float]:
    def forward() -> None:
        with torch.no_grad():
            module(x)

    def both() -> None:
        module.zero_grad()
        module(x).backward(seed)

    return best(forward, repeat, clock), best(both, repeat, clock)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda", choices=("cpu", "cuda"))
    parser.add_argument("--samples", type=int, default=1 << 20)
    parser.add_argument("--dtype", default="half", choices=("float", "half"))
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--steps", type=int, default=0, help="learn an image with so many steps")
    parser.add_argument("--seeds", type=int, default=5, help="with --steps: so many first weights")
    parser.add_argument("--keep", metavar="MACHINE", default="", help="write the run, of the machine of this name")
    options = parser.parse_args()
    device = spy.create_torch_device(type=spy.DeviceType[options.device])
    clock = Clock(torch.cuda.synchronize, time.perf_counter) if options.device == "cuda" else Clock(lambda: None, time.process_time)
    network = nn.Network(device, INPUTS, OUTPUTS, width=WIDTH, hidden_layers=LAYERS, dtype=options.dtype)
    if options.steps:
        compare_losses(device, options)
        return
    dtype, where = network.weights.dtype, network.weights.device
    generator = torch.Generator().manual_seed(1)
    x = torch.rand(options.samples, INPUTS, generator=generator).to(where, dtype)
    seed = torch.randn(options.samples, OUTPUTS, generator=generator).to(where, dtype)
    start = time.perf_counter()
    check(network, x[:4096], seed[:4096])
    print(f"first calls and check: {time.perf_counter() - start:.2f} s")
    ours = times(network, x, seed, options.repeat, clock)
    print(f"slangpy.neural:        forward {ours[0]:9.3f}  with backward {ours[1]:9.3f}")
    eager = peer(network, dtype)
    rows = [("torch eager", eager)]
    if options.compile:
        rows.append(("torch max-autotune", torch.compile(eager, mode="max-autotune")))
    kept: dict[str, Any] = {"slangpy.neural": ours}
    for name, module in rows:
        theirs = kept[name] = times(module, x, seed, options.repeat, clock)
        ratios = [their / our for their, our in zip(theirs, ours, strict=True)]
        print(f"{name:22} forward {theirs[0]:9.3f}  with backward {theirs[1]:9.3f}  ratios {ratios[0]:.2f} {ratios[1]:.2f}")
    if options.keep:
        keep({"machine": options.keep, "device": options.device, "samples": options.samples, "dtype": options.dtype,
              "milliseconds": {name: {"forward": round(both[0], 4), "with backward": round(both[1], 4)} for name, both in kept.items()}})


def keep(run: dict[str, Any]) -> None:
    """In place of a run of the same machine, device, dtype and number of samples."""
    same = ("machine", "device", "samples", "dtype")
    record = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {"script": "benchmarks/networks.py", "runs": []}
    others = [old for old in record["runs"] if any(old[name] != run[name] for name in same)]
    RESULTS.write_text(json.dumps({**record, "runs": [*others, run]}, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
