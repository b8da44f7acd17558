"""Reconstruction filters, and the resampling of images with them."""

from __future__ import annotations

import enum
import math
from typing import Any

import numpy as np

from ..base.typed import number, positive
from .scalars import Array


class FilterBoundaryCondition(enum.IntEnum):
    """What lies beside an image: its last pixel, the image again, its mirror image, zeros or ones."""

    clamp = 0
    repeat = 1
    mirror = 2
    zero = 3
    one = 4

    __str__ = enum.Enum.__str__


class Filter:
    """`eval(x)` weighs a pixel at distance x; it is zero beyond `radius`."""

    radius = 0.0

    def eval(self, x: float) -> float:
        return float(self.weights(np.array([number(f"{type(self).__name__}.eval 'x'", x)], np.float64))[0])

    def weights(self, x: Array) -> Array:
        raise NotImplementedError(f"{type(self).__name__}.weights")

    def __repr__(self) -> str:
        return f"{type(self).__name__}(radius={self.radius:g})"


class BoxFilter(Filter):
    """The mean of what lies within half a pixel; when enlarging, the nearest pixel."""

    radius = 0.5

    def weights(self, x: Array) -> Array:
        """Weights at these distances from the centre, in pixels."""
        return ((x > -0.5) & (x <= 0.5)).astype(np.float64)  # the taps below lie in such intervals, too


class TentFilter(Filter):
    """Linear interpolation."""

    def __init__(self, radius: float = 1.0) -> None:
        self.radius = positive("TentFilter: radius", radius)

    def weights(self, x: Array) -> Array:
        """Weights at these distances from the centre, in pixels."""
        return np.maximum(0.0, 1.0 - np.abs(x / self.radius))


class GaussianFilter(Filter):
    """A bell curve, lowered so that it ends in zero at four times its width."""

    def __init__(self, stddev: float = 0.5) -> None:
        self.stddev = positive("GaussianFilter: stddev", stddev)
        self.radius = 4 * self.stddev

    def weights(self, x: Array) -> Array:
        """Weights at these distances from the centre, in pixels."""
        alpha = -1.0 / (2.0 * self.stddev**2)
        return np.maximum(0.0, np.exp(alpha * x**2) - math.exp(alpha * self.radius**2))


class MitchellFilter(Filter):
    """The cubic of Mitchell and Netravali (1988)."""

    radius = 2.0

    def __init__(self, b: float = 1 / 3, c: float = 1 / 3) -> None:
        self.b, self.c = (float(number("MitchellFilter: b and c", value)) for value in (b, c))

    def weights(self, x: Array) -> Array:
        """Weights at these distances from the centre, in pixels."""
        x = np.abs(x)
        b, c = self.b, self.c
        near = ((12 - 9 * b - 6 * c) * x**3 + (-18 + 12 * b + 6 * c) * x**2 + (6 - 2 * b)) / 6
        far = ((-b - 6 * c) * x**3 + (6 * b + 30 * c) * x**2 + (-12 * b - 48 * c) * x + (8 * b + 24 * c)) / 6
        return np.where(x < 1, near, np.where(x < 2, far, 0.0))


class LanczosFilter(Filter):
    """A windowed sinc."""

    def __init__(self, lobes: int = 3) -> None:
        self.lobes = lobes
        self.radius = positive("LanczosFilter: lobes", lobes)

    def weights(self, x: Array) -> Array:
        """Weights at these distances from the centre, in pixels."""
        return np.where(np.abs(x) < self.radius, np.sinc(x) * np.sinc(x / self.radius), 0.0)


def resample_axis(image: Array, axis: int, size: int, filter: Any, boundary: FilterBoundaryCondition) -> Array:
    """The image in double with `size` pixels along one axis. Weights are normalised; pixels are sampled at centres."""
    source = image.shape[axis]
    if size == source:
        return image
    scale = source / size
    widen = max(1.0, scale)  # a smaller image: each pixel covers several
    radius = filter.radius * widen
    taps = max(1, math.ceil(2 * radius))
    centres = (np.arange(size) + 0.5) * scale
    first = np.floor(centres - radius + 0.5).astype(np.int64)
    positions = first[:, None] + np.arange(taps)[None, :]
    distances = (positions + 0.5 - centres[:, None]) / widen
    weights = filter.weights(distances) if hasattr(filter, "weights") else np.vectorize(filter.eval)(distances)
    nothing = weights.sum(axis=1) == 0  # a filter may miss every pixel's centre: the nearest pixel then
    weights[nothing, np.abs(distances[nothing]).argmin(axis=1)] = 1.0
    weights = weights / weights.sum(axis=1, keepdims=True)
    indices, constant = _wrapped(positions, source, FilterBoundaryCondition(boundary))
    moved = np.moveaxis(image, axis, 0)
    result = np.zeros((size, *moved.shape[1:]), np.float64)
    spread = (slice(None), *([None] * (moved.ndim - 1)))
    for tap in range(taps):
        pixels = moved[indices[:, tap]]
        if constant is not None:
            outside = (positions[:, tap] < 0) | (positions[:, tap] >= source)
            pixels = np.where(outside[spread], constant, pixels)
        result += weights[:, tap][spread] * pixels
    return np.moveaxis(result, 0, axis)


def _wrapped(positions: Array, size: int, boundary: FilterBoundaryCondition) -> tuple[Array, float | None]:
    """Where the pixels are read, and what stands for those outside."""
    if boundary == FilterBoundaryCondition.repeat:
        return positions % size, None
    if boundary == FilterBoundaryCondition.mirror:
        period = max(1, 2 * size - 2)
        folded = positions % period
        return np.where(folded < size, folded, period - folded), None
    constant = {FilterBoundaryCondition.zero: 0.0, FilterBoundaryCondition.one: 1.0}.get(boundary)
    return np.clip(positions, 0, size - 1), constant
