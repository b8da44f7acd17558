"""Fits coloured Gaussians to a picture: the renderer is written in Slang, the training loop in torch.

    python torch_splatting.py [--device auto|cpu|cuda] [--steps 250] [--size 64] [--blobs 40] [--out .]

The picture is generated. Pictures before and after, beside the target, are saved where Pillow or matplotlib is
installed.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

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
    image = (torch.cat([p.detach().clamp(0, 1).cpu() for p in pictures], dim=1) * 255).to(torch.uint8).numpy()
    image = image.repeat(4, axis=0).repeat(4, axis=1)
    try:
        from PIL import Image  # pyright: ignore[reportMissingImports]

        Image.fromarray(image).save(path)
    except ImportError:
        try:
            import matplotlib.image  # pyright: ignore[reportMissingImports]
        except ImportError:
            return "no picture saved: install Pillow (pip install pillow)"
        matplotlib.image.imsave(path, image)
    return f"saved {path}"


def train(module: spy.Module, rows: torch.Tensor, target: torch.Tensor, steps: int) -> Any:
    """Moves `rows`; gives the first and the last picture."""
    size = target.shape[0]
    optimiser = torch.optim.Adam([rows], lr=0.02)
    pictures = []
    for step in range(steps):
        optimiser.zero_grad()
        picture = module.render(spy.grid((size, size)), spy.float2(size, size), rows)
        loss = ((picture - target) ** 2).mean()
        loss.backward()
        optimiser.step()
        if step % 50 == 0 or step == steps - 1:
            print(f"step {step:4}  mean squared error {loss.item():.5f}")
        pictures = [pictures[0] if pictures else picture.detach(), picture.detach()]
    return pictures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="auto", choices=("auto", "cpu", "cuda"))
    parser.add_argument("--steps", type=int, default=250)
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--blobs", type=int, default=40)
    parser.add_argument("--out", type=Path, default=Path())
    options = parser.parse_args()
    if not 1 <= options.blobs <= MOST_BLOBS:
        parser.error(f"--blobs takes 1 to {MOST_BLOBS}")
    kind = spy.DeviceType.automatic if options.device == "auto" else spy.DeviceType[options.device]
    device = spy.create_torch_device(type=kind)
    module = spy.Module.load_from_file(device, Path(__file__).with_name("splat.slang"))
    where = torch.device("cuda" if device.info.type == spy.DeviceType.cuda else "cpu")
    target = target_picture(options.size, where)
    rows = first_blobs(options.blobs, where).requires_grad_(True)
    start = time.perf_counter()
    before, after = train(module, rows, target, options.steps)
    print(f"{options.steps} steps in {time.perf_counter() - start:.1f} s on {where}")
    print(save(options.out / "splatting.png", [before, after, target]))


if __name__ == "__main__":
    main()
