"""Every ray against every primitive, in NumPy: what slangpy/slang/rays/intersect.slang says, and the same in float64 from textbooks."""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
LARGE = np.float32(3.402823466e38)
MOST = 1 << 22
"""Pairs of a ray and a primitive at a time."""


def closest(meet: Any, origins: Array, directions: Array, t_min: float = 0.0) -> tuple[Array, Array]:
    """The least t > t_min of each ray, and the first primitive that has it; LARGE and -1 where there is none."""
    ts, found = np.full(len(origins), LARGE, np.float32), np.full(len(origins), -1)
    for part in parts(len(origins), meet.count):
        with np.errstate(all="ignore"):
            t = meet(origins[part], directions[part], np.float32(t_min))
        t = np.where(t > t_min, t, LARGE)
        first = np.argmin(t, axis=1)
        least = np.take_along_axis(t, first[:, None], 1)[:, 0]
        ts[part] = least
        found[part] = np.where(least < LARGE, first, -1)
    return ts, found


def compiled(folder: Path) -> Any:
    """`closest` of triangles in C++ (ray_brute.cpp), in minutes for 10^11 pairs."""
    library = folder / "ray_brute.so"
    flags = ["-std=c++20", "-O3", "-march=native", "-ffp-contract=off", "-shared", "-fPIC", "-pthread"]
    subprocess.run(["c++", *flags, "-o", str(library), str(Path(__file__).with_suffix(".cpp"))], check=True)
    function = ctypes.CDLL(str(library)).brute_closest

    def run(meet: Triangles, origins: Array, directions: Array) -> tuple[Array, Array]:
        ts, found = np.full(len(origins), LARGE, np.float32), np.full(len(origins), -1, np.int32)
        corners, axes = np.ascontiguousarray(meet.corners), longest_axis(directions)
        for axis in range(3):
            own = np.flatnonzero(axes == axis)
            parts = [np.ascontiguousarray(part[own]) for part in (origins, directions, ts, found)]
            o, d, t, hit, all_corners = (part.ctypes.data_as(ctypes.c_void_p) for part in (*parts, corners))
            function(all_corners, meet.count, o, d, len(own), axis, t, hit, os.cpu_count() or 1)
            ts[own], found[own] = parts[2:]
        return ts, found

    return run


def longest_axis(directions: Array) -> Array:
    size = np.abs(directions)
    return np.where(size[:, 0] > size[:, 1], np.where(size[:, 0] > size[:, 2], 0, 2), np.where(size[:, 1] > size[:, 2], 1, 2))


def parts(rays: int, primitives: int) -> Iterator[slice]:
    step = max(MOST // primitives, 1)
    for begin in range(0, rays, step):
        yield slice(begin, begin + step)


class Triangles:
    """t of each ray and triangle, (rays, triangles) float32, operation by operation as the kernel has it."""

    def __init__(self, points: Array, triangles: Array) -> None:
        self.corners = points.astype(np.float32)[triangles]
        self.count = len(triangles)

    def __call__(self, origins: Array, directions: Array, t_min: np.float32) -> Array:
        z = longest_axis(directions)
        t = np.full((len(origins), self.count), LARGE, np.float32)
        for axis in range(3):
            own = np.flatnonzero(z == axis)
            if own.size:
                t[own] = self._along(origins[own], directions[own], axis)
        return t

    def _along(self, origins: Array, directions: Array, axis: int) -> Array:
        order = [(axis + 1) % 3, (axis + 2) % 3, axis]
        d = directions[:, order]
        sx, sy, sz = ((d[:, k] / d[:, 2] if k < 2 else np.float32(1) / d[:, 2])[:, None] for k in range(3))
        x, y, z = [], [], []
        for corner in range(3):
            v = [self.corners[None, :, corner, k] - origins[:, None, k] for k in order]
            x.append(v[0] - sx * v[2])
            y.append(v[1] - sy * v[2])
            z.append(sz * v[2])
        u = difference(x[2], y[1], y[2], x[1])
        v = difference(x[0], y[2], y[0], x[2])
        w = difference(x[1], y[0], y[1], x[0])
        lowest, highest = np.minimum(u, np.minimum(v, w)), np.maximum(u, np.maximum(v, w))
        total = u + v + w
        misses = ((lowest < 0) & (highest > 0)) | (total == 0)
        return np.where(misses, LARGE, (u * z[0] + v * z[1] + w * z[2]) / total)


def difference(a: Array, b: Array, c: Array, d: Array) -> Array:
    """a * b - c * d of float32, exactly where the rounded products are equal: float64 holds products of two float32."""
    found = a * b - c * d
    a, b, c, d = (part[found == 0].astype(np.float64) for part in (a, b, c, d))
    found[found == 0] = a * b - c * d
    return found


class Spheres:
    def __init__(self, spheres: Array) -> None:
        self.spheres = spheres.astype(np.float32)
        self.count = len(spheres)

    def __call__(self, origins: Array, directions: Array, t_min: np.float32) -> Array:
        d = [directions[:, None, k] for k in range(3)]
        o = [origins[:, None, k] - self.spheres[None, :, k] for k in range(3)]
        radius = self.spheres[None, :, 3]
        a = d[0] * d[0] + d[1] * d[1] + d[2] * d[2]
        b = (o[0] * d[0] + o[1] * d[1] + o[2] * d[2]) / a
        p = [o[k] - b * d[k] for k in range(3)]
        rest = radius * radius - (p[0] * p[0] + p[1] * p[1] + p[2] * p[2])
        half = np.sqrt(rest / a)
        first, second = -b - half, -b + half
        return np.where(rest < 0, LARGE, np.where(first > t_min, first, second))


class Boxes:
    def __init__(self, boxes: Array) -> None:
        self.boxes = boxes.astype(np.float32)
        self.count = len(boxes)

    def __call__(self, origins: Array, directions: Array, t_min: np.float32) -> Array:
        first, second, outside = -LARGE, LARGE, False
        for k in range(3):
            d = directions[:, None, k]
            low, high = (self.boxes[None, :, at] - origins[:, None, k] for at in (k, k + 3))
            to_low, to_high = low / d, high / d
            is_still = d == 0
            outside = outside | (is_still & ((low > 0) | (high < 0)))
            first = np.where(is_still, first, np.maximum(first, np.minimum(to_low, to_high)))
            second = np.where(is_still, second, np.minimum(second, np.maximum(to_low, to_high)))
        return np.where(outside | (first > second), LARGE, np.where(first > t_min, first, second)).astype(np.float32)


def surely_hit(points: Array, triangles: Array, origins: Array, directions: Array, margin: float) -> tuple[Array, Array]:
    """In float64, by determinants: the nearest t among triangles that are hit by more than `margin` (in barycentrics and
    in the sine of the angle), and the nearest among those that are not missed by more; inf where there is none."""
    inner, outer = np.full(len(origins), np.inf), np.full(len(origins), np.inf)
    corners = points.astype(np.float64)[triangles]
    e1, e2 = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    normal = np.cross(e1, e2)
    length = np.linalg.norm(normal, axis=1)
    sliver = length < margin * np.maximum((e1**2).sum(1), (e2**2).sum(1))
    for part in parts(len(origins), len(triangles)):
        o, d = origins[part, None].astype(np.float64), directions[part, None].astype(np.float64)
        with np.errstate(all="ignore"):
            s, p = o - corners[:, 0], np.cross(d, e2)
            det = (p * e1).sum(-1)
            q = np.cross(s, e1)
            u, v, t = (p * s).sum(-1) / det, (d * q).sum(-1) / det, (e2 * q).sum(-1) / det
            least = np.minimum(np.minimum(u, v), 1 - u - v)
            grazing = np.abs(det) < margin * length * np.linalg.norm(d, axis=-1)
        unsure = sliver | grazing | ~np.isfinite(t)
        inner[part] = np.where(~unsure & (least > margin) & (t > margin), t, np.inf).min(axis=1)
        outer[part] = np.where(unsure, -np.inf, np.where((least > -margin) & (t > -margin), t, np.inf)).min(axis=1)
    return inner, outer
