"""Teaches a picture to a small network that is written in Slang: position in, colour out.

    python torch_mlp.py [--device auto|cpu|cuda] [--steps 200] [--size 64] [--out .]

The weights are torch tensors that every pixel reads whole; torch's optimiser moves them. The first picture is compared
with the same network in torch. Pictures before and after, beside the target, are saved where Pillow or matplotlib is
installed.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from pathlib import Path

import torch

import slangpy as spy

FEATURES, HIDDEN = 16, 16  # as in network.slang


def target_picture(size: int, device: torch.device) -> torch.Tensor:
    """(size, size, 3): rings around a point, tinted across the picture."""
    axis = (torch.arange(size, device=device) + 0.5) / size
    y, x = torch.meshgrid(axis, axis, indexing="ij")
    rings = 0.5 + 0.5 * torch.sin(14 * torch.hypot(x - 0.4, y - 0.55))
    return torch.stack([rings * (0.3 + 0.7 * x), rings * (0.9 - 0.5 * y), 0.3 + 0.6 * (1 - rings)], dim=-1)


def first_weights(device: torch.device) -> list[torch.Tensor]:
    """Three matrices of shape (outputs, inputs + 1), the bias in the last column."""
    generator = torch.Generator().manual_seed(3)
    shapes = [(HIDDEN, FEATURES + 1), (HIDDEN, HIDDEN + 1), (3, HIDDEN + 1)]
    weights = [torch.randn(shape, generator=generator) / math.sqrt(shape[1]) for shape in shapes]
    return [w.to(device).requires_grad_(True) for w in weights]


def render(module: spy.Module, size: int, weights: list[torch.Tensor]) -> torch.Tensor:
    return module.render(spy.grid((size, size)), spy.float2(size, size), *weights)


def render_in_torch(size: int, weights: list[torch.Tensor]) -> torch.Tensor:
    """What network.slang computes."""
    axis = (torch.arange(size, device=weights[0].device) + 0.5) / size
    y, x = torch.meshgrid(axis, axis, indexing="ij")
    angles = [(x * math.pi * 2**k, y * math.pi * 2**k) for k in range(FEATURES // 4)]
    values = torch.stack([f(a) for pair in angles for a in pair for f in (torch.sin, torch.cos)], dim=-1)
    for layer in weights[:-1]:
        values = torch.nn.functional.leaky_relu(values @ layer[:, :-1].T + layer[:, -1], 0.01)
    return values @ weights[-1][:, :-1].T + weights[-1][:, -1]


def show_progress(done: int, total: int, loss: float) -> None:
    """A bar in the terminal; nothing where the output goes to a file."""
    if sys.stderr.isatty():
        filled = 30 * done // total
        print(f"\r[{'#' * filled}{'.' * (30 - filled)}] {done}/{total}  error {loss:.5f}", end="", file=sys.stderr)
        if done == total:
            print(file=sys.stderr)


def save(path: Path, pictures: list[torch.Tensor]) -> str:
    """One picture of several beside each other; says where it went."""
    image = torch.cat([p.detach() for p in pictures], dim=1).repeat_interleave(4, 0).repeat_interleave(4, 1)
    spy.save_image(path, image, srgb=False)
    return f"saved {path}"


def train(module: spy.Module, weights: list[torch.Tensor], target: torch.Tensor, steps: int) -> float:
    """Moves the weights; gives the last mean squared error."""
    optimiser = torch.optim.Adam(weights, lr=0.01)
    loss = torch.zeros(())
    for step in range(steps):
        optimiser.zero_grad()
        loss = ((render(module, target.shape[0], weights) - target) ** 2).mean()
        loss.backward()
        optimiser.step()
        show_progress(step + 1, steps, loss.item())
        if step % 50 == 0 or step == steps - 1:
            print(f"step {step:4}  mean squared error {loss.item():.5f}")
    return loss.item()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="auto", choices=("auto", "cpu", "cuda"))
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--out", type=Path, default=Path())
    options = parser.parse_args()
    kind = spy.DeviceType.automatic if options.device == "auto" else spy.DeviceType[options.device]
    device = spy.create_torch_device(type=kind)
    module = spy.Module.load_from_file(device, Path(__file__).with_name("network.slang"))
    where = device.torch_device
    target = target_picture(options.size, where)
    weights = first_weights(where)
    before = render(module, options.size, weights)
    difference = (before - render_in_torch(options.size, weights)).abs().max().item()
    print(f"largest difference from the same network in torch: {difference:.1e}")
    start = time.perf_counter()
    train(module, weights, target, options.steps)
    print(f"{options.steps} steps in {time.perf_counter() - start:.1f} s on {where}")
    print(save(options.out / "mlp.png", [before, render(module, options.size, weights), target]))


if __name__ == "__main__":
    main()
