"""Small networks beside torch: values and gradients against float64, then times of forward and of forward with backward.

    python benchmarks/networks.py [--device cuda] [--samples 1048576] [--dtype half] [--repeat 20] [--compile] [--keep "one H100"]

32 inputs, 4 hidden layers of 64, 3 outputs. --compile also times `torch.compile(mode="max-autotune")`, which takes a minute. --keep
writes the run to results/networks.json, under that name of the machine.
Times are the least of all repetitions, in milliseconds a call, of ten calls in a row; ratios are torch's time over ours.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
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


def best(function: Callable[[], Any], repeat: int, wait: Callable[[], None]) -> float:
    """Milliseconds of one call, of ten in a row, as a loop that trains has them."""
    times = []
    for _ in range(repeat + 2):
        wait()
        start = time.perf_counter()
        for _ in range(_AT_ONCE):
            function()
        wait()
        times.append(time.perf_counter() - start)
    return 1e3 * min(times[2:]) / _AT_ONCE


def times(module: torch.nn.Module, x: torch.Tensor, seed: torch.Tensor, repeat: int, wait: Callable[[], None]) -> tuple[float, float]:
    def forward() -> None:
        with torch.no_grad():
            module(x)

    def both() -> None:
        module.zero_grad()
        module(x).backward(seed)

    return best(forward, repeat, wait), best(both, repeat, wait)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda", choices=("cpu", "cuda"))
    parser.add_argument("--samples", type=int, default=1 << 20)
    parser.add_argument("--dtype", default="half", choices=("float", "half"))
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--keep", metavar="MACHINE", default="", help="write the run, of the machine of this name")
    options = parser.parse_args()
    device = spy.create_torch_device(type=spy.DeviceType[options.device])
    wait = torch.cuda.synchronize if options.device == "cuda" else lambda: None
    network = nn.Network(device, INPUTS, OUTPUTS, width=WIDTH, hidden_layers=LAYERS, dtype=options.dtype)
    dtype, where = network.weights.dtype, network.weights.device
    generator = torch.Generator().manual_seed(1)
    x = torch.rand(options.samples, INPUTS, generator=generator).to(where, dtype)
    seed = torch.randn(options.samples, OUTPUTS, generator=generator).to(where, dtype)
    start = time.perf_counter()
    check(network, x[:4096], seed[:4096])
    print(f"first calls and check: {time.perf_counter() - start:.2f} s")
    ours = times(network, x, seed, options.repeat, wait)
    print(f"slangpy.neural:        forward {ours[0]:9.3f}  with backward {ours[1]:9.3f}")
    eager = peer(network, dtype)
    rows = [("torch eager", eager)]
    if options.compile:
        rows.append(("torch max-autotune", torch.compile(eager, mode="max-autotune")))
    kept: dict[str, Any] = {"slangpy.neural": ours}
    for name, module in rows:
        theirs = kept[name] = times(module, x, seed, options.repeat, wait)
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
