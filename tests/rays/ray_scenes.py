"""Meshes that are hard to hit rightly, and rays that aim at what is hard about them."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def soup(count: int, seed: int = 0, size: float = 1.0) -> tuple[Array, Array]:
    """Triangles at random places."""
    rng = np.random.default_rng(seed)
    centres = rng.uniform(-1, 1, (count, 1, 3))
    points = centres + rng.normal(0, size * count ** (-1 / 3), (count, 3, 3))
    return points.reshape(-1, 3).astype(np.float32), np.arange(3 * count, dtype=np.int32).reshape(-1, 3)


def grid(side: int, height: float = 0.0) -> tuple[Array, Array]:
    """2 * side^2 triangles in the plane z = 0: their boxes are flat, and of equal sizes."""
    y, x = np.meshgrid(np.linspace(-1, 1, side + 1), np.linspace(-1, 1, side + 1), indexing="ij")
    points = np.stack([x, y, height * np.sin(5 * x) * np.cos(4 * y)], -1).reshape(-1, 3)
    first = (np.arange(side)[:, None] * (side + 1) + np.arange(side)).reshape(-1)
    up = first + side + 1
    triangles = np.concatenate([np.stack([first, first + 1, up], 1), np.stack([first + 1, up + 1, up], 1)])
    return points.astype(np.float32), triangles.astype(np.int32)


def degenerate() -> tuple[Array, Array]:
    """Points, lines, slivers, the same triangle many times, and few ordinary ones."""
    points, _ = soup(40, seed=3)
    rng = np.random.default_rng(4)
    triangles = rng.integers(0, len(points), (60, 3))
    triangles[:8] = triangles[:8, :1]  # points
    triangles[8:16, 2] = triangles[8:16, 0]  # lines
    triangles[16:32] = triangles[16]  # equal ones
    extra = points[triangles[32:40, 0]] + np.float32(0.25) * (points[triangles[32:40, 1]] - points[triangles[32:40, 0]])
    triangles[32:40, 2] = len(points) + np.arange(8)  # collinear up to rounding
    return np.concatenate([points, extra]).astype(np.float32), triangles.astype(np.int32)


def nested(count: int) -> tuple[Array, Array]:
    """Each around the one before: clusters find few partners."""
    base = np.float32([[1, 0, 0], [-0.5, 0.8, 0.1], [-0.5, -0.8, -0.1]])
    points = base * (1.05 ** np.arange(count))[:, None, None]
    return points.reshape(-1, 3).astype(np.float32), np.arange(3 * count, dtype=np.int32).reshape(-1, 3)


def open_room() -> tuple[Array, Array]:
    """Four walls and a floor around many small triangles: a few are as large as all."""
    points, triangles = soup(400, seed=8)
    corners = np.array(list(np.ndindex(2, 2, 2))) * [4, 4, 3] - [2, 2, 1.5]
    walls = [[0, 1, 3], [0, 3, 2], [4, 6, 7], [4, 7, 5], [0, 4, 5], [0, 5, 1], [2, 3, 7], [2, 7, 6], [0, 2, 6], [0, 6, 4]]
    return np.concatenate([corners.astype(np.float32), points]), np.concatenate([np.int32(walls), triangles + len(corners)])


def moved(mesh: tuple[Array, Array], scale: float, offset: float) -> tuple[Array, Array]:
    return (mesh[0] * scale + offset).astype(np.float32), mesh[1]


MESHES = {
    "one": lambda: soup(1, size=1.5),
    "two equal": lambda: (soup(1)[0], np.int32([[0, 1, 2], [0, 1, 2]])),
    "few": lambda: soup(5),
    "degenerate": degenerate,
    "flat grid": lambda: grid(12),
    "hills": lambda: grid(16, 0.2),
    "nested": lambda: nested(120),
    "small and far away": lambda: moved(soup(100, seed=5), 1e-3, 7.0),
    "large": lambda: moved(soup(200, seed=6), 3e4, -1e5),
    "soup": lambda: soup(1000, seed=7),
    "open room": open_room,
}


def rays_at(points: Array, triangles: Array, count: int, seed: int = 0) -> tuple[Array, Array]:
    """Random ones, ones at vertices, edges and centres, along axes, in planes of triangles, and from vertices."""
    rng = np.random.default_rng(seed)
    low, high = points.min(0).astype(np.float64), points.max(0).astype(np.float64)
    size = max((high - low).max(), 1e-3)
    middle = (low + high) / 2
    origins = middle + rng.uniform(-1, 1, (count, 3)) * size
    corners = points[triangles[rng.integers(0, len(triangles), count)]].astype(np.float64)
    weights = rng.dirichlet((1, 1, 1), count)
    kind = np.arange(count) % 8
    weights[kind == 1] = [1, 0, 0]
    weights[kind == 2, 2] = 0
    weights[kind == 2] /= np.maximum(weights[kind == 2].sum(1, keepdims=True), 1e-9)
    weights[kind == 3] = 1 / 3
    targets = (weights[..., None] * corners).sum(1)
    directions = targets - origins
    directions[kind == 4] = rng.normal(size=(int((kind == 4).sum()), 3))
    along = np.eye(3)[rng.integers(0, 3, count)] * rng.choice([-1, 1], (count, 1))
    straight = kind == 5
    directions[straight] = along[straight]
    origins[straight] = (targets - along * size)[straight]
    flat = kind == 6  # from one point of the triangle's plane to another
    origins[flat] = (corners[:, 0] + 2 * (corners[:, 0] - corners[:, 1]))[flat]
    directions[flat] = (targets - origins)[flat]
    inside = kind == 7
    origins[inside] = corners[inside, 0]
    directions[inside] = rng.normal(size=(int(inside.sum()), 3))
    still = np.abs(directions).max(axis=1) == 0
    directions[still] = [0, 0, 1]
    return origins.astype(np.float32), directions.astype(np.float32)
