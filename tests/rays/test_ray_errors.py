"""What scenes refuse, and what they say."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from ray_scenes import soup
from test_hits import trace

import slangpy as spy
from slangpy import rays

POINTS, TRIANGLES = soup(4)
ROWS = TRIANGLES.copy()


@pytest.mark.null
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: rays.Mesh(POINTS[:, :2]), r"Mesh: vertices: expected numbers of shape \(n, 3\) with n > 0, got ndarray of shape \(12, 2\)"),
        (lambda: rays.Mesh(POINTS[:0], TRIANGLES), r"vertices: expected numbers of shape \(n, 3\) with n > 0, got ndarray of shape \(0, 3\)"),
        (lambda: rays.Mesh(POINTS.astype(complex)), "vertices: expected numbers .* of complex128"),
        (lambda: rays.Mesh([["a", "b", "c"]]), "vertices: expected numbers"),
        (lambda: rays.Mesh(POINTS[:4]), "4 vertices are no whole number of triangles; give triangles="),
        (lambda: rays.Mesh(POINTS, TRIANGLES.astype(float)), "triangles: expected integers .* got ndarray of shape .* float64"),
        (lambda: rays.Mesh(POINTS, np.zeros((2, 4), int)), "triangles: expected integers of shape .*; quads and polygons"),
        (lambda: rays.Mesh(POINTS, TRIANGLES[:0]), "triangles: expected integers of shape .* with m > 0"),
        (lambda: rays.Spheres(POINTS), r"Spheres: spheres: expected numbers of shape \(n, 4\)"),
        (lambda: rays.Boxes(POINTS), r"Boxes: boxes: expected numbers of shape \(n, 6\)"),
        (lambda: rays.Instance(POINTS), "Instance: shape: expected a Mesh, Spheres or Boxes, got ndarray"),
        (lambda: rays.Instance(rays.Mesh(POINTS), np.eye(3)), r"transform: expected \(3, 4\) or \(4, 4\) finite numbers, got shape \(3, 3\)"),
        (lambda: rays.Instance(rays.Mesh(POINTS), np.full((3, 4), np.nan)), "transform: expected .* finite numbers"),
        (lambda: rays.Instance(rays.Mesh(POINTS), np.eye(4).T + np.eye(4)[::-1]), "transform: the last of four rows is 0 0 0 1"),
        (lambda: rays.Instance(rays.Mesh(POINTS), np.diag([1, 1, 0, 1])), "transform: it has no inverse"),
        (lambda: rays.Instance(rays.Mesh(POINTS), mask=-1), "mask: expected an int of 32 bits, got -1"),
        (lambda: rays.Instance(rays.Mesh(POINTS), id=1 << 31), "id: expected an int of 32 bits with sign, or None"),
    ],
)  # fmt: skip
def test_records(make: Callable[[], Any], message: str):
    with pytest.raises((TypeError, ValueError), match=message):
        make()


def with_value(at: tuple[int, int], value: float, array: Any = POINTS) -> Any:
    changed = array.copy()
    changed[at] = value
    return changed


BALLS = np.float32([[0, 0, 0, 1], [1, 1, 1, 0.5]])
BLOCKS = np.float32([[0, 0, 0, 1, 1, 1], [1, 1, 1, 2, 2, 2]])
SCENES = [
    (lambda: rays.Mesh(with_value((4, 1), np.nan), ROWS), r"Mesh 0: triangle 1 \(vertices \[3, 4, 5\]\) lies at .*nan.*: coordinates are finite"),
    (lambda: rays.Mesh(with_value((11, 2), np.inf), ROWS), r"triangle 3 .*inf"),
    (lambda: [rays.Mesh(POINTS, ROWS), rays.Mesh(POINTS, with_value((2, 1), 12, ROWS))], r"Mesh 1: triangle 2 has the vertices \[6, 12, 8\], but there are 12 vertices"),
    (lambda: rays.Mesh(POINTS, with_value((2, 1), -1, ROWS)), "indices go from 0 to the number of vertices, got -1"),
    (lambda: rays.Spheres(with_value((1, 3), -0.5, BALLS)), r"Spheres 0: spheres\[1\] is .*-0.5.*: radii are not negative"),
    (lambda: rays.Boxes(with_value((1, 3), 0.5, BLOCKS)), r"Boxes 0: boxes\[1\] is .*: the first corner is the lowest"),
    (list, "items: at least one shape is needed"),
    (lambda: POINTS[0, 0], "items: expected shapes or instances, got float32"),
    (lambda: [POINTS], "items: expected Mesh, Spheres, Boxes or Instance, got ndarray"),
    (lambda: "mesh.obj", "items: expected Mesh, Spheres, Boxes or Instance, got str"),
]  # fmt: skip


@pytest.mark.needs_kernels
def test_scenes(device: spy.Device):
    for make, message in SCENES:
        with pytest.raises((TypeError, ValueError), match=message):
            rays.Scene(device, make())
    with pytest.raises(TypeError, match="device: expected a Device, got NoneType"):
        rays.Scene(None, rays.Mesh(POINTS))  # type: ignore[arg-type]
    if not device.has_feature(spy.Feature.ray_query):
        with pytest.raises(NotImplementedError, match=r"hardware=True: .* has no ray queries .* gives the same hits"):
            rays.Scene(device, rays.Mesh(POINTS, ROWS), hardware=True)


@pytest.mark.needs_kernels
@pytest.mark.one
def test_changes(device: spy.Device):
    mesh = rays.Mesh(POINTS, ROWS)
    with pytest.raises(RuntimeError, match="make it with updatable=True"):
        rays.Scene(device, mesh).refit(POINTS)
    scene = rays.Scene(device, mesh, updatable=True)
    for points, shape, error, message in (
        (POINTS[:-3], 0, ValueError, "the shape has 12 rows, got 9"),
        (POINTS[:, :2], 0, ValueError, r"points: expected numbers of shape \(n, 3\)"),
        (POINTS, 1, IndexError, "shape: expected 0 to 0, got 1"),
        (with_value((4, 1), np.nan), 0, ValueError, "triangle 1 .*nan"),
    ):
        with pytest.raises(error, match=message):
            scene.refit(points, shape)
    with pytest.raises(ValueError, match="expected 1 transforms, one for each instance, got 0"):
        scene.move([])
    with pytest.raises(ValueError, match="it has no inverse"):
        scene.move([np.zeros((3, 4))])
    scene.refit(POINTS)  # what was refused did not harm it
    origin = POINTS[:3].mean(0) - np.float32([0, 0, 5])
    assert trace(scene, origin[None], np.float32([[0, 0, 1]]))["primitive"][0] >= 0


@pytest.mark.needs_kernels
@pytest.mark.one
def test_other_devices(device: spy.Device):
    other = spy.Device(type=spy.DeviceType.null)
    lies = spy.Tensor.empty(other, (12, 3), "float")
    with pytest.raises(ValueError, match=re.escape("Mesh 0: vertices: the Tensor lies on another device (null)")):
        rays.Scene(device, rays.Mesh(lies))
    with pytest.raises(ValueError, match=re.escape("Mesh 0: triangles: the Tensor lies on another device (null)")):
        rays.Scene(device, rays.Mesh(POINTS, spy.Tensor.empty(other, (4, 3), "int")))
    scene = rays.Scene(device, rays.Mesh(POINTS))
    text = "import slangpy; import slangpy.rays; float f(rays::Scene scene) { return scene.extent; }"
    with pytest.raises(ValueError, match=r"argument scene\.\w+ is on another device"):
        spy.Module.load_from_source(other, "rays_elsewhere", text).f(scene)
    halves = spy.Tensor.from_numpy(device, POINTS.astype(np.float16))
    with pytest.raises(TypeError, match="vertices: expected a Tensor of float, got one of half"):
        rays.Scene(device, rays.Mesh(halves))


@pytest.mark.needs_kernels
@pytest.mark.one
def test_torch_tensors(device: spy.Device):
    torch = pytest.importorskip("torch")
    with pytest.raises(TypeError, match=r"expected a torch tensor of torch.float32, got torch.float64; convert it with .float\(\)"):
        rays.Scene(device, rays.Mesh(torch.from_numpy(POINTS).double()))
