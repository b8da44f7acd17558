"""One process of a data-parallel run; test_multi_gpu.py starts several with torchrun.

Each process has a part of the batch. The averaged gradients must be those of one process with the whole batch.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import slangpy as spy

SOURCE = """
[Differentiable] float polynomial(float a, float b, float c, float x) { return a * x * x + b * x + c; }
"""


class Layer(torch.nn.Module):
    def __init__(self, polynomial: Any, where: torch.device) -> None:
        super().__init__()
        self.polynomial = polynomial
        self.a = torch.nn.Parameter(torch.tensor([0.5], device=where))
        self.b = torch.nn.Parameter(torch.linspace(-1, 1, 8, device=where))

    def forward(self, x: torch.Tensor) -> Any:
        return self.polynomial(self.a, self.b, 0.25, x)


def main() -> None:
    kind = sys.argv[1]
    rank = int(os.environ["LOCAL_RANK"])
    if kind == "cuda":
        torch.cuda.set_device(rank)
    dist.init_process_group("nccl" if kind == "cuda" else "gloo")
    device = spy.create_torch_device(type=spy.DeviceType[kind])
    where = device.torch_device
    assert where == (torch.device("cuda", rank) if kind == "cuda" else torch.device("cpu"))
    polynomial = spy.Module.load_from_source(device, "data_parallel", SOURCE).polynomial
    layer = Layer(polynomial, where)
    generator = torch.Generator().manual_seed(5)
    batch = torch.rand(16 * dist.get_world_size(), 8, generator=generator).to(where)
    parallel = DistributedDataParallel(layer, device_ids=[rank] if kind == "cuda" else None)
    mine = batch.chunk(dist.get_world_size())[dist.get_rank()]
    (parallel(mine) ** 2).mean().backward()

    whole = Layer(polynomial, where)
    (whole(batch) ** 2).mean().backward()
    for got, expected in zip(layer.parameters(), whole.parameters(), strict=True):
        torch.testing.assert_close(got.grad, expected.grad, rtol=1e-5, atol=1e-6)
    if kind == "cuda":
        assert torch.cuda.current_device() == rank
    # One write with its end of line: print() writes that apart, and another process may write between.
    sys.stdout.write(f"rank {dist.get_rank()} of {dist.get_world_size()} on {where}: gradients agree\n")
    sys.stdout.flush()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
