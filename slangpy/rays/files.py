"""Meshes of the library `trimesh`, which reads OBJ, glTF, PLY, STL and others: `pip install "slangpy[scene]"`."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from ..base.optional import find_package
from .shapes import Instance, Mesh


def from_trimesh(value: Any) -> list[Instance]:
    """The meshes of a `trimesh.Trimesh` or `trimesh.Scene`, each with its place in the scene.

    Vertices are float32, faces int32; meshes that occur several times are one `Mesh`. What is no surface (points, paths) is
    left out. TypeError for other objects, ValueError where no triangle is left.
    """
    trimesh = _trimesh("from_trimesh")
    if isinstance(value, trimesh.Trimesh):
        return [Instance(_mesh(value))]
    if not isinstance(value, trimesh.Scene):
        raise TypeError(f"from_trimesh: expected a trimesh.Trimesh or a trimesh.Scene, got {type(value).__name__}")
    surfaces = {
        name: _mesh(geometry)
        for name, geometry in value.geometry.items()
        if isinstance(geometry, trimesh.Trimesh) and len(geometry.faces)
    }
    found = []
    for node in value.graph.nodes_geometry:
        transform, name = value.graph[node]
        if name in surfaces:
            is_moved = not np.array_equal(transform, np.eye(4))
            found.append(Instance(surfaces[name], np.asarray(transform) if is_moved else None))
    if not found:
        raise ValueError("from_trimesh: the scene has no triangles")
    return found


def load(path: str | os.PathLike[str]) -> list[Instance]:
    """The meshes of a file that `trimesh` reads, as `from_trimesh` gives them.

    FileNotFoundError where there is none, ValueError for files that `trimesh` cannot read or that hold no triangle.
    """
    trimesh, name = _trimesh("load"), os.fspath(path)
    if not os.path.isfile(name):
        raise FileNotFoundError(f"rays.load: 'path': there is no file {name}; relative paths start at {os.getcwd()}")
    try:
        scene = trimesh.load_scene(name)
    except Exception as error:  # a reader of each format raises what it likes
        raise ValueError(f"rays.load: {name} cannot be read by trimesh: {type(error).__name__}: {error}") from error
    return from_trimesh(scene)


def _mesh(mesh: Any) -> Mesh:
    return Mesh(np.asarray(mesh.vertices, np.float32), np.asarray(mesh.faces, np.int32))


def _trimesh(function: str) -> Any:
    found = find_package("trimesh")
    if found is None:
        raise ImportError(f'rays.{function} needs trimesh: pip install "slangpy[scene]"')
    return found
