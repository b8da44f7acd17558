"""Finds the heights of a relief from its picture, by gradients through rays: on any device, without a rasteriser.

    python fit_relief.py [--device cpu] [--steps 60] [--size 128] [--out .]

In each step the hierarchy is refitted to the vertices, rays find what each pixel shows and which lamps reach it, and torch's
autograd asks the shading for the gradient of every vertex.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import torch

import slangpy as spy
from slangpy import rays

SMOOTH = 1.5  # vertices


def grid(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """A flat sheet of count x count vertices, (n, 3), and its triangles, (m, 3)."""
    axis = torch.linspace(-1, 1, count)
    y, x = torch.meshgrid(axis, axis, indexing="ij")
    first = (torch.arange(count - 1)[:, None] * count + torch.arange(count - 1)).reshape(-1)
    triangles = torch.stack([first, first + 1, first + count, first + count, first + 1, first + count + 1], -1)
    return torch.stack([x, y, torch.zeros_like(x)], -1).reshape(-1, 3), triangles.reshape(-1, 3).int()


def waves(sheet: torch.Tensor) -> torch.Tensor:
    """What is looked for: rings, higher on one side."""
    x, y, _ = sheet.unbind(1)
    radius = torch.hypot(x - 0.1, y + 0.05)
    return torch.stack([x, y, 0.12 * torch.cos(9 * radius) * torch.exp(-radius) + 0.05 * x], -1)


def lift(sheet: torch.Tensor, heights: torch.Tensor) -> torch.Tensor:
    """The sheet with heights, (count, count), which are smoothed: each vertex alone would go its own way."""
    weights = torch.exp(-0.5 * (torch.arange(-4, 5) / SMOOTH) ** 2)
    weights = (weights / weights.sum()).to(sheet.device)
    smooth = heights[None, None]
    for shape, padding in (((1, 1, 9, 1), (0, 0, 4, 4)), ((1, 1, 1, 9), (4, 4, 0, 0))):
        smooth = torch.nn.functional.conv2d(torch.nn.functional.pad(smooth, padding, "replicate"), weights.view(shape))
    return torch.cat([sheet[:, :2], smooth.reshape(-1, 1)], dim=1)


def camera(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Rays from above, a little from below the middle: (size, size, 3) each."""
    axis = (np.arange(size) + 0.5) / size * 2 - 1
    origin = np.broadcast_to(np.float32([0, -0.8, 3]), (size, size, 3))
    ends = np.stack([*np.meshgrid(axis, -axis), np.zeros((size, size))], -1) * 0.95
    return np.ascontiguousarray(origin), (ends - origin).astype(np.float32)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", help="cpu, vulkan, cuda")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--size", type=int, default=128, help="width and height")
    parser.add_argument("--vertices", type=int, default=48, help="along each side")
    parser.add_argument("--out", type=Path, default=Path())
    options = parser.parse_args()
    device = spy.create_torch_device(type=spy.DeviceType[options.device])
    torch.set_num_threads(1)  # small tensors: threads that spin would only take the cores from the device
    module = spy.Module.load_from_file(device, Path(__file__).with_name("relief_rays.slang"))
    sheet, triangles = (part.to(device.torch_device) for part in grid(options.vertices))
    origins, directions = (torch.from_numpy(part).to(device.torch_device) for part in camera(options.size))
    scene = rays.Scene(device, rays.Mesh(sheet, triangles), updatable=True)

    def picture(vertices: torch.Tensor) -> torch.Tensor:
        """(size, size, 3), part of torch's graph."""
        scene.refit(vertices)
        return module.shade(origins, directions, scene)

    before, target = picture(sheet), picture(waves(sheet))
    heights = torch.zeros(options.vertices, options.vertices, device=sheet.device, requires_grad=True)
    optimiser = torch.optim.Adam([heights], lr=0.02)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, max(options.steps, 1))
    start = time.perf_counter()
    for step in range(options.steps + 1):
        seen = picture(lift(sheet, heights))
        loss = ((seen - target) ** 2).mean()
        if step % 20 == 0 or step == options.steps:
            error = (lift(sheet, heights) - waves(sheet))[:, 2]
            print(f"step {step:3}  mean squared error {loss.item():.6f}  of heights {(error - error.mean()).std().item():.4f}")
        if step < options.steps:
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
    print(f"{1e3 * (time.perf_counter() - start) / (options.steps + 1):.1f} ms a step on {device.info.adapter_name}")
    spy.save_image(options.out / "fit_relief.png", torch.cat([before, target, seen.detach()], dim=1))
    print(f"before, target, after: saved {options.out / 'fit_relief.png'}")


if __name__ == "__main__":
    main()
