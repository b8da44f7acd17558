"""Fits coloured Gaussians to a picture: the renderer is written in Slang, the training loop in torch.

    python torch_splatting.py [--device auto|cpu|cuda] [--steps 250] [--size 64] [--blobs 40] [--compare 30] [--out .]

The picture is generated. The first steps are run again with the same formula in torch, for their errors and time. Pictures
before and after, beside the target, are saved where Pillow or matplotlib is installed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch

import slangpy as spy

MOST_BLOBS = 64  # as in splat.slang


def target_picture(size: int, device: torch.device) -> torch.Tensor:
    """(size, size, 3): a disc and a tilted band on a gradient."""
    axis = (torch.arange(size, device=device) + 0.5) / size
    y, x = torch.meshgrid(axis, axis, indexing="ij")
    picture = torch.stack([0.15 + 0.3 * x, 0.2 + 0.2 * y, 0.45 - 0.2 * x], dim=-1)
    disc = torch.sigmoid((0.22 - torch.hypot(x - 0.35, y - 0.4)) * 60)[..., None]
    band = torch.sigmoid((0.06 - (0.8 * x + 0.6 * y - 0.95).abs()) * 60)[..., None]
    picture = picture + disc * (torch.tensor([0.95, 0.7, 0.2], device=device) - picture)
    return picture + band * (torch.tensor([0.2, 0.75, 0.55], device=device) - picture)


def first_blobs(count: int, device: torch.device) -> torch.Tensor:
    """(count, 9): rows as splat.slang loads them, at random places."""
    generator = torch.Generator().manual_seed(7)
    rows = torch.zeros(count, 9)
    rows[:, 0:2] = torch.rand(count, 2, generator=generator)
    rows[:, 2:4] = -2.0
    rows[:, 4] = 3.14 * torch.rand(count, generator=generator)
    rows[:, 6:9] = torch.rand(count, 3, generator=generator)
    return rows.to(device)


def save(path: Path, pictures: list[torch.Tensor]) -> str:
    """One picture of several beside each other; says where it went."""
    image = torch.cat([p.detach() for p in pictures], dim=1).repeat_interleave(4, 0).repeat_interleave(4, 1)
    spy.save_image(path, image, srgb=False)
    return f"saved {path}"


def render_in_torch(rows: torch.Tensor, size: int) -> torch.Tensor:
    """What splat.slang computes: (size, size, 3)."""
    axis = (torch.arange(size, device=rows.device) + 0.5) / size
    y, x = torch.meshgrid(axis, axis, indexing="ij")
    centre_x, centre_y, log_x, log_y, angle, opacity = (column[:, None, None] for column in rows[:, :6].unbind(1))
    dx, dy = x - centre_x, y - centre_y
    u = (torch.cos(angle) * dx + torch.sin(angle) * dy) * torch.exp(-log_x)
    v = (torch.cos(angle) * dy - torch.sin(angle) * dx) * torch.exp(-log_y)
    alpha = torch.sigmoid(opacity) * torch.exp(-0.5 * (u * u + v * v))
    passed = torch.cumprod(1 - alpha, dim=0)
    through = torch.cat([torch.ones_like(passed[:1]), passed[:-1]])
    return torch.einsum("bhw,bc->hwc", through * alpha, rows[:, 6:9])


def show_progress(done: int, total: int, loss: float) -> None:
    """A bar in the terminal; nothing where the output goes to a file."""
    if sys.stderr.isatty():
        filled = 30 * done // total
        print(f"\r[{'#' * filled}{'.' * (30 - filled)}] {done}/{total}  error {loss:.5f}", end="", file=sys.stderr)
        if done == total:
            print(file=sys.stderr)


def train(
    render: Callable[[torch.Tensor], torch.Tensor], rows: torch.Tensor, target: torch.Tensor, steps: int, report: bool
) -> tuple[list[float], float]:
    """Moves `rows`; gives the mean squared error of each step, and the seconds of a step (but the first)."""
    optimiser = torch.optim.Adam([rows], lr=0.02)
    errors: list[float] = []
    start = time.perf_counter()
    for step in range(steps):
        optimiser.zero_grad()
        loss = ((render(rows) - target) ** 2).mean()
        loss.backward()
        optimiser.step()
        errors.append(loss.item())
        if step == 0:  # which compiles
            start = time.perf_counter()
        show_progress(step + 1, steps, errors[-1])
        if report and (step % 50 == 0 or step == steps - 1):
            print(f"step {step:4}  mean squared error {errors[-1]:.5f}")
    return errors, (time.perf_counter() - start) / max(steps - 1, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="auto", choices=("auto", "cpu", "cuda"))
    parser.add_argument("--steps", type=int, default=250)
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--blobs", type=int, default=40)
    parser.add_argument("--compare", type=int, default=30, help="steps to run in torch as well")
    parser.add_argument("--out", type=Path, default=Path())
    options = parser.parse_args()
    if not 1 <= options.blobs <= MOST_BLOBS:
        parser.error(f"--blobs takes 1 to {MOST_BLOBS}")
    kind = spy.DeviceType.automatic if options.device == "auto" else spy.DeviceType[options.device]
    device = spy.create_torch_device(type=kind)
    module = spy.Module.load_from_file(device, Path(__file__).with_name("splat.slang"))
    where = device.torch_device
    size = options.size
    target = target_picture(size, where)
    rows = first_blobs(options.blobs, where).requires_grad_(True)

    def render(rows: torch.Tensor) -> torch.Tensor:
        return module.render(spy.grid((size, size)), spy.float2(size, size), rows)

    before = render(rows).detach()
    errors, seconds = train(render, rows, target, options.steps, True)
    other = first_blobs(options.blobs, where).requires_grad_(True)
    steps = min(options.compare, options.steps)
    if steps:
        other_errors, other_seconds = train(lambda rows: render_in_torch(rows, size), other, target, steps, False)
        print(f"Slang: error {errors[steps - 1]:.5f} after {steps} steps, {1e3 * seconds:.2f} ms a step on {where}")
        print(f"torch: error {other_errors[-1]:.5f} after {steps} steps, {1e3 * other_seconds:.2f} ms a step")
        print(f"torch / Slang: error {other_errors[-1] / errors[steps - 1]:.3f}, time {other_seconds / seconds:.2f}")
    print(save(options.out / "splatting.png", [before, render(rows), target]))


if __name__ == "__main__":
    main()
