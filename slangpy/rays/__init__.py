"""Rays against scenes of triangles, spheres and boxes, on every device: the Python face of `import slangpy.rays;`."""

from __future__ import annotations

from .files import from_trimesh as from_trimesh, load as load
from .scene import Scene as Scene
from .shapes import Boxes as Boxes, Instance as Instance, Mesh as Mesh, Shape as Shape, Spheres as Spheres

__all__ = ["Boxes", "Instance", "Mesh", "Scene", "Shape", "Spheres", "from_trimesh", "load"]
