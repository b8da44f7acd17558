"""Small networks beside torch: values and gradients against float64, then times of forward and of forward with backward.

    python benchmarks/networks.py [--device cuda] [--samples 1048576] [--dtype half] [--repeat 20] [--compile] [--keep "one H100"]
    python benchmarks/networks.py --steps 1000 [--device cpu] [--dtype float]
    ncu --profile-from-start off --section SpeedOfLight python benchmarks/networks.py --profile
    python benchmarks/networks.py --hash-grid [--device cuda] [--samples 1048576] [--dtype half] [--keep "one H100"]

32 inputs, 4 hidden layers of 64, 3 outputs. --compile also times `torch.compile(mode="max-autotune")`, which takes a minute. --keep
writes the run to results/networks.json, under that name of the machine. --hash-grid takes a hash grid alone instead: positions
(floats) in 3-D to 16 levels of 2 features, at most 2^19 entries a level, 16 to 2048 cells along each axis; the gradients are those
of the table. --profile runs a network once between the marks that Nsight Compute waits for; `profiles` in the results are its
percentages, entered by hand.
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
from slangpy.neural import HashGrid, nn

INPUTS, WIDTH, LAYERS, OUTPUTS = 32, 64, 4, 3
_AT_ONCE = 10
GRID = HashGrid(levels_count=16, per_level=2, log2_entries=19, coarsest=16, growth=2 ** (7 / 15))
_GRID_SOURCE = """
import slangpy;
import slangpy.neural;

typealias Grid = {grid};

[Differentiable]
{dtype}[{count}] encode(int level, no_diff float x[3], Grid grid)
{{
    const float features[{count}] = grid.eval_level(level, x);
    {dtype} result[{count}];
    for (int i = 0; i < {count}; i++)
        result[i] = {dtype}(features[i]);
    return result;
}}
"""
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
        accept(name, ours, of_torch, of_doubles)


def accept(name: str, ours: torch.Tensor, of_torch: torch.Tensor, of_doubles: torch.Tensor) -> None:
    errors = [((value.double() - of_doubles).norm() / of_doubles.norm()).item() for value in (ours, of_torch)]
    print(f"{name}: relative error {errors[0]:.1e}, torch's {errors[1]:.1e}")
    limit = max(1.5 * errors[1], 1e-5)
    if not errors[0] < limit:
        raise SystemExit(f"{name}: expected an error below {limit:.1e}")


class OurGrid(torch.nn.Module):
    """`HashGrid` of slangpy.neural in a call of slangpy's, level by level."""

    def __init__(self, device: spy.Device, tables: list[torch.Tensor], dtype: str) -> None:
        super().__init__()
        source = _GRID_SOURCE.format(grid=GRID.type_name(3, dtype), dtype=dtype, count=GRID.per_level)
        self.encode = spy.Module.load_from_source(device, "hash_grid", source).encode.map(level=(0,), x=(1,))
        self.table = torch.nn.Parameter(torch.cat(tables).flatten())
        self.register_buffer("levels", torch.from_numpy(GRID.levels(3).reshape(-1)).to(tables[0].device))
        self.register_buffer("level", torch.arange(GRID.levels_count, dtype=torch.int32, device=tables[0].device))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        features = self.encode(level=self.level, x=x, grid={"table": self.table, "levels": self.levels})
        return features.transpose(0, 1).flatten(1)  # (levels, n, of a level)


class PlainGrid(torch.nn.Module):
    """The same in torch: of each level a table of its own, whose eight rows of a position are read at once."""

    def __init__(self, tables: list[torch.Tensor]) -> None:
        super().__init__()
        self.tables = torch.nn.ParameterList(tables)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([self.level(x, table, int(cells)) for table, (cells, _, _) in zip(self.tables, GRID.levels(3), strict=True)], 1)

    def level(self, x: torch.Tensor, table: torch.Tensor, cells: int) -> torch.Tensor:
        at = x * cells
        cell = at.floor().clamp_(max=cells - 1)
        part = at - cell
        corner = torch.stack([cell, cell + 1], 2).long()  # of each axis both ends
        weight = torch.stack([1 - part, part], 2)
        entries = len(table)
        if (cells + 1) ** 3 <= entries:
            places = corner * torch.tensor([[1], [cells + 1], [(cells + 1) ** 2]], device=x.device)
            index = _of_eight(torch.add, places)
        else:
            places = corner * torch.tensor([[1], [2654435761], [805459861]], device=x.device)
            index = _of_eight(torch.bitwise_xor, places) & (entries - 1)  # a power of two
        rows = table.index_select(0, index.flatten()).reshape(len(x), 8, GRID.per_level)
        return (_of_eight(torch.mul, weight).to(table.dtype)[:, :, None] * rows).sum(1)


def _of_eight(join: Callable[[torch.Tensor, torch.Tensor], torch.Tensor], ends: torch.Tensor) -> torch.Tensor:
    """(n, 8) for the corners of (n, 3, 2)."""
    x, y, z = ends.unbind(1)
    return join(join(x[:, :, None, None], y[:, None, :, None]), z[:, None, None, :]).flatten(1)


def compare_grids(device: spy.Device, options: argparse.Namespace, clock: Clock) -> None:
    """Of the grid alone; checked with tables of numbers as large as one learns."""
    dtype = {"float": torch.float32, "half": torch.float16}[options.dtype]
    where = torch.device("cuda" if options.device == "cuda" else "cpu")
    generator = torch.Generator().manual_seed(1)
    tables = [torch.randn(int(entries), GRID.per_level, generator=generator).to(where, dtype) for _, _, entries in GRID.levels(3)]
    x = torch.rand(options.samples, 3, generator=generator).to(where)
    seed = torch.randn(options.samples, GRID.features(3), generator=generator).to(where, dtype)
    start = time.perf_counter()
    ours, plain, exact = OurGrid(device, tables, options.dtype), PlainGrid(tables), PlainGrid([table.double() for table in tables])
    results = []
    for module, positions in ((ours, x[:4096]), (plain, x[:4096]), (exact, x[:4096].double())):
        y = module(positions)
        y.backward(seed[:4096].to(y.dtype))
        results.append((y.detach(), flat(module)))
        module.zero_grad()
    for name, *values in zip(("values", "gradients"), *results, strict=True):
        accept(name, *values)
    del exact, results
    print(f"first calls and check: {time.perf_counter() - start:.2f} s")
    both = {name: times(module, x, seed, options.repeat, clock) for name, module in (("slangpy.neural", ours), ("torch eager", plain))}
    for name, one in both.items():
        ratios = " ".join(f"{its / our:.2f}" for its, our in zip(one, both["slangpy.neural"], strict=True))
        print(f"{name:22} forward {one[0]:9.3f}  with backward {one[1]:9.3f}  ratios {ratios}")
    if options.keep:
        keep(run_of(options, both, what="hash grid"))


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


def profile(module: torch.nn.Module, x: torch.Tensor, seed: torch.Tensor) -> None:
    """What a profiler that waits for its start sees."""

    def step() -> None:
        with torch.no_grad():
            module(x)
        module.zero_grad()
        module(x).backward(seed)
        torch.cuda.synchronize()

    for _ in range(3):
        step()
    torch.cuda.profiler.start()
    step()
    torch.cuda.profiler.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda", choices=("cpu", "cuda"))
    parser.add_argument("--samples", type=int, default=1 << 20)
    parser.add_argument("--dtype", default="half", choices=("float", "half"))
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--hash-grid", action="store_true", help="a hash grid alone in place of a network")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--steps", type=int, default=0, help="learn an image with so many steps")
    parser.add_argument("--seeds", type=int, default=5, help="with --steps: so many first weights")
    parser.add_argument("--profile", action="store_true", help="one forward call and one with backward, for a profiler")
    parser.add_argument("--keep", metavar="MACHINE", default="", help="write the run, of the machine of this name")
    options = parser.parse_args()
    device = spy.create_torch_device(type=spy.DeviceType[options.device])
    clock = Clock(torch.cuda.synchronize, time.perf_counter) if options.device == "cuda" else Clock(lambda: None, time.process_time)
    if options.profile and options.device != "cuda":
        parser.error("--profile: only on CUDA")
    if options.hash_grid:
        compare_grids(device, options, clock)
        return
    network = nn.Network(device, INPUTS, OUTPUTS, width=WIDTH, hidden_layers=LAYERS, dtype=options.dtype)
    if options.steps:
        compare_losses(device, options)
        return
    dtype, where = network.weights.dtype, network.weights.device
    generator = torch.Generator().manual_seed(1)
    x = torch.rand(options.samples, INPUTS, generator=generator).to(where, dtype)
    seed = torch.randn(options.samples, OUTPUTS, generator=generator).to(where, dtype)
    if options.profile:
        profile(network, x, seed)
        return
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
        keep(run_of(options, kept, what="network"))


def run_of(options: argparse.Namespace, rows: dict[str, tuple[float, float]], what: str) -> dict[str, Any]:
    milliseconds = {name: {"forward": round(both[0], 4), "with backward": round(both[1], 4)} for name, both in rows.items()}
    return {"machine": options.keep, "device": options.device, "what": what, "samples": options.samples, "dtype": options.dtype,
            "milliseconds": milliseconds}  # fmt: skip


def keep(run: dict[str, Any]) -> None:
    """In place of a run of the same on the same machine and device, of the same dtype and number of samples."""
    same = ("machine", "device", "what", "samples", "dtype")
    record = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {"script": "benchmarks/networks.py", "runs": []}
    others = [old for old in record["runs"] if any(old[name] != run[name] for name in same)]
    RESULTS.write_text(json.dumps({**record, "runs": [*others, run]}, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
