"""Textures, groups and barriers on the CPU device, beside SciPy and the same work without groups.

    python benchmarks/cpu_groups.py [--seconds 2]

A bilinear resize of an image by a sampler against scipy.ndimage.zoom(order=1) with as many threads as it takes (one), and
a tiled matrix product with group-shared memory and barriers against the same product as a plain loop. Inputs are random;
results are checked against NumPy before anything is timed. SciPy's line is left out where it is not installed.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import statistics
import time
from collections.abc import Callable

import numpy as np

import slangpy as spy

SOURCE = """
float4 resized(int2 at, int2 size, Texture2D<float4> image, SamplerState bilinear)
{
    return image.SampleLevel(bilinear, (float2(at) + 0.5f) / float2(size), 0);
}

static const uint TILE = 16;
groupshared float left[TILE][TILE];
groupshared float right[TILE][TILE];

[shader("compute")] [numthreads(TILE, TILE, 1)]
void tiled(uint3 at: SV_DispatchThreadID, uint3 inside: SV_GroupThreadID, uniform uint n,
           StructuredBuffer<float> a, StructuredBuffer<float> b, RWStructuredBuffer<float> c)
{
    float sum = 0;
    for (uint tile = 0; tile < n; tile += TILE)
    {
        left[inside.y][inside.x] = a[at.y * n + tile + inside.x];
        right[inside.y][inside.x] = b[(tile + inside.y) * n + at.x];
        GroupMemoryBarrierWithGroupSync();
        for (uint k = 0; k < TILE; k++)
            sum += left[inside.y][k] * right[k][inside.x];
        GroupMemoryBarrierWithGroupSync();
    }
    c[at.y * n + at.x] = sum;
}

[shader("compute")] [numthreads(TILE, TILE, 1)]
void plain(uint3 at: SV_DispatchThreadID, uniform uint n,
           StructuredBuffer<float> a, StructuredBuffer<float> b, RWStructuredBuffer<float> c)
{
    float sum = 0;
    for (uint k = 0; k < n; k++)
        sum += a[at.y * n + k] * b[k * n + at.x];
    c[at.y * n + at.x] = sum;
}
"""
SIZE, RESIZED, PRODUCT = 512, 1024, 256


def measure(variants: dict[str, Callable[[], object]], seconds: float) -> dict[str, float]:
    """Median seconds of calls that alternate between the variants."""
    times: dict[str, list[float]] = {name: [] for name in variants}
    end = time.perf_counter() + seconds * len(variants)
    while time.perf_counter() < end or len(next(iter(times.values()))) < 3:
        for name, call in variants.items():
            start = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - start)
    return {name: statistics.median(found) for name, found in times.items()}


def resize(device: spy.Device, seconds: float) -> None:
    module = spy.Module.load_from_source(device, "cpu_groups", SOURCE)
    pixels = np.random.default_rng(1).random((SIZE, SIZE, 4), np.float32)
    texture = device.create_texture(
        format=spy.Format.rgba32_float, width=SIZE, height=SIZE, usage=spy.TextureUsage.shader_resource, data=pixels
    )
    edge = spy.TextureAddressingMode.clamp_to_edge
    sampler = device.create_sampler(address_u=edge, address_v=edge)
    out = spy.Tensor.zeros(device, (RESIZED, RESIZED), "float4")
    size, grid = spy.int2(RESIZED, RESIZED), spy.grid((RESIZED, RESIZED))

    def ours() -> None:
        module.resized(grid, size, texture, sampler, _result=out)

    ours()
    places = (np.arange(RESIZED) + 0.5) * SIZE / RESIZED - 0.5
    low = np.floor(places).astype(int)
    part = (places - low)[:, None, None]
    rows = pixels[np.clip(low, 0, SIZE - 1)] * (1 - part) + pixels[np.clip(low + 1, 0, SIZE - 1)] * part
    part = part.reshape(1, -1, 1)
    columns = rows[:, np.clip(low, 0, SIZE - 1)] * (1 - part) + rows[:, np.clip(low + 1, 0, SIZE - 1)] * part
    error = np.abs(out.to_numpy() - columns).max()
    assert error < 2e-3, error  # samplers may weigh by 8 bits
    variants: dict[str, Callable[[], object]] = {"sampler": ours}
    if importlib.util.find_spec("scipy") is not None:
        zoom = importlib.import_module("scipy.ndimage").zoom
        factor = (RESIZED / SIZE, RESIZED / SIZE, 1)
        variants["scipy zoom(order=1)"] = lambda: zoom(pixels, factor, order=1, grid_mode=True, mode="nearest")
    report(f"resize of {SIZE} x {SIZE} x 4 to {RESIZED} x {RESIZED}", measure(variants, seconds))


def product(device: spy.Device, seconds: float) -> None:
    module = device.load_module_from_source("cpu_groups_raw", SOURCE)
    rng = np.random.default_rng(2)
    a, b = (rng.random((PRODUCT, PRODUCT), np.float32) for _ in range(2))
    usage = spy.BufferUsage.shader_resource | spy.BufferUsage.unordered_access
    buffers = {name: device.create_buffer(struct_size=4, usage=usage, data=data) for name, data in (("a", a), ("b", b))}
    buffers["c"] = device.create_buffer(size=a.nbytes, struct_size=4, usage=usage)
    variants: dict[str, Callable[[], object]] = {}
    for name in ("tiled", "plain"):
        kernel = device.create_compute_kernel(device.link_program([module], [module.entry_point(name)]))

        def call(kernel: spy.ComputeKernel = kernel) -> None:
            kernel.dispatch([PRODUCT, PRODUCT, 1], n=PRODUCT, **buffers)

        call()
        found = buffers["c"].to_numpy().view(np.float32).reshape(a.shape)
        np.testing.assert_allclose(found, a.astype(np.float64) @ b, rtol=1e-4)
        variants[name] = call
    report(f"product of {PRODUCT} x {PRODUCT}", measure(variants, seconds))


def report(title: str, times: dict[str, float]) -> None:
    first = next(iter(times.values()))
    print(title)
    for name, seconds in times.items():
        print(f"  {name:22} {seconds * 1e3:9.2f} ms {seconds / first:8.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0)
    options = parser.parse_args()
    device = spy.create_device(spy.DeviceType.cpu)
    resize(device, options.seconds)
    product(device, options.seconds)


if __name__ == "__main__":
    main()
