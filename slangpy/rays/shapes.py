"""What scenes are made of, as the user gives it: records of arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ..tensor import Tensor

Array: TypeAlias = Any
"""A NumPy array, a nested list, a `Tensor` or a torch tensor."""


@dataclass(frozen=True, eq=False)
class Mesh:
    """Triangles.

    vertices: (n, 3) numbers, or a Tensor of n `float3`. triangles: (m, 3) integers, rows of `vertices`; None: each three
    vertices are one triangle. A Tensor or a torch tensor as `vertices` is what calls see, so that its gradient is found.
    """

    vertices: Array
    triangles: Array | None = None

    def __post_init__(self) -> None:
        rows = check_points("Mesh", "vertices", self.vertices, 3)
        if self.triangles is None:
            if rows % 3:
                raise ValueError(
                    f"Mesh: vertices: {rows} vertices are no whole number of triangles; give triangles=, or three rows for each"
                )
            return
        shape, kind = shape_of(self.triangles), kind_of(self.triangles)
        if kind not in "iu" or len(shape) != 2 or shape[1] != 3 or shape[0] < 1:
            raise ValueError(
                f"Mesh: triangles: expected integers of shape (m, 3) with m > 0, got {_say(self.triangles)}; "
                "quads and polygons must be split first"
            )


@dataclass(frozen=True, eq=False)
class Spheres:
    """Spheres. spheres: (n, 4) numbers, centre and radius (not negative) of each, or a Tensor of n `float4`."""

    spheres: Array

    def __post_init__(self) -> None:
        check_points("Spheres", "spheres", self.spheres, 4)


@dataclass(frozen=True, eq=False)
class Boxes:
    """Boxes along the axes. boxes: (n, 6) numbers, the lowest and then the highest corner of each."""

    boxes: Array

    def __post_init__(self) -> None:
        check_points("Boxes", "boxes", self.boxes, 6)


Shape: TypeAlias = Mesh | Spheres | Boxes


@dataclass(frozen=True, eq=False)
class Instance:
    """A shape at a place of its own. The hierarchy of a shape with many instances is built once.

    transform: from the shape to the world, (3, 4) or (4, 4) numbers that multiply columns; None: none. id: what
    `scene.id(hit)` gives in Slang; None: the number in the scene. mask: rays whose mask has no bit of it pass through.
    """

    shape: Shape
    transform: Array | None = None
    id: int | None = None
    mask: int = 0xFFFFFFFF

    def __post_init__(self) -> None:
        if not isinstance(self.shape, (Mesh, Spheres, Boxes)):
            raise TypeError(f"Instance: shape: expected a Mesh, Spheres or Boxes, got {type(self.shape).__name__}")
        if not isinstance(self.mask, int) or not 0 <= self.mask <= 0xFFFFFFFF:
            raise ValueError(f"Instance: mask: expected an int of 32 bits, got {self.mask!r}")
        if self.id is not None and (not isinstance(self.id, int) or not -(1 << 31) <= self.id < 1 << 31):
            raise ValueError(f"Instance: id: expected an int of 32 bits with sign, or None, got {self.id!r}")
        matrix_of(self)


def matrix_of(instance: Instance) -> np.ndarray[Any, Any]:
    """The transform as 4 x 4 float64; ValueError for what has no inverse."""
    if instance.transform is None:
        return np.eye(4)
    rows = host_array(instance.transform).astype(np.float64)
    if rows.shape not in ((3, 4), (4, 4)) or not np.isfinite(rows).all():
        raise ValueError(f"Instance: transform: expected (3, 4) or (4, 4) finite numbers, got shape {rows.shape}: {rows.tolist()}")
    matrix = np.eye(4)
    matrix[: len(rows)] = rows
    if not np.array_equal(matrix[3], [0, 0, 0, 1]):
        raise ValueError(f"Instance: transform: the last of four rows is 0 0 0 1 (transforms multiply columns), got {matrix[3].tolist()}")
    if not abs(np.linalg.det(matrix)) > 0:
        raise ValueError(f"Instance: transform: it has no inverse: {rows.tolist()}")
    return matrix


def check_points(owner: str, name: str, values: Array, columns: int) -> int:
    """The number of rows; ValueError for other shapes."""
    shape = shape_of(values)
    if isinstance(values, Tensor) and values.dtype.shape:
        shape = (*shape, *values.dtype.shape)
    if len(shape) != 2 or shape[1] != columns or shape[0] < 1 or kind_of(values) not in "fiu":
        raise ValueError(f"{owner}: {name}: expected numbers of shape (n, {columns}) with n > 0, got {_say(values)}")
    return int(shape[0])


def shape_of(values: Array) -> tuple[int, ...]:
    return tuple(values.shape) if hasattr(values, "shape") else np.shape(values)


def kind_of(values: Array) -> str:
    """What numbers they are, in NumPy's letters."""
    if isinstance(values, Tensor):
        return {"float": "f", "half": "f", "double": "f", "bool": "b"}.get(str(values.dtype.scalar), "i")
    if is_torch(values):
        return "f" if values.is_floating_point() else "c" if values.is_complex() else "i"
    return np.asarray(values).dtype.kind


def is_torch(values: Array) -> bool:
    return type(values).__module__.partition(".")[0] == "torch"


def host_array(values: Array) -> np.ndarray[Any, Any]:
    """A copy on the host where the values lie elsewhere."""
    if isinstance(values, Tensor):
        return values.to_numpy()
    return values.detach().cpu().numpy() if is_torch(values) else np.asarray(values)


def _say(values: Array) -> str:
    what = f"{type(values).__name__} of shape {shape_of(values)}"
    return f"{what} of {values.dtype}" if hasattr(values, "dtype") else what


