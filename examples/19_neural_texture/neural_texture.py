"""Compresses the textures of a material into one small network, and lights a surface with what the network remembers.

    python neural_texture.py [--device cpu] [--steps 250] [--size 256] [--samples 8192] [--loop own|torch|both] [--out .]

Seven channels (colour, normal, roughness, occlusion) are learnt together, in a loop of Tensors with slangpy's Adam and as a
torch module with torch's. The numbers are then kept as halves, and a Slang function evaluates the network where it would
read textures. Beside it: the textures, and textures made small until they take no more memory than the network.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
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

CHANNELS = 7
RATE = 1e-2
SHADE = """
import slangpy;
import slangpy.neural;

float3 lit(float m[7], float2 uv)
{{
    const float2 slope = float2(m[3], m[4]) * 2 - 1;
    const float3 normal = normalize(float3(slope, sqrt(max(1 - dot(slope, slope), 0.01f))));
    const float3 to_light = normalize(float3(0.3f - uv.x, 0.25f - uv.y, 0.5f)), half_way = normalize(to_light + float3(0, 0, 1));
    const float shine = pow(max(dot(normal, half_way), 1e-3f), 2 / max(m[5] * m[5], 0.01f));
    return m[6] * (float3(m[0], m[1], m[2]) * max(dot(normal, to_light), 0) + 0.3f * (1 - m[5]) * shine);
}}
float2 centre(int2 pixel, int2 size) {{ return (float2(pixel) + 0.5f) / float2(size); }}

float3 from_network(int2 pixel, int2 size, {network} network)
{{
    const float2 uv = centre(pixel, size);
    float at[2] = {{ uv.x, uv.y }};
    return lit(network.eval(at), uv);
}}
float3 from_channels(int2 pixel, int2 size, float m[7]) {{ return lit(m, centre(pixel, size)); }}
"""


def material(size: int) -> np.ndarray:
    """(size, size, 7) between 0 and 1: stones of a wall with joints between them, some of them mossy."""
    axis = (np.arange(size) + 0.5) / size
    u, v = np.meshgrid(axis, axis)
    row = np.floor(8 * v)
    x, y = (4 * u + 0.5 * (row % 2)) % 1, (8 * v) % 1
    number = np.floor(4 * u + 0.5 * (row % 2)) % 4 + 7 * row
    edge = np.minimum(np.minimum(x, 1 - x) * 2, np.minimum(y, 1 - y))
    stone = np.clip(edge / 0.12, 0, 1) ** 2 * (3 - 2 * np.clip(edge / 0.12, 0, 1))
    grain = 0.5 + 0.25 * np.sin(90 * u + 3 * np.sin(40 * v)) + 0.25 * np.sin(70 * v + 2 * np.sin(55 * u + number))
    height = 0.04 * stone + 0.004 * grain * stone
    moss = np.clip(2 * np.sin(5 * u + 1) * np.sin(4 * v + 2) - 0.6, 0, 1) * (1 - 0.6 * stone)
    tone = 0.55 + 0.25 * np.sin(12.9898 * number)
    colour = [stone * tone * c + (1 - stone) * 0.25 + 0.12 * (grain - 0.5) for c in (1.0, 0.8, 0.65)]
    colour = [(1 - moss) * c + moss * green for c, green in zip(colour, (0.2, 0.45, 0.12), strict=True)]
    slopes = [0.5 - 0.5 * np.clip(np.gradient(height, 1 / size, axis=a), -0.9, 0.9) for a in (1, 0)]
    roughness = 0.35 + 0.5 * moss + 0.25 * (1 - stone) + 0.1 * (1 - grain)
    channels = [*colour, *slopes, roughness, 0.4 + 0.6 * stone]
    return np.clip(np.stack(channels, axis=-1), 0, 1).astype(np.float32)


def shape(size: int) -> dict[str, Any]:
    """Of 256 x 256 texels, a network of a twelfth of the bytes."""
    entries = max(6, int(np.log2(size * size / 32)))
    grid = neural.HashGrid(levels_count=6, per_level=2, log2_entries=entries, coarsest=max(4, size // 16), growth=1.6)
    return {"width": 32, "hidden_layers": 2, "output_activation": "sigmoid", "encoding": grid}


def batches(textures: np.ndarray, steps: int, samples: int) -> Any:
    """Centres of random texels, and what is there."""
    random = np.random.default_rng(1)
    size = textures.shape[0]
    for _ in range(steps):
        texels = random.integers(0, size, (samples, 2))
        yield ((texels + 0.5) / size).astype(np.float32), textures[texels[:, 1], texels[:, 0]]


def report(name: str, step: int, steps: int, loss: Any) -> None:
    if step % 50 == 0 or step == steps - 1:
        print(f"{name:5} step {step:4}  mean squared error {float(loss):.5f}", flush=True)


def train_own(device: spy.Device, textures: np.ndarray, steps: int, samples: int) -> dict[str, np.ndarray]:
    network = neural.Network(device, 2, CHANNELS, **shape(textures.shape[0]))
    optimiser = neural.Adam(network, rate=RATE)
    for step, (x, kept) in enumerate(batches(textures, steps, samples)):
        difference = network(x).to_numpy() - kept
        network.backward(x, 2 / difference.size * difference)
        optimiser.step()
        report("own", step, steps, (difference**2).mean())
    return network.state_dict()


def train_torch(device: spy.Device, textures: np.ndarray, steps: int, samples: int) -> dict[str, np.ndarray]:
    network = nn.Network(device, 2, CHANNELS, **shape(textures.shape[0]))
    where = network.weights.device
    optimiser = torch.optim.Adam(network.parameters(), lr=RATE, betas=(0.9, 0.99), eps=1e-10)
    for step, (x, kept) in enumerate(batches(textures, steps, samples)):
        optimiser.zero_grad()
        loss = ((network(torch.from_numpy(x).to(where)) - torch.from_numpy(kept).to(where)) ** 2).mean()
        loss.backward()
        optimiser.step()
        report("torch", step, steps, loss.detach())
    return {name: value.cpu().numpy() for name, value in network.state_dict().items()}


def compressed(device: spy.Device, size: int, state: dict[str, np.ndarray]) -> neural.Network:
    """The network as it is kept: half the bytes."""
    network = neural.Network(device, 2, CHANNELS, **shape(size), dtype="half")
    network.load_state_dict({name: values.astype(np.float16) for name, values in state.items()})
    return network


def made_small(textures: np.ndarray, bytes_of_network: int) -> np.ndarray:
    """The textures of as many texels as the bytes allow, one byte a channel, enlarged again between texels."""
    size = textures.shape[0]
    fewer = int(np.sqrt(bytes_of_network / CHANNELS))
    bounds = (np.arange(fewer + 1) * size) // fewer
    for axis in (0, 1):
        textures = np.stack(
            [textures.take(range(a, b), axis).mean(axis) for a, b in itertools.pairwise(bounds)], axis
        )
    at = np.clip((np.arange(size) + 0.5) * fewer / size - 0.5, 0, fewer - 1)
    first = np.minimum(at.astype(int), fewer - 2)
    for axis in (0, 1):
        share = (at - first).reshape([-1 if a == axis else 1 for a in range(3)])
        textures = textures.take(first, axis) * (1 - share) + textures.take(first + 1, axis) * share
    return (np.round(textures * 255) / 255).astype(np.float32)


def decibels(picture: np.ndarray, target: np.ndarray) -> float:
    return float(-10 * np.log10(((picture - target) ** 2).mean()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--steps", type=int, default=250)
    parser.add_argument("--size", type=int, default=256)
    parser.add_argument("--samples", type=int, default=8192)
    parser.add_argument("--loop", choices=("own", "torch", "both"), default="both")
    parser.add_argument("--out", type=Path, default=Path())
    options = parser.parse_args()
    device, textures, size = spy.create_device(options.device), material(options.size), options.size
    axis = (np.arange(size, dtype=np.float32) + 0.5) / size
    centres = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    networks = []
    for name, train in (("own", train_own), ("torch", train_torch)):
        if options.loop not in (name, "both") or (name == "torch" and not HAS_TORCH):
            continue
        start = time.perf_counter()
        networks.append(compressed(device, size, train(device, textures, options.steps, options.samples)))
        print(f"{name}: {options.steps} steps in {time.perf_counter() - start:.1f} s")
    taken = sum(values.nbytes for values in networks[0].state_dict().values())
    print(f"textures {textures.size} bytes, network {taken} bytes: {textures.size / taken:.1f} times less")
    source = SHADE.format(network=networks[0].type_name)
    module = spy.Module.load_from_source(device, "neural_texture_shade", source)
    pixels = (spy.grid((size, size)), spy.int2(size, size))
    pictures = [np.asarray(module.from_network(*pixels, network, _result="numpy"), np.float32) for network in networks]
    kept = [network(centres).to_numpy().reshape(textures.shape).astype(np.float32) for network in networks]
    kept += [made_small(textures, taken), textures]
    pictures += [np.asarray(module.from_channels(*pixels, of, _result="numpy"), np.float32) for of in kept[-2:]]
    for name, channels, picture in zip([*("network" for _ in networks), "small textures"], kept, pictures, strict=False):
        of_channels, of_picture = decibels(channels, textures), decibels(picture, pictures[-1])
        print(f"{name}: signal to noise {of_channels:.1f} dB of the channels, {of_picture:.1f} dB of the lit surface")
    path = options.out / "neural_texture.png"
    spy.save_image(path, np.clip(np.concatenate(pictures, axis=1), 0, 1), srgb=False)
    print(f"saved {path}")


if __name__ == "__main__":
    main()
