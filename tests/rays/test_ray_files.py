"""Meshes of trimesh and of files that it reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_hits import trace

import slangpy as spy
from slangpy import rays

trimesh: Any = pytest.importorskip("trimesh")
pytestmark = [pytest.mark.needs_kernels, pytest.mark.one]
DOWN = np.float32([[0, 0, -1]])


def place(x: float, y: float, z: float) -> np.ndarray[Any, Any]:
    matrix = np.eye(4)
    matrix[:3, 3] = x, y, z
    return matrix


def heights(device: spy.Device, items: Any, *at: tuple[float, float]) -> list[float]:
    """Of what a ray from above meets; nan for nothing."""
    origins = np.float32([[x, y, 100] for x, y in at])
    found = trace(rays.Scene(device, items), origins, np.tile(DOWN, (len(at), 1)))
    return np.where(found["primitive"] >= 0, 100 - found["t"], np.nan).tolist()


def test_objects(device: spy.Device):
    box = trimesh.creation.box((2, 2, 2))
    assert heights(device, rays.from_trimesh(box), (0.3, 0.2), (1.5, 0)) == pytest.approx([1, np.nan], nan_ok=True)
    scene = trimesh.Scene()
    scene.add_geometry(box, geom_name="box", node_name="first")
    scene.graph.update("second", matrix=place(5, 0, 2), geometry="box")
    scene.add_geometry(trimesh.creation.icosphere(radius=0.5), node_name="ball", transform=place(-4, 0, 7))
    scene.add_geometry(trimesh.PointCloud(np.zeros((3, 3))))
    items = rays.from_trimesh(scene)
    assert len(items) == 3 and len({id(item.shape) for item in items}) == 2  # the box is one mesh
    assert heights(device, items, (0, 0.1), (5, 0.1), (-4, 0)) == pytest.approx([1, 3, 7.5], abs=1e-3)


@pytest.mark.parametrize("name", ["two.obj", "two.glb", "two.gltf", "two.ply", "two.stl"])
def test_files(device: spy.Device, tmp_path: Path, name: str):
    parts = [trimesh.creation.box((2, 2, 2)), trimesh.creation.box((1, 1, 1), place(3, 0, 0))]
    whole = trimesh.util.concatenate(parts) if name.endswith(("ply", "stl")) else trimesh.Scene(parts)
    if name.endswith("gltf"):
        for file, content in whole.export(file_type="gltf").items():
            (tmp_path / file).write_bytes(content)
        name = "model.gltf"
    else:
        whole.export(tmp_path / name)
    assert heights(device, rays.load(tmp_path / name), (0.2, 0.1), (3.2, 0.1)) == pytest.approx([1, 0.5])


def test_what_is_none(tmp_path: Path, device_type: spy.DeviceType):
    with pytest.raises(TypeError, match=r"expected a trimesh.Trimesh or a trimesh.Scene, got int"):
        rays.from_trimesh(3)
    with pytest.raises(ValueError, match="the scene has no triangles"):
        rays.from_trimesh(trimesh.Scene([trimesh.PointCloud(np.zeros((3, 3)))]))
    with pytest.raises((ValueError, FileNotFoundError), match="missing.obj"):
        rays.load(tmp_path / "missing.obj")


def test_without_trimesh(monkeypatch: pytest.MonkeyPatch, device_type: spy.DeviceType):
    monkeypatch.setattr("slangpy.rays.files.find_package", lambda name: None)
    with pytest.raises(ImportError, match=r'rays.load needs trimesh: pip install "slangpy\[scene\]"'):
        rays.load("mesh.obj")
