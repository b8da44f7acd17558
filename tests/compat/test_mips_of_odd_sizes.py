"""generate_mips and blit on levels of odd sizes, beside NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import slangpy as spy

USAGE = spy.TextureUsage.shader_resource | spy.TextureUsage.unordered_access
pytestmark = pytest.mark.needs_kernels
FORMATS = {
    "rgba32_float": (np.float32, 4, 0, 1e-6),
    "r32_float": (np.float32, 1, 0, 1e-6),
    "rg16_float": (np.float16, 2, 0, 1e-3),
    "rgba8_unorm": (np.uint8, 4, 255, 0.51),
    "r8_unorm": (np.uint8, 1, 255, 0.51),
    # weights are float32: positions to 13 are exact to 2^-20, times a difference of 32767 between texels
    "rgba16_snorm": (np.int16, 4, 32767, 0.54),
}


def _along(a: np.ndarray, size: int, axis: int) -> np.ndarray:
    source = a.shape[axis]
    position = np.maximum((np.arange(size) + 0.5) * source / size - 0.5, 0)
    first = np.minimum(position.astype(int), source - 1)
    weight = (position - first).reshape([size if i == axis else 1 for i in range(a.ndim)])
    return a.take(first, axis) * (1 - weight) + a.take(np.minimum(first + 1, source - 1), axis) * weight


def _texture(device: spy.Device, format: str, width: int, height: int, mips: int) -> spy.Texture:
    return device.create_texture(format=spy.Format[format], width=width, height=height, mip_count=mips, usage=USAGE)


@pytest.mark.parametrize("format", FORMATS)
def test_odd_sizes(device: spy.Device, format: str) -> None:
    dtype, channels, most, close = FORMATS[format]
    values = (np.random.default_rng(1).random((7, 13, channels)) * (most or 1)).astype(dtype)
    source = _texture(device, format, 13, 7, 4)
    source.copy_from_numpy(values if channels > 1 else values[..., 0])
    scaled = _texture(device, format, 5, 9, 1)
    encoder = device.create_command_encoder()
    encoder.generate_mips(source)
    encoder.blit(scaled, source)
    device.submit_command_buffer(encoder.finish())
    above = values.astype(np.float64)
    for mip, (height, width) in enumerate([(3, 6), (1, 3), (1, 1)], 1):
        level = source.to_numpy(mip=mip).reshape(height, width, channels).astype(np.float64)
        assert np.abs(level - _along(_along(above, width, 1), height, 0)).max() <= close
        above = level
    got = scaled.to_numpy().reshape(9, 5, channels).astype(np.float64)
    assert np.abs(got - _along(_along(values.astype(np.float64), 5, 1), 9, 0)).max() <= close
