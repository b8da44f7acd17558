"""A small rasteriser in float64: what a device must draw, pixel by pixel and sample by sample.

Positions lie on a grid of 1/64 pixel, which every device represents exactly, and no sample lies on an edge: what is covered
is then a question of whole numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

GRID = 64
SAMPLES = {1: np.array([(32, 32)]), 4: np.array([(24, 8), (56, 24), (8, 40), (40, 56)])}
"""Positions of the samples of a pixel in 1/64: those of Vulkan and Direct3D."""

COMPARE = {
    "never": lambda a, b: np.zeros_like(a, bool), "less": np.less, "equal": np.equal, "less_equal": np.less_equal,
    "greater": np.greater, "not_equal": np.not_equal, "greater_equal": np.greater_equal,
    "always": lambda a, b: np.ones_like(a, bool),
}  # fmt: skip


def to_srgb(x: Array) -> Array:
    return np.where(x <= 0.0031308, x * 12.92, 1.055 * np.maximum(x, 1e-9) ** (1 / 2.4) - 0.055)


def from_srgb(x: Array) -> Array:
    return np.where(x <= 0.04045, x / 12.92, ((x + 0.055) / 1.055) ** 2.4)


@dataclass(frozen=True)
class Target:
    """How a format keeps colours: `quantize` gives what it holds of a colour, as the shader would read it."""

    name: str
    channels: int
    kind: str

    @property
    def is_normalized(self) -> bool:
        return self.kind in ("unorm", "srgb")

    def quantize(self, color: Array) -> Array:
        kept = np.array(color, np.float64)
        if self.kind == "float32":
            kept = kept.astype(np.float32).astype(np.float64)
        elif self.kind == "float16":
            kept = kept.astype(np.float16).astype(np.float64)
        else:
            kept = np.clip(kept, 0, 1)
            if self.kind == "srgb":
                kept[..., :3] = from_srgb(np.round(to_srgb(kept[..., :3]) * 255) / 255)
                kept[..., 3] = np.round(kept[..., 3] * 255) / 255
            else:
                kept = np.round(kept * 255) / 255
        kept[..., self.channels :] = (0, 0, 0, 1)[self.channels :]
        return kept


TARGETS = [
    Target("rgba32_float", 4, "float32"), Target("rgba16_float", 4, "float16"), Target("rgba8_unorm", 4, "unorm"),
    Target("bgra8_unorm", 4, "unorm"), Target("rgba8_unorm_srgb", 4, "srgb"), Target("rg16_float", 2, "float16"),
    Target("r32_float", 1, "float32"), Target("rg8_unorm", 2, "unorm"),
]  # fmt: skip


@dataclass(frozen=True)
class Blend:
    """Names of the factors and operations; None: what is drawn replaces what was there."""

    color: tuple[str, str, str]
    alpha: tuple[str, str, str]

    def apply(self, source: Array, destination: Array, is_normalized: bool) -> Array:
        if is_normalized:
            source = np.clip(source, 0, 1)
        out = np.empty_like(destination)
        out[..., :3] = _combine(self.color, source, destination, slice(0, 3))
        out[..., 3:] = _combine(self.alpha, source, destination, slice(3, 4))
        return out


def _factor(name: str, source: Array, destination: Array, part: slice) -> Array:
    inverse, plain = name.startswith("inv_"), name.removeprefix("inv_")
    if plain == "src_alpha_saturate":
        value = (
            np.minimum(source[..., 3:], 1 - destination[..., 3:]) if part.start == 0 else np.ones_like(source[..., 3:])
        )
    else:
        value = {
            "zero": np.zeros_like(source), "one": np.ones_like(source), "src_color": source, "dest_color": destination,
            "src_alpha": source[..., 3:] * np.ones(4), "dest_alpha": destination[..., 3:] * np.ones(4),
        }[plain][..., part]  # fmt: skip
    return 1 - value if inverse else value


def _combine(aspect: tuple[str, str, str], source: Array, destination: Array, part: slice) -> Array:
    first, second, op = aspect
    s, d = source[..., part], destination[..., part]
    if op in ("min", "max"):
        return np.minimum(s, d) if op == "min" else np.maximum(s, d)
    s, d = s * _factor(first, source, destination, part), d * _factor(second, source, destination, part)
    return {"add": s + d, "subtract": s - d, "reverse_subtract": d - s}[op]


@dataclass
class Canvas:
    """Colours (height, width, samples, 4) and depths of a target while it is drawn into."""

    target: Target
    size: tuple[int, int]
    sample_count: int
    clear: tuple[float, ...]
    depth_clear: float = 1.0
    colors: Array = field(init=False)
    depths: Array = field(init=False)

    def __post_init__(self) -> None:
        width, height = self.size
        shape = (height, width, self.sample_count)
        self.colors = np.broadcast_to(self.target.quantize(np.array(self.clear)), (*shape, 4)).copy()
        self.depths = np.full(shape, self.depth_clear, np.float64)

    def resolved(self) -> Array:
        """The average of the samples, in linear light."""
        return self.target.quantize(self.colors.mean(axis=2))


@dataclass(frozen=True)
class State:
    """Fixed functions, by the names of their enumerators."""

    blend: Blend | None = None
    write_mask: int = 15
    depth_func: str | None = None
    depth_write: bool = True
    cull: str = "none"
    front: str = "counter_clockwise"
    scissor: tuple[int, int, int, int] | None = None


def sample_points(canvas: Canvas) -> tuple[Array, Array]:
    """Places of all samples (height, width, samples, 2), and of the pixels' centres, in 1/64 pixel."""
    width, height = canvas.size
    y, x = np.mgrid[0:height, 0:width]
    corner = np.stack([x, y], -1) * GRID
    return corner[:, :, None] + SAMPLES[canvas.sample_count], corner + GRID // 2


def edge(a: Array, b: Array, p: Array) -> Array:
    return (b[0] - a[0]) * (p[..., 1] - a[1]) - (b[1] - a[1]) * (p[..., 0] - a[0])


def has_ties(canvas: Canvas, corners: Array) -> bool:
    """Whether a sample lies on an edge, where devices may differ, or the triangle is a sliver, whose colours change too fast
    for float32."""
    points, _ = sample_points(canvas)
    pairs = [(corners[i], corners[(i + 1) % 3]) for i in range(3)]
    area = abs(float(edge(corners[0], corners[1], corners[2])))
    return area < 8 * GRID * GRID or any(bool((edge(a, b, points) == 0).any()) for a, b in pairs)


def draw_triangle(canvas: Canvas, state: State, corners: Array, colors: Array, z: float, flips: bool = False) -> None:
    """corners (3, 2) in 1/64 pixel from the upper left, y down. flips: the winding of strips alternates."""
    points, centers = sample_points(canvas)
    area = edge(*corners)
    is_front = ((area < 0) != flips) == (state.front == "counter_clockwise")
    if state.cull == ("front" if is_front else "back"):
        return
    weights = [edge(corners[(i + 1) % 3], corners[(i + 2) % 3], centers) / area for i in range(3)]
    inside = np.ones(points.shape[:-1], bool)
    for i in range(3):
        inside &= edge(corners[i], corners[(i + 1) % 3], points) * np.sign(area) > 0
    color = sum(w[..., None] * c for w, c in zip(weights, colors, strict=True))
    write(canvas, state, inside, np.asarray(color), z)


def draw_point(canvas: Canvas, state: State, at: Array, color: Array, z: float) -> None:
    """A square of one pixel around a place."""
    points, centers = sample_points(canvas)
    inside = np.asarray((np.abs(points - at) * 2 < GRID).all(-1))
    write(canvas, state, inside, np.broadcast_to(color, (*centers.shape[:-1], 4)), z)


def write(canvas: Canvas, state: State, inside: Array, color: Array, z: float) -> None:
    """Tests and blends the samples `inside`; `color` (height, width, 4) is that of the pixel."""
    inside = inside.copy()
    if state.scissor is not None:
        left, top, right, bottom = state.scissor
        kept = np.zeros(inside.shape, bool)
        kept[top:bottom, left:right] = True
        inside &= kept
    if state.depth_func is not None:
        inside &= COMPARE[state.depth_func](np.full_like(canvas.depths, z), canvas.depths)
        if state.depth_write:
            canvas.depths[inside] = z
    source = np.broadcast_to(color[:, :, None], canvas.colors.shape).astype(np.float32).astype(np.float64)
    new = source if state.blend is None else state.blend.apply(source, canvas.colors, canvas.target.is_normalized)
    new = canvas.target.quantize(new)
    for channel in range(canvas.target.channels):
        if state.write_mask >> channel & 1:
            canvas.colors[..., channel][inside] = new[..., channel][inside]
