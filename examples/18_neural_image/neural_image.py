"""Teaches a picture to a small network: a hash grid and two layers, position in, colour out.

    python neural_image.py [--device cpu] [--steps 250] [--size 192] [--samples 8192] [--loop own|torch|both] [--out .]

The same network learns in a loop of Tensors, with slangpy's Adam, and as a torch module, with torch's. Then a Slang function
that takes the network as a parameter draws it, beside the target.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
from pathlib import Path
from typing import Any

import numpy as np

import slangpy as spy
from slangpy import neural

HAS_TORCH = importlib.util.find_spec("torch") is not None
if HAS_TORCH:
    import torch

    from slangpy.neural import nn

SHAPE: dict[str, Any] = {
    "width": 32, "hidden_layers": 2, "activation": "relu", "output_activation": "sigmoid",
    "encoding": neural.HashGrid(levels_count=8, per_level=2, log2_entries=12, coarsest=8, growth=1.5),
}  # fmt: skip
RATE = 1e-2
DRAW = """
import slangpy;
import slangpy.neural;

float3 draw(int2 pixel, int2 size, {network} network)
{{
    float at[2] = {{ (pixel.x + 0.5) / size.x, (pixel.y + 0.5) / size.y }};
    const float colour[3] = network.eval(at);
    return float3(colour[0], colour[1], colour[2]);
}}
"""


def target_at(x: np.ndarray) -> np.ndarray:
    """(n, 3) colours at (n, 2) positions: waves that meet, with a ring of checks."""
    u, v = x[:, 0], x[:, 1]
    radius = np.hypot(u - 0.5, v - 0.5)
    waves = 0.5 + 0.5 * np.sin(60 * radius * radius + 9 * u)
    checks = (np.floor(24 * u) + np.floor(24 * v)) % 2
    inside = (radius > 0.22) & (radius < 0.34)
    colours = np.stack([waves, 0.5 * waves + 0.4 * v, 0.9 - 0.6 * waves * u], axis=1)
    return np.where(inside[:, None], 0.15 + 0.7 * checks[:, None] * np.array([1, 0.8, 0.3]), colours).astype(np.float32)


def batches(steps: int, samples: int) -> Any:
    """Random positions with their colours."""
    random = np.random.default_rng(1)
    for _ in range(steps):
        x = random.random((samples, 2), np.float32)
        yield x, target_at(x)


def report(name: str, step: int, loss: float) -> None:
    print(f"{name:5} step {step:4}  mean squared error {loss:.5f}", flush=True)


def train_own(device: spy.Device, steps: int, samples: int) -> neural.Network:
    network = neural.Network(device, 2, 3, **SHAPE)
    optimiser = neural.Adam(network, rate=RATE)
    for step, (x, colours) in enumerate(batches(steps, samples)):
        difference = network(x).to_numpy() - colours
        network.backward(x, 2 / difference.size * difference)
        optimiser.step()
        if step % 50 == 0 or step == steps - 1:
            report("own", step, float((difference**2).mean()))
    return network


def train_torch(device: spy.Device, steps: int, samples: int) -> Any:
    network = nn.Network(device, 2, 3, **SHAPE)
    where = network.weights.device
    optimiser = torch.optim.Adam(network.parameters(), lr=RATE, betas=(0.9, 0.99), eps=1e-10)
    for step, (x, colours) in enumerate(batches(steps, samples)):
        optimiser.zero_grad()
        loss = ((network(torch.from_numpy(x).to(where)) - torch.from_numpy(colours).to(where)) ** 2).mean()
        loss.backward()
        optimiser.step()
        if step % 50 == 0 or step == steps - 1:
            report("torch", step, loss.item())
    return network.requires_grad_(False)


def draw(device: spy.Device, network: Any, size: int) -> np.ndarray:
    """(size, size, 3), by a function that has the network as a parameter."""
    module = spy.Module.load_from_source(device, "neural_image_draw", DRAW.format(network=network.type_name))
    picture = module.draw(spy.grid((size, size)), spy.int2(size, size), network, _result="numpy")
    return np.asarray(picture, np.float32)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--steps", type=int, default=250)
    parser.add_argument("--size", type=int, default=192)
    parser.add_argument("--samples", type=int, default=8192)
    parser.add_argument("--loop", choices=("own", "torch", "both"), default="both")
    parser.add_argument("--out", type=Path, default=Path())
    options = parser.parse_args()
    device = spy.create_device(options.device)
    pictures = []
    for name, train in (("own", train_own), ("torch", train_torch)):
        if options.loop not in (name, "both") or (name == "torch" and not HAS_TORCH):
            continue
        start = time.perf_counter()
        network = train(device, options.steps, options.samples)
        print(f"{name}: {options.steps} steps in {time.perf_counter() - start:.1f} s")
        pictures.append(draw(device, network, options.size))
    axis = (np.arange(options.size, dtype=np.float32) + 0.5) / options.size
    positions = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    target = target_at(positions).reshape(options.size, options.size, 3)
    for picture in pictures:
        print(f"signal to noise of the picture: {-10 * np.log10(((picture - target) ** 2).mean()):.1f} dB")
    path = options.out / "neural_image.png"
    spy.save_image(path, np.concatenate([*pictures, target], axis=1), srgb=False)
    print(f"saved {path}")


if __name__ == "__main__":
    main()
