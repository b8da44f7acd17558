"""What samplers give, in float64: written from the chapter "Image Operations" of the Vulkan specification."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import slangpy as spy

A = spy.TextureAddressingMode
Array = np.ndarray[Any, Any]


def decoded(format_: spy.Format, raw: Array) -> Array:
    """Texels (..., channels) as stored -> (..., 4) as read."""
    info = spy.get_format_info(format_)
    v = raw.astype(np.float64)
    if info.is_normalized_format():
        top = float(np.iinfo(raw.dtype).max)
        v = np.maximum(v / top, -1)
    if info.is_srgb_format():
        color = v[..., :3]
        v[..., :3] = np.where(color <= 0.04045, color / 12.92, ((color + 0.055) / 1.055) ** 2.4)
    if "bgr" in format_.name:
        v[..., :3] = v[..., 2::-1]
    full = np.zeros((*v.shape[:-1], 4))
    full[..., 3] = 1
    full[..., : v.shape[-1]] = v
    return full


def wrapped(i: Array, n: int, mode: A) -> Array:
    """Index in [0, n), or -1 for the border."""
    if mode is A.wrap:
        return i % n
    if mode is A.mirror_repeat:
        m = i % (2 * n)
        return np.where(m < n, m, 2 * n - 1 - m)
    if mode is A.mirror_once:
        return np.minimum(np.where(i < 0, -1 - i, i), n - 1)
    if mode is A.clamp_to_edge:
        return np.clip(i, 0, n - 1)
    return np.where((i < 0) | (i >= n), -1, i)


@dataclass
class Model:
    """`mips`: one array (z, y, x, 4), (y, x, 4) or (x, 4) each."""

    mips: Sequence[Array]
    modes: tuple[A, A, A] = (A.wrap, A.wrap, A.wrap)
    linear: tuple[bool, bool, bool] = (True, True, True)  # min, mag, mip
    border: Array = field(default_factory=lambda: np.ones(4))
    bias: float = 0.0
    lods: tuple[float, float] = (-1000.0, 1000.0)
    compare: Any = None
    """Takes the third coordinate and a texel; its result is filtered in the place of the texel."""

    def fetch(self, mip: Array, index: list[Array], at: Array) -> Array:
        places = [wrapped(i, n, mode) for i, n, mode in zip(index, mip.shape[-2::-1], self.modes, strict=False)]
        out = np.zeros(index[0].shape, bool)
        for place in places:
            out |= place < 0
        texels = mip[tuple(np.maximum(place, 0) for place in reversed(places))]
        texels = np.where(out[:, None], self.border, texels)
        return (
            texels if self.compare is None else self.compare(at[:, 2:3], texels.astype(np.float32)).astype(np.float64)
        )

    def level(self, mip: Array, at: Array, linear: bool, offset: Sequence[int]) -> Array:
        axes = mip.ndim - 1
        u = [at[:, a].astype(np.float64) * mip.shape[axes - 1 - a] for a in range(axes)]
        if not linear:
            return self.fetch(mip, [np.floor(v).astype(np.int64) + offset[a] for a, v in enumerate(u)], at)
        low = [np.floor(v - 0.5) for v in u]
        total = np.zeros((len(at), 4))
        for corner in np.ndindex(*(2,) * axes):
            weight = np.ones(len(at))
            for a in range(axes):
                part = u[a] - 0.5 - low[a]
                weight = weight * (part if corner[a] else 1 - part)
            index = [low[a].astype(np.int64) + corner[a] + offset[a] for a in range(axes)]
            total += weight[:, None] * self.fetch(mip, index, at)
        return total

    def sample(self, at: Array, lod: Array, offset: Sequence[int] = (0, 0, 0)) -> Array:
        lod = np.clip(lod.astype(np.float64) + self.bias, *self.lods)
        minify, magnify, between = self.linear
        linear = np.where(lod <= 0, magnify, minify)
        last = len(self.mips) - 1
        level = np.clip(lod, 0, last)
        low = np.floor(level) if between else np.clip(np.ceil(level + 0.5) - 1, 0, last)
        part = level - low if between else np.zeros_like(level)

        def of(levels: Array) -> Array:
            result = np.zeros((len(at), 4))
            for mip in range(last + 1):
                for is_linear in (False, True):
                    here = (levels == mip) & (linear == is_linear)
                    if here.any():
                        result[here] = self.level(self.mips[mip], at[here], is_linear, offset)
            return result

        below = of(low)
        return below + part[:, None] * (of(np.minimum(low + 1, last)) - below)

    def footprint(self, at: Array, offset: Sequence[int] = (0, 0)) -> Array:
        """The four texels of a gather: (n, 4 texels, 4 channels)."""
        mip = self.mips[0]
        low = [
            np.floor(at[:, a].astype(np.float64) * mip.shape[1 - a] - 0.5).astype(np.int64) + offset[a] for a in (0, 1)
        ]
        order = ((0, 1), (1, 1), (1, 0), (0, 0))
        return np.stack([self.fetch(mip, [low[0] + x, low[1] + y], at) for x, y in order], 1)


FACES = ("right", "left", "up", "down", "front", "back")


def cube_texel_directions(n: int) -> Array:
    """(6, n, n, 3): where the middle of each texel of a cube lies."""
    s = (np.arange(n) + 0.5) / n * 2 - 1
    t, s = np.meshgrid(s, s, indexing="ij")
    one = np.ones_like(s)
    axes = [(one, -t, -s), (-one, -t, s), (s, one, t), (s, -one, -t), (s, -t, one), (-s, -t, -one)]
    return np.stack([np.stack(axis, -1) for axis in axes])
