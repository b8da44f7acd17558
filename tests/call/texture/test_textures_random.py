"""Random textures, views, shapes and maps against NumPy: one test body, many seeds."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from calls_support import load
from texture_support import READ, WRITE, F, T, decode, made, random_texels
from tiers import gate

pytestmark = pytest.mark.needs_kernels

TOLERANCE = {F.r32_float: 1e-5, F.r16_float: 2e-2, F.r8_unorm: 1 / 250, F.r16_snorm: 1e-4}
TYPES = {1: [T.texture_1d], 2: [T.texture_2d, T.texture_1d_array], 3: [T.texture_3d, T.texture_2d_array]}


@dataclass
class Seen:
    """A texture or view, and where the texels that it shows are."""

    value: Any
    texture: Any
    format: Any
    layers: range | None
    mip: int

    def read(self) -> np.ndarray:
        if self.layers is None:
            return decode(self.format, self.texture.to_numpy(mip=self.mip))
        return decode(self.format, np.stack([self.texture.to_numpy(layer=k, mip=self.mip) for k in self.layers]))

    def write(self, data: np.ndarray) -> None:
        for layer in self.layers or [0]:
            self.texture.copy_from_numpy(
                data[layer - self.layers[0]] if self.layers else data, layer=layer, mip=self.mip
            )

    def stored(self, values: np.ndarray) -> np.ndarray:
        """What reading gives back after `values` were stored: normalised formats clamp."""
        if self.format in (F.r32_float, F.r16_float):
            return values
        return np.clip(values, 0 if self.format is F.r8_unorm else -1, 1)


def some_texture(device: Any, rng: random.Random, shape: tuple[int, ...]) -> Seen:
    """A texture or a view (mip 1, inner layers) that has `shape` in a call, with random texels."""
    type_, format_ = rng.choice(TYPES[len(shape)]), rng.choice(list(TOLERANCE))
    layered = type_ in (T.texture_1d_array, T.texture_2d_array)
    size = shape[1:] if layered else shape
    mip, first = rng.choice((0, 0, 1)), rng.choice((0, 1)) if layered else 0
    level0 = tuple(2 * s + rng.randint(0, 1) for s in size) if mip else size
    count = shape[0] if layered else 1
    texture = made(device, type_, format_, level0, READ | WRITE, array_length=count + 2 * first, mip_count=1 + mip)
    value = texture
    if mip or first or rng.random() < 0.3:
        value = texture.create_view(mip=mip, mip_count=1, layer=first, layer_count=count)
    seen = Seen(value, texture, format_, range(first, first + count) if layered else None, mip)
    seen.write(random_texels(format_, shape, rng.randrange(1000)))
    return seen


def some_shape(rng: random.Random, call: tuple[int, ...]) -> tuple[int, ...]:
    """A shape that broadcasts to `call`."""
    rank = rng.randint(1, len(call))
    return tuple(1 if rng.random() < 0.3 else size for size in call[len(call) - rank :])


@pytest.mark.elsewhere("0", "1", "2", "3", "4", "5")
@pytest.mark.parametrize("seed", gate(range(24), lambda seed: seed < 12))
def test_random_calls_agree_with_numpy(device: Any, seed: int) -> None:
    m, rng = load(device, "textures"), random.Random(seed)
    call = tuple(rng.randint(1, 5) for _ in range(rng.randint(1, 3)))
    a, b = (some_texture(device, rng, some_shape(rng, call)) for _ in range(2))
    np.testing.assert_allclose(
        m.mix1(a.value, b.value, _result="numpy"), a.read() + 10 * b.read(), rtol=1e-5, atol=1e-4
    )

    order = list(range(a.read().ndim))
    rng.shuffle(order)
    turned = m.mix1.map(tuple(order))(a.value, 0.0, _result="numpy")
    np.testing.assert_allclose(turned, np.transpose(a.read(), np.argsort(order)), rtol=1e-5, atol=1e-4)

    changed, made_of = (some_texture(device, rng, call) for _ in range(2))
    x, y = a.read(), changed.read()
    m.split(a.value, changed.value, made_of.value)
    for texture, expected in ((changed, x + y), (made_of, x - y)):
        expected = texture.stored(np.broadcast_to(expected, call))
        np.testing.assert_allclose(texture.read(), expected, atol=TOLERANCE[texture.format])
