"""A training step on several GPUs: a function of ours and the same in torch, each under torch's DistributedDataParallel.

    python benchmarks/many_gpus.py [--gpus 4] [--bits 20 24 26 28] [--keep "4 H100"]
    python benchmarks/many_gpus.py --device cpu --gpus 2 --bits 10 12      (gloo: shows that it runs, nothing more)

One process each. A step is forward, backward and the sum of the gradients over all GPUs, of `2^bits` weights in float and as many
inputs. Prints the least of all repetitions in milliseconds, of ten steps in a row: alone on one GPU without the sum, and together;
what `all_reduce` of as many floats takes beside it; and the share of the ideal, alone over together. --keep writes the run to
results/many_gpus.json, under that name of the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel

import slangpy as spy

RESULTS = Path(__file__).with_name("results") / "many_gpus.json"
SOURCE = "[Differentiable] float step(float w, no_diff float x) { return w * w * x + w; }"
_IN_A_ROW, _REPEATS = 10, 12


class Ours(torch.nn.Module):
    """The function in Slang."""

    def __init__(self, weights: torch.Tensor, device: spy.Device) -> None:
        super().__init__()
        self.weights = torch.nn.Parameter(weights.clone())
        self.step = spy.Module.load_from_source(device, "many_gpus", SOURCE).step

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.step(self.weights, x)


class Torch(torch.nn.Module):
    """The function in torch."""

    def __init__(self, weights: torch.Tensor) -> None:
        super().__init__()
        self.weights = torch.nn.Parameter(weights.clone())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.weights * self.weights * x + self.weights


def least(run: Callable[[], Any], wait: Callable[[], Any]) -> float:
    """Milliseconds of one of ten runs in a row."""
    times = []
    for _ in range(_REPEATS):
        wait()
        begin = time.perf_counter()
        for _ in range(_IN_A_ROW):
            run()
        wait()
        times.append((time.perf_counter() - begin) / _IN_A_ROW)
    return 1e3 * min(times)


def stepper(model: torch.nn.Module, x: torch.Tensor, seed: torch.Tensor) -> Callable[[], None]:
    def run() -> None:
        model.zero_grad(set_to_none=False)
        model(x).backward(seed)

    return run


def check(model: torch.nn.Module, weights: torch.Tensor, x: torch.Tensor, seed: torch.Tensor, ranks: int) -> None:
    """The mean of the gradients over all ranks, against float64."""
    stepper(model, x, seed)()
    expected = seed.double() * (2 * weights.double() * x.double() + 1)
    if ranks > 1:
        dist.all_reduce(expected)
    (parameter,) = model.parameters()
    assert parameter.grad is not None
    error = (parameter.grad.double() - expected / ranks).abs().max() / expected.abs().max()
    assert error < 1e-5, f"gradients differ from float64 by {error:.1e}"


def rank(number: int, args: argparse.Namespace, port: int) -> None:
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    is_cuda = args.device == "cuda"
    where = torch.device("cuda", number) if is_cuda else torch.device("cpu")
    if is_cuda:
        torch.cuda.set_device(where)
    dist.init_process_group("nccl" if is_cuda else "gloo", rank=number, world_size=args.gpus)
    device = spy.create_torch_device() if is_cuda else spy.create_device(spy.DeviceType.cpu)
    wait = torch.cuda.synchronize if is_cuda else (lambda: None)
    rows = []
    for bits in args.bits:
        generator = torch.Generator(where).manual_seed(number)
        weights = torch.rand(1 << bits, device=where, generator=torch.Generator(where).manual_seed(99))
        x, seed = (torch.rand(1 << bits, device=where, generator=generator) for _ in range(2))
        row: dict[str, Any] = {"weights": 1 << bits}
        for name, made in (("slangpy", Ours(weights, device)), ("torch", Torch(weights))):
            check(made, weights, x, seed, 1)
            alone = least(stepper(made, x, seed), wait)
            together = DistributedDataParallel(made, gradient_as_bucket_view=True)
            check(together, weights, x, seed, args.gpus)
            dist.barrier()
            row[f"{name}, alone"], row[f"{name}, together"] = round(alone, 4), round(least(stepper(together, x, seed), wait), 4)
            del together, made
        dist.barrier()
        row["all_reduce"] = round(least(lambda values=weights: dist.all_reduce(values), wait), 4)
        rows.append(row)
        if number == 0:
            share = {name: row[f"{name}, alone"] / row[f"{name}, together"] for name in ("slangpy", "torch")}
            print(f"2^{bits}: " + "  ".join(f"{name} {value}" for name, value in row.items() if name != "weights"))
            print(f"    share of the ideal: slangpy {share['slangpy']:.3f}, torch {share['torch']:.3f}", flush=True)
    if number == 0 and args.keep:
        keep({"machine": args.keep, "device": args.device, "gpus": args.gpus, "milliseconds": rows})
    dist.destroy_process_group()


def keep(run: dict[str, Any]) -> None:
    """In place of a run of the same machine."""
    record = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {"script": "benchmarks/many_gpus.py", "runs": []}
    others = [old for old in record["runs"] if old["machine"] != run["machine"]]
    RESULTS.write_text(json.dumps({**record, "runs": [*others, run]}, indent=1) + "\n", "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda", choices=("cpu", "cuda"))
    parser.add_argument("--gpus", type=int, default=0, help="default: all")
    parser.add_argument("--bits", type=int, nargs="*", default=[20, 24, 26, 28])
    parser.add_argument("--keep", metavar="MACHINE", default="", help="write the run, of the machine of this name")
    args = parser.parse_args()
    args.gpus = args.gpus or torch.cuda.device_count()
    if args.gpus < 2:
        raise SystemExit("this needs two GPUs; --device cpu --gpus 2 shows that it runs")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    mp.spawn(rank, (args, port), args.gpus)


if __name__ == "__main__":
    main()
