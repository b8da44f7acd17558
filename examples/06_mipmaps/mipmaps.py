"""A texture's mip levels, each made from the one before, and a tone-mapped copy in another format.

    python mipmaps.py [--device cpu|cuda|vulkan|d3d12] [--size 64] [--out FOLDER]

Saves the tone-mapped copy as mipmaps.png.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import slangpy as spy

USAGE = spy.TextureUsage.shader_resource | spy.TextureUsage.unordered_access


def image(size: int) -> np.ndarray:
    """A bright disc on a gradient: (size, size, 4) float32."""
    y, x = np.mgrid[0:size, 0:size].astype(np.float32) / size
    disc = 8.0 * ((x - 0.5) ** 2 + (y - 0.5) ** 2 < 0.1)
    return np.stack([x + disc, y + disc, 1 - x, np.ones_like(x)], axis=-1).astype(np.float32)


def fill_mips(module: spy.Module, texture: spy.Texture) -> None:
    """Each level from the one before: a view is a texture of its own, read whole or written texel by texel."""
    for mip in range(1, texture.mip_count):
        finer = texture.create_view(mip=mip - 1, mip_count=1)
        level = texture.create_view(mip=mip, mip_count=1)
        module.coarser(spy.grid((-1, -1)), finer, _result=level)  # the grid takes its size from the level


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda", "vulkan", "d3d12"])
    parser.add_argument("--size", type=int, default=64, help="width and height, a power of two")
    parser.add_argument("--out", type=Path, default=Path())
    options = parser.parse_args()

    device = spy.create_device(type=spy.DeviceType[options.device])
    module = spy.Module.load_from_file(device, Path(__file__).with_name("mipmaps.slang"))
    pixels = image(options.size)
    texture = device.create_texture(
        width=options.size,
        height=options.size,
        mip_count=spy.ALL_MIPS,
        format=spy.Format.rgba32_float,
        usage=USAGE,
        data=pixels,
    )
    fill_mips(module, texture)
    print("mean of the image:", np.round(pixels.mean(axis=(0, 1), dtype=np.float64), 4))
    print("coarsest level:   ", np.round(texture.to_numpy(mip=texture.mip_count - 1).reshape(4), 4))

    mapped = device.create_texture(width=options.size, height=options.size, format=spy.Format.rgba8_unorm, usage=USAGE)
    module.tonemap(texture, 0.5, _result=mapped)
    spy.save_image(options.out / "mipmaps.png", mapped)
    print("tone-mapped:      ", mapped.to_numpy()[options.size // 2, options.size // 2])


if __name__ == "__main__":
    main()
