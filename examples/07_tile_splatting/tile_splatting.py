"""A tile-based rasteriser of Gaussian splats with kernels written the CUDA way: forward, backward, and torch's autograd.

    python tile_splatting.py [--device cuda] [--splats 200] [--size 64] [--steps 20] [--time] [--out FOLDER]

Prints how far image and gradients are from a plain torch version in float64, then fits splats to an image.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import torch

import slangpy

TILE = 16
LEAST = 1 / 255
m = slangpy.loadModule(Path(__file__).with_name("tiles.slang"))
Tensors = tuple[torch.Tensor, ...]


def make_tiles(splats: Tensors, depth: torch.Tensor, width: int, height: int) -> Tensors:
    """The splats that may touch each tile, nearest first: ids, and for each tile where its ids begin and end."""
    mean, conic, _, opacity = (t.detach() for t in splats)
    xx, xy, yy = conic.unbind(1)
    flattest = (xx + yy) / 2 - (((xx - yy) / 2) ** 2 + xy**2).sqrt()  # the smaller eigenvalue
    radius = (2 * (opacity / LEAST).clamp(min=1).log() / flattest.clamp(min=1e-8)).sqrt()
    across, down = -(-width // TILE), -(-height // TILE)
    limit = torch.tensor([across, down], device=mean.device)
    low = ((mean - radius[:, None]) / TILE).floor().long().clamp(min=0).minimum(limit)
    high = ((mean + radius[:, None]) / TILE).floor().long().add(1).clamp(min=0).minimum(limit)
    sizes = (high - low).clamp(min=0)
    counts = sizes.prod(1)
    ids = torch.repeat_interleave(counts)
    at = torch.arange(len(ids), device=mean.device) - (counts.cumsum(0) - counts)[ids]
    wide = sizes[ids, 0].clamp(min=1)
    tile = (low[ids, 1] + at // wide) * across + low[ids, 0] + at % wide
    nearest = depth[ids].argsort(stable=True)
    order = nearest[tile[nearest].argsort(stable=True)]
    ends = torch.bincount(tile, minlength=across * down).cumsum(0)
    ranges = torch.stack([torch.cat([ends.new_zeros(1), ends[:-1]]), ends], 1)
    return ids[order].int(), ranges.int().contiguous()


class Draw(torch.autograd.Function):
    """Splats (mean, conic, color, opacity) to an image of height x width x 3."""

    @staticmethod
    def forward(ctx: Any, tiles: Tensors, size: tuple[int, int], *splats: torch.Tensor) -> torch.Tensor:
        width, height = size
        image = torch.zeros(height, width, 3, device=splats[0].device)
        left = torch.ones(height, width, device=image.device)
        ctx.grid = (-(-width // TILE), -(-height // TILE), 1)
        m.draw(splats=splats, tiles=tiles, image=image, left=left).launchRaw((TILE, TILE, 1), ctx.grid)
        ctx.save_for_backward(left, *tiles, *splats)
        return image

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:  # type: ignore[override]
        left, order, ranges, *splats = ctx.saved_tensors
        grads = tuple(torch.zeros_like(t) for t in splats)
        m.draw_bwd(splats=tuple(splats), tiles=(order, ranges), grads=grads, left=left, imageGrad=gradient.contiguous()).launchRaw(
            (TILE, TILE, 1), ctx.grid
        )
        return (None, None, *grads)


def draw(splats: Tensors, depth: torch.Tensor, size: tuple[int, int]) -> torch.Tensor:
    return Draw.apply(make_tiles(splats, depth, *size), size, *splats)


def draw_plainly(splats: Tensors, depth: torch.Tensor, size: tuple[int, int]) -> torch.Tensor:
    """The same with torch alone: every splat at every pixel."""
    mean, conic, color, opacity = (t[depth.argsort(stable=True)] for t in splats)
    x = torch.arange(size[0], device=mean.device) + 0.5
    y = torch.arange(size[1], device=mean.device) + 0.5
    dx, dy = x[None, :, None] - mean[:, 0], y[:, None, None] - mean[:, 1]
    power = -0.5 * (conic[:, 0] * dx * dx + conic[:, 2] * dy * dy) - conic[:, 1] * dx * dy
    alpha = (opacity * power.exp()).clamp(max=0.99)
    alpha = torch.where(alpha < LEAST, 0, alpha)
    left = torch.cat([torch.ones_like(alpha[..., :1]), (1 - alpha).cumprod(2)[..., :-1]], 2)
    return (left * alpha) @ color


def random_splats(count: int, size: tuple[int, int], device: str) -> tuple[Tensors, torch.Tensor]:
    random = torch.Generator().manual_seed(1)
    mean = torch.rand(count, 2, generator=random) * torch.tensor(size)
    spread = torch.randn(count, 2, 2, generator=random) * min(size) / 30
    inverse = (spread @ spread.mT + torch.eye(2)).inverse()
    conic = torch.stack([inverse[:, 0, 0], inverse[:, 0, 1], inverse[:, 1, 1]], 1)
    color, opacity = torch.rand(count, 3, generator=random), torch.rand(count, generator=random) * 0.8 + 0.1
    depth = torch.rand(count, generator=random)
    return tuple(t.to(device) for t in (mean, conic, color, opacity)), depth.to(device)


def compare(splats: Tensors, depth: torch.Tensor, size: tuple[int, int]) -> None:
    ours = tuple(t.clone().requires_grad_() for t in splats)
    plain = tuple(t.double().requires_grad_() for t in splats)
    image, expected = draw(ours, depth, size), draw_plainly(plain, depth, size)
    weight = torch.linspace(-1, 1, image.numel(), dtype=torch.float64, device=image.device).reshape(image.shape)
    (image * weight.float()).sum().backward()
    (expected * weight).sum().backward()
    print(f"image: error {(image - expected).abs().max().item():.1e}")
    for name, a, b in zip(("mean", "conic", "color", "opacity"), ours, plain, strict=True):
        assert a.grad is not None and b.grad is not None
        print(f"gradient of {name}: error {((a.grad - b.grad).abs().max() / b.grad.abs().max()).item():.1e}")


def fit(splats: Tensors, depth: torch.Tensor, size: tuple[int, int], steps: int, folder: Path) -> None:
    """Colors and opacities of gray splats back to what they were. Saves a picture of them before, the target, and after."""
    target = draw(splats, depth, size)
    mean, conic, color, opacity = splats
    free = [torch.full_like(color, 0.5).requires_grad_(), torch.full_like(opacity, 0.5).requires_grad_()]
    before = draw((mean, conic, *free), depth, size).detach()
    optimizer = torch.optim.Adam(free, lr=0.05)
    for step in range(steps + 1):
        loss = (draw((mean, conic, *free), depth, size) - target).square().mean()
        if step in (0, steps):
            print(f"step {step}: loss {loss.item():.6f}")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    after = draw((mean, conic, *free), depth, size).detach()
    slangpy.save_image(folder / "tile_splatting.png", torch.cat([before, target, after], dim=1).clamp(0, 1))


def measure(splats: Tensors, depth: torch.Tensor, size: tuple[int, int]) -> None:
    leaves = tuple(t.clone().requires_grad_() for t in splats)
    tiles = make_tiles(splats, depth, *size)
    gradient = torch.ones(size[1], size[0], 3, device=leaves[0].device)
    for what in ("warm up", "measured"):
        wait(gradient)
        begin = time.perf_counter()
        image = Draw.apply(tiles, size, *leaves)
        wait(gradient)
        middle = time.perf_counter()
        image.backward(gradient)
        wait(gradient)
        end = time.perf_counter()
        print(f"{what}: forward {(middle - begin) * 1e3:.2f} ms, backward {(end - middle) * 1e3:.2f} ms")


def wait(tensor: torch.Tensor) -> None:
    if tensor.is_cuda:
        torch.cuda.synchronize()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--splats", type=int, default=200)
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--time", action="store_true")
    parser.add_argument("--out", type=Path, default=Path(), help="folder of the picture")
    options = parser.parse_args()
    size = (options.size, options.size * 3 // 4)
    splats, depth = random_splats(options.splats, size, options.device)
    if options.time:
        measure(splats, depth, size)
    else:
        compare(splats, depth, size)
        fit(splats, depth, size, options.steps, options.out)
