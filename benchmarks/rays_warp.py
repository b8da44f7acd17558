"""The queries of rays.py in Warp, whose kernels must lie in a file of their own."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import warp as wp


@wp.kernel
def closest(mesh: wp.uint64, origins: wp.array(dtype=wp.vec3), directions: wp.array(dtype=wp.vec3), found: wp.array(dtype=int)):  # type: ignore[valid-type]
    i = wp.tid()
    length = wp.length(directions[i])
    query = wp.mesh_query_ray(mesh, origins[i], directions[i] / length, 1.0e30)
    if query.result:
        found[i] = query.face
    else:
        found[i] = -1


@wp.kernel
def occluded(mesh: wp.uint64, origins: wp.array(dtype=wp.vec3), directions: wp.array(dtype=wp.vec3), found: wp.array(dtype=int)):  # type: ignore[valid-type]
    i = wp.tid()
    length = wp.length(directions[i])
    if wp.mesh_query_ray_anyhit(mesh, origins[i], directions[i] / length, 1.0e30):
        found[i] = 1
    else:
        found[i] = 0


def make(points: np.ndarray[Any, Any], triangles: np.ndarray[Any, Any]) -> tuple[float, Callable[..., Any]]:
    """Seconds of the build, and what prepares calls (see Tracer in rays.py)."""
    wp.config.quiet = True
    wp.init()
    positions = wp.array(points, dtype=wp.vec3, device="cuda")
    indices = wp.array(triangles.reshape(-1), dtype=int, device="cuda")
    wp.Mesh(positions, indices)
    wp.synchronize()
    begin = time.perf_counter()
    mesh = wp.Mesh(positions, indices)
    wp.synchronize()
    seconds = time.perf_counter() - begin
    any_hit_kernel = occluded if hasattr(wp, "mesh_query_ray_anyhit") else None

    def prepare(origins: np.ndarray[Any, Any], directions: np.ndarray[Any, Any], any_hit: bool) -> Any:
        o, d = (wp.array(part, dtype=wp.vec3, device="cuda") for part in (origins, directions))
        found = wp.zeros(len(origins), dtype=int, device="cuda")
        kernel = any_hit_kernel if any_hit and any_hit_kernel is not None else closest

        def run() -> None:
            wp.launch(kernel, dim=len(origins), inputs=[mesh.id, o, d, found], device="cuda")
            wp.synchronize()

        def results() -> np.ndarray[Any, Any]:
            numbers = found.numpy()
            return (numbers >= 0).astype(np.int32) if any_hit and kernel is closest else numbers

        return run, results

    return seconds, prepare
