"""Scenes: shapes on a device with their hierarchy, passed to functions as `rays::Scene`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..base.own_names import own_names
from ..device.device import Device
from ..tensor import Tensor
from . import driver, hierarchy
from .arrays import check_torch, floats_of, index_tensor, point_tensor
from .hierarchy import Given, Kind, Tree
from .shapes import Array, Boxes, Instance, Mesh, Shape, Spheres, check_points, is_torch, matrix_of

_COLUMNS = {Kind.triangles: 3, Kind.spheres: 4, Kind.boxes: 6}
_FIELDS = {Kind.triangles: "vertices", Kind.spheres: "spheres", Kind.boxes: "boxes"}

_FORMS = ("triangles", "spheres", "boxes", "meshes", "instances")
"""As rays::Form in slang/rays/traverse.slang."""


@dataclass(frozen=True)
class _Part:
    """A shape of a scene, and where it begins among those of its kind, among triangles, nodes and primitives."""

    shape: Shape
    tree: Tree
    first_row: int
    first_triangle: int
    first_node: int
    first_primitive: int


@own_names
class Scene:
    """Shapes and the hierarchy over them, built on the device.

    Functions take it as a parameter of type `rays::Scene` (`import slangpy.rays;`).
    """

    def __init__(
        self,
        device: Device,
        items: Shape | Instance | Iterable[Shape | Instance],
        updatable: bool = False,
        hardware: bool = False,
    ) -> None:
        """items: one shape or instance, or several; a shape that several instances have is built once. updatable: keep
        what `refit` needs, about 160 bytes a primitive. hardware: the device's own ray queries answer, over structures
        that are built beside the hierarchy; NotImplementedError where it has none.

        ValueError for shapes with infinite coordinates or indices beyond their vertices, and for Tensors of other devices.
        """
        if not isinstance(device, Device):
            raise TypeError(f"Scene: device: expected a Device, got {type(device).__name__}")
        self._device, self._updatable = device, updatable
        self._instances = _instances_of(items)
        self._hardware = hardware
        if hardware:
            driver.check(device, self._instances)
        shapes = list({id(instance.shape): instance.shape for instance in self._instances}.values())
        given = [_given(device, number, shape) for number, shape in enumerate(shapes)]
        total = sum(each.count for each in given)
        if total > 2 * hierarchy.MOST_PRIMITIVES:  # places in tables have 32 bits
            raise ValueError(f"Scene: items: {total} primitives; a scene holds {2 * hierarchy.MOST_PRIMITIVES}")
        self._parts = _place(shapes, [hierarchy.build(device, each) for each in given])
        self._top_node = sum(part.tree.wide_count for part in self._parts)
        self._primitives = _new(device, total * hierarchy.PRIMITIVE_SIZE)
        self._data = {kind: _gather(device, self._parts, kind) for kind in _COLUMNS}
        self._triangles = _gather_triangles(device, given)
        self._structures = [driver.build_shape(device, each, updatable) for each in given] if hardware else []
        self._structure: Any = None
        self._build_top(write_parts=True)

    # --- what there is
    @property
    def device(self) -> Device:
        """The device that holds the scene."""
        return self._device

    @property
    def instances(self) -> tuple[Instance, ...]:
        """In the order of `Hit.instance`."""
        return self._instances

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """Those of the instances, each once."""
        return tuple(part.shape for part in self._parts)

    @property
    def vertices(self) -> Any:
        """(n, 3) vertices of all meshes, as functions see them: where there is one mesh, its own Tensor or torch tensor."""
        return self._data[Kind.triangles]

    @property
    def spheres(self) -> Any:
        """(n, 4) spheres, as functions see them."""
        return self._data[Kind.spheres]

    @property
    def boxes(self) -> Any:
        """(n, 6) boxes, as functions see them."""
        return self._data[Kind.boxes]

    @property
    def bounds(self) -> np.ndarray[Any, Any]:
        """(2, 3): the lowest and the highest corner of what contains all instances."""
        return self._bounds.copy()

    def get_this(self) -> dict[str, Any]:
        """The value of the parameter."""
        return self._this

    def write_to_cursor(self, cursor: Any) -> None:
        """Writes the value into a `rays::Scene` of a cursor."""
        fields = {name: value for name, value in self._this.items() if name != "_type"}
        cursor.write({**fields, "form": _FORMS.index(self._this["form"])})

    def __repr__(self) -> str:
        count = sum(part.tree.given.count for part in self._parts)
        return f"Scene({len(self._instances)} instances of {len(self._parts)} shapes, {count} primitives, {self._device.type.name})"

    # --- changes
    def refit(self, points: Array, shape: int = 0) -> None:
        """Gives a shape new vertices, spheres or boxes, as many as it has, and fits the boxes of the hierarchy to them.

        Faster than a new scene, and nearly as good while the shape keeps its form; after large changes rays get slower,
        not wrong. shape: its number in `shapes`. RuntimeError if the scene is not `updatable`.
        """
        if not self._updatable:
            raise RuntimeError("Scene.refit: the scene keeps nothing for that: make it with updatable=True")
        if not 0 <= shape < len(self._parts):
            raise IndexError(f"Scene.refit: shape: expected 0 to {len(self._parts) - 1}, got {shape}")
        part = self._parts[shape]
        kind = part.tree.given.kind
        rows = check_points("Scene.refit", "points", points, _COLUMNS[kind])
        if rows != part.tree.given.points.shape[0]:
            raise ValueError(
                f"Scene.refit: points: the shape has {part.tree.given.points.shape[0]} rows, got {rows}; make a new Scene "
                "for another number"
            )
        tensor = point_tensor(self._device, "Scene.refit: points", points)
        tree = hierarchy.refit(self._device, part.tree, tensor)
        parts = [replace(old, tree=tree) if old is part else old for old in self._parts]
        if self._hardware:
            driver.build_shape(self._device, tree.given, True, self._structures[shape])
        if sum(other.tree.given.kind is kind for other in parts) == 1:
            self._data[kind] = _seen(self._device, "Scene.refit: points", points, tensor)
        else:
            self._data[kind][part.first_row : part.first_row + rows] = tensor
        self._parts = parts
        self._build_top(write_parts=False)

    def move(self, transforms: Sequence[Array | None]) -> None:
        """Gives each instance a new transform: see `Instance`. Shapes are not built again."""
        if len(transforms) != len(self._instances):
            raise ValueError(f"Scene.move: expected {len(self._instances)} transforms, one for each instance, got {len(transforms)}")
        self._instances = tuple(
            Instance(old.shape, new, old.id, old.mask) for old, new in zip(self._instances, transforms, strict=True)
        )
        self._build_top(write_parts=False)

    # --- construction
    def _build_top(self, write_parts: bool) -> None:
        """The hierarchy over instances, and what functions get."""
        device, first = self._device, self._instances[0]
        matrices = [matrix_of(instance) for instance in self._instances]
        by_shape = {id(part.shape): part for part in self._parts}
        parts = [by_shape[id(instance.shape)] for instance in self._instances]
        is_flat = len(parts) == 1 and first.mask == 0xFFFFFFFF and np.array_equal(matrices[0], np.eye(4))
        corners = np.stack([_moved_bounds(part.tree, matrix) for part, matrix in zip(parts, matrices, strict=True)])
        top = None
        if not is_flat:
            nothing = Tensor.zeros(device, (1, 3), "float")
            whole = Given("Scene: instances", Kind.instances, len(parts), nothing, Tensor.zeros(device, (1, 3), "int"))
            top = hierarchy.build(device, whole, corners)
        _check_stack(top, parts)
        node_count = self._top_node + (top.wide_count if top else 0)
        if write_parts:
            self._nodes = _new(device, node_count * hierarchy.NODE_SIZE)
            self._parts = [self._written(part) for part in self._parts]
        elif node_count * hierarchy.NODE_SIZE > self._nodes.shape[0]:
            grown = _new(device, node_count * hierarchy.NODE_SIZE)
            grown[: self._top_node * hierarchy.NODE_SIZE] = self._nodes[: self._top_node * hierarchy.NODE_SIZE]
            self._nodes = grown
            self._parts = [replace(part, tree=hierarchy.moved_to(part.tree, grown)) for part in self._parts]
        if top is not None:
            hierarchy.write(device, top, self._nodes, self._primitives, self._top_node, 0)
        self._structure = self._build_structure(matrices) if self._hardware else None
        self._bounds = np.stack([corners[:, 0].min(axis=0), corners[:, 1].max(axis=0)])
        self._this = {
            "_type": "rays::Scene", "nodes": self._nodes, "primitives": self._primitives,
            "instances": _records(device, self._instances, parts, matrices), "vertices": self.vertices,
            "triangles": self._triangles, "spheres": self.spheres, "boxes": self.boxes,
            "form": _form_of(parts, is_flat), "top": 0 if is_flat else self._top_node,
            "extent": parts[0].tree.extent if is_flat else float(np.abs(self._bounds).max()),
            "_spy_structure": self._structure.device_address if self._structure else False,  # another kernel than numbers
        }  # fmt: skip

    def _build_structure(self, matrices: list[np.ndarray[Any, Any]]) -> Any:
        by_shape = {id(part.shape): made for part, made in zip(self._parts, self._structures, strict=True)}
        shapes = [by_shape[id(instance.shape)] for instance in self._instances]
        return driver.build_top(self._device, shapes, self._instances, matrices, self._structure)

    def _written(self, part: _Part) -> _Part:
        tree = hierarchy.write(
            self._device, part.tree, self._nodes, self._primitives, part.first_node, part.first_primitive
        )
        return replace(part, tree=tree if self._updatable else replace(tree, build=None))


def _instances_of(items: Any) -> tuple[Instance, ...]:
    alone = isinstance(items, (Mesh, Spheres, Boxes, Instance))
    if not alone and not isinstance(items, Iterable):
        raise TypeError(f"Scene: items: expected shapes or instances, got {type(items).__name__}; see slangpy.rays.from_trimesh")
    found = []
    for item in [items] if alone else items:
        if not isinstance(item, (Mesh, Spheres, Boxes, Instance)):
            raise TypeError(
                f"Scene: items: expected Mesh, Spheres, Boxes or Instance, got {type(item).__name__}; "
                "slangpy.rays.from_trimesh takes objects of trimesh"
            )
        found.append(item if isinstance(item, Instance) else Instance(item))
    if not found:
        raise ValueError("Scene: items: at least one shape is needed")
    return tuple(found)


def _given(device: Device, number: int, shape: Shape) -> Given:
    """The shape's arrays on the device."""
    what = f"Scene: {type(shape).__name__} {number}"
    nothing = Tensor.zeros(device, (1, 3), "int")
    if isinstance(shape, Spheres):
        points = point_tensor(device, f"{what}: spheres", shape.spheres)
        return Given(what, Kind.spheres, points.shape[0], points, nothing)
    if isinstance(shape, Boxes):
        points = point_tensor(device, f"{what}: boxes", shape.boxes)
        return Given(what, Kind.boxes, points.shape[0], points, nothing)
    points = point_tensor(device, f"{what}: vertices", shape.vertices)
    rows = np.arange(points.shape[0]).reshape(-1, 3) if shape.triangles is None else shape.triangles
    triangles = index_tensor(device, f"{what}: triangles", rows)
    return Given(what, Kind.triangles, triangles.shape[0], points, triangles)


def _form_of(parts: list[_Part], is_flat: bool) -> str:
    """The value of rays::Form, by name: a constant of the kernels that take the scene."""
    kinds = {part.tree.given.kind for part in parts}
    if is_flat:
        return parts[0].tree.given.kind.name
    return "meshes" if kinds == {Kind.triangles} else "instances"


def _place(shapes: list[Shape], trees: list[Tree]) -> list[_Part]:
    """Where each shape begins."""
    parts = []
    rows = dict.fromkeys(_COLUMNS, 0)
    triangles = nodes = primitives = 0
    for shape, tree in zip(shapes, trees, strict=True):
        given = tree.given
        parts.append(_Part(shape, tree, rows[given.kind], triangles, nodes, primitives))
        rows[given.kind] += given.points.shape[0]
        triangles += given.count if given.kind is Kind.triangles else 0
        nodes += tree.wide_count
        primitives += given.count
    return parts


def _new(device: Device, count: int) -> Tensor:
    return Tensor.empty(device, (count,), "float4")


def _gather(device: Device, parts: list[_Part], kind: Kind) -> Any:
    """What functions see of all shapes of a kind."""
    own = [part for part in parts if part.tree.given.kind is kind]
    if not own:
        return Tensor.zeros(device, (1, _COLUMNS[kind]), "float")
    if len(own) == 1:
        values = getattr(own[0].shape, _FIELDS[kind])
        return _seen(device, own[0].tree.given.what, values, own[0].tree.given.points)
    rows = sum(part.tree.given.points.shape[0] for part in own)
    gathered = Tensor.empty(device, (rows, _COLUMNS[kind]), "float")
    for part in own:
        points = part.tree.given.points
        gathered[part.first_row : part.first_row + points.shape[0]] = points
    return gathered


def _seen(device: Device, what: str, values: Array, tensor: Tensor) -> Any:
    """The user's own tensor, so that gradients arrive there, or what was made of other arrays."""
    if is_torch(values):
        check_torch(what, values)
        return values
    return floats_of(device, what, values) if isinstance(values, Tensor) else tensor


def _gather_triangles(device: Device, given: list[Given]) -> Tensor:
    own = [each.triangles for each in given if each.kind is Kind.triangles]
    if len(own) == 1:
        return own[0]
    gathered = Tensor.zeros(device, (max(sum(each.shape[0] for each in own), 1), 3), "int")
    at = 0
    for each in own:
        gathered[at : at + each.shape[0]] = each
        at += each.shape[0]
    return gathered


def _moved_bounds(tree: Tree, matrix: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """(2, 3): a box in the world around the box of a shape, larger by what rounding may take away."""
    corners = np.stack([tree.lowest, tree.highest]).astype(np.float64)
    if np.array_equal(matrix, np.eye(4)):
        return corners
    choice = np.array(list(np.ndindex(2, 2, 2)))
    moved = corners[choice, np.arange(3)] @ matrix[:3, :3].T + matrix[:3, 3]
    pad = 2e-6 * (np.abs(corners).max() * np.abs(matrix[:3, :3]).sum(axis=1) + np.abs(matrix[:3, 3]))
    return np.stack([moved.min(axis=0) - pad, moved.max(axis=0) + pad])


def _records(device: Device, instances: Sequence[Instance], parts: list[_Part], matrices: list[np.ndarray[Any, Any]]) -> Tensor:
    """The table of slang/rays/traverse.slang."""
    table = np.zeros((len(parts), 8, 4), np.float32)
    whole = table.view(np.uint32)
    for number, (instance, part, matrix) in enumerate(zip(instances, parts, matrices, strict=True)):
        table[number, :3] = np.linalg.inv(matrix)[:3]
        table[number, 3:6] = matrix[:3]
        whole[number, 6] = part.first_node, part.first_primitive, int(part.tree.given.kind), instance.mask
        own = number if instance.id is None else instance.id
        whole[number, 7, :3] = own & 0xFFFFFFFF, part.first_row, part.first_triangle
        table[number, 7, 3] = part.tree.extent
    return Tensor.from_numpy(device, table.reshape(-1, 4), target_slang_dtype="float4")


def _check_stack(top: Tree | None, parts: list[_Part]) -> None:
    needed = max(part.tree.stack for part in parts) + (top.stack if top else 0)
    if needed > hierarchy.STACK_SIZE:
        raise ValueError(f"Scene: its hierarchy is too deep ({needed} of {hierarchy.STACK_SIZE} waiting nodes): make it smaller scenes")
