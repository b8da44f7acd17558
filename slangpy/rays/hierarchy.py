"""Builds the hierarchy of one set of primitives on the device: the calls of slang/rays/build.slang in their order."""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from ..base.folders import LIBRARY_PATH
from ..device.device import Device
from ..generators import grid
from ..module import Module
from ..tensor import Tensor

NODE_SIZE, PRIMITIVE_SIZE = 8, 3
"""In float4, as in slang/rays/traverse.slang."""
STACK_SIZE = 128
MOST_PRIMITIVES = 1 << 28
RADIUS = 8
"""How far clusters look for partners: the hierarchy gets better and its build slower."""
LEAF_SIZE = 4
LONGEST_SEARCH = 32
"""Steps after which neighbours are joined as they lie: boxes can be such that few find each other in a step."""


class Kind(enum.IntEnum):
    """As in slang/rays/intersect.slang."""

    triangles = 0
    spheres = 1
    boxes = 2
    instances = 3


class Step(enum.IntEnum):
    """As in slang/rays/build.slang."""

    find_box = 0
    find_bounds = 1
    find_key = 2
    count_digits = 3
    sum_digit = 4
    place_digits = 5
    make_leaf = 6
    find_partner = 7
    count_clusters = 8
    join_clusters = 9
    choose_wide = 10
    count_wide = 11
    write_node = 12
    refit_leaf = 13
    refit_node = 14


class _Argument:
    """A record that calls take as the struct of the same name."""

    def get_this(self) -> dict[str, Any]:
        return {"_type": type(self).__name__, **vars(self)}


@dataclass(frozen=True)
class Given:
    """Primitives: `points` of (n, 3), (n, 4) or (n, 6) floats; of triangles also their rows. what: for messages."""

    what: str
    kind: Kind
    count: int
    points: Tensor
    triangles: Tensor


# The records of build.slang, which says what their fields are.
@dataclass(frozen=True)
class Input(_Argument):
    points: Tensor
    triangles: Tensor
    kind: int
    count: int
    point_count: int


@dataclass(frozen=True)
class Sorting(_Argument):
    boxes: Tensor
    bounds: Tensor
    keys: Tensor
    sorted: Tensor
    table: Tensor
    totals: Tensor
    chunk: int
    shift: int = 0
    lowest: tuple[float, ...] = (0.0, 0.0, 0.0)
    scale: tuple[float, ...] = (0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Nodes(_Argument):
    boxes: Tensor
    links: Tensor
    wide: Tensor

    def get_this(self) -> dict[str, Any]:
        return {"_type": "Tree", **vars(self)}


@dataclass(frozen=True)
class Clusters(_Argument):
    now: Tensor
    next: Tensor
    partners: Tensor
    count: int
    made: int
    radius: int = 0


@dataclass(frozen=True)
class Output(_Argument):
    nodes: Tensor
    primitives: Tensor
    leaf_size: int
    first_node: int = 0
    first_primitive: int = 0


@dataclass(frozen=True)
class Build(_Argument):
    input: Input
    sorting: Sorting
    tree: Nodes
    clusters: Clusters
    output: Output


@dataclass(frozen=True)
class Tree:
    """A binary tree over primitives, from which wide nodes are written. levels: where the nodes of each step begin, and where
    the last end. build: None where nothing is kept. stack: how many nodes may wait while a ray goes down."""

    given: Given
    build: Build | None
    levels: tuple[int, ...]
    wide_count: int
    stack: int
    lowest: np.ndarray[Any, Any]
    highest: np.ndarray[Any, Any]

    @property
    def extent(self) -> float:
        return float(np.abs([self.lowest, self.highest]).max())


def _module(device: Device) -> Module:
    state = device._state
    if state.ray_builder is None:
        state.ray_builder = Module.load_from_file(device, LIBRARY_PATH / "rays" / "build.slang")
    return state.ray_builder


def _run(device: Device, step: Step, count: int, build: Build) -> None:
    _module(device).run(grid((count,)), int(step), build)


def _run_on(device: Device, step: Step, begin: int, end: int, build: Build) -> None:
    """On the nodes from `begin` to `end`."""
    _run(device, step, end - begin, replace(build, clusters=replace(build.clusters, made=begin)))


def _empty(device: Device, count: int, dtype: str) -> Tensor:
    return Tensor.empty(device, (count,), dtype)


def _chunk(count: int) -> int:
    """How many items a thread goes through where the steps of threads depend on those before."""
    return 256 if count <= 1 << 18 else 1024


def _chunks(count: int) -> int:
    return -(-count // _chunk(count))


def build(device: Device, given: Given, boxes: np.ndarray[Any, Any] | None = None) -> Tree:
    """The tree. boxes: those of instances, (n, 2, 3). ValueError for primitives that have no box."""
    count = given.count
    if count >= MOST_PRIMITIVES:
        raise ValueError(f"{given.what}: {count} primitives; a hierarchy holds {MOST_PRIMITIVES - 1}: make it several shapes")
    made = _new_build(device, given)
    if boxes is not None:
        rows = np.concatenate([boxes, np.zeros((count, 2, 1))], axis=2)
        made.sorting.boxes.copy_from_numpy(rows.astype(np.float32).reshape(-1, 4))
    lowest, highest = _bounds(device, given, made)
    made = _sort(device, made, lowest, highest)
    _run(device, Step.make_leaf, count, made)
    levels = _cluster(device, made)
    for begin, end in reversed(_spans(levels)):
        _run_on(device, Step.choose_wide, begin, end, made)
    for begin, end in _spans(levels):
        _run_on(device, Step.count_wide, begin, end, made)
    wide_count, _, stack, _ = made.tree.wide[2 * count - 2].to_numpy().reshape(-1).tolist()
    return Tree(given, made, levels, max(wide_count, 1), stack, lowest, highest)


def _spans(levels: tuple[int, ...]) -> list[tuple[int, int]]:
    return list(pairwise(levels))


def _new_build(device: Device, given: Given) -> Build:
    """With tensors whose contents are not set."""
    count, chunks = given.count, _chunks(given.count)
    nodes = 2 * count - 1
    nothing = _empty(device, 1, "float4")
    return Build(
        Input(given.points, given.triangles, int(given.kind), count, given.points.shape[0]),
        Sorting(
            _empty(device, 2 * count, "float4"), _empty(device, 2 * chunks, "float4"), _empty(device, count, "uint2"),
            _empty(device, count, "uint2"), _empty(device, 16 * chunks, "int"), _empty(device, 16, "int"), _chunk(count),
        ),
        Nodes(_empty(device, 2 * nodes, "float4"), _empty(device, nodes, "int4"), _empty(device, nodes, "int4")),
        Clusters(*(_empty(device, count, "int") for _ in range(3)), count=count, made=count),
        Output(nothing, nothing, 1 if given.kind is Kind.instances else LEAF_SIZE),
    )  # fmt: skip


def _bounds(device: Device, given: Given, build: Build) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The corners of the box around all; boxes of single primitives stay in `sorting` on the device."""
    if given.kind is not Kind.instances:
        _run(device, Step.find_box, given.count, build)
    _run(device, Step.find_bounds, _chunks(given.count), build)
    corners = build.sorting.bounds.to_numpy().reshape(-1, 2, 4)
    wrong = np.flatnonzero(corners[:, 1, 3] != 0)
    if wrong.size:
        chunk = corners[wrong[0]]
        _raise_wrong(given, int(chunk[0, 3:].view(np.int32)[0]), int(chunk[1, 3]))
    return corners[:, 0, :3].min(axis=0), corners[:, 1, :3].max(axis=0)


def _raise_wrong(given: Given, primitive: int, how: int) -> None:
    if how == 2:
        row = given.triangles[primitive].to_numpy().tolist()
        raise ValueError(
            f"{given.what}: triangle {primitive} has the vertices {row}, but there are {given.points.shape[0]} vertices "
            "(counted from 0)"
        )
    if given.kind is Kind.triangles:
        rows = given.triangles[primitive].to_numpy().tolist()
        points = [given.points[row].to_numpy().tolist() for row in rows]
        what = f"triangle {primitive} (vertices {rows}) lies at {points}"
    else:
        what = f"{given.kind.name}[{primitive}] is {given.points[primitive].to_numpy().tolist()}"
    rule = {
        Kind.triangles: "coordinates",
        Kind.spheres: "radii are not negative, and coordinates",
        Kind.boxes: "the first corner is the lowest, and coordinates",
    }[given.kind]
    raise ValueError(f"{given.what}: {what}: {rule} are finite and below 1e18")


def _sort(device: Device, build: Build, lowest: np.ndarray[Any, Any], highest: np.ndarray[Any, Any]) -> Build:
    """By the 31 bits of the codes."""
    extent = highest - lowest
    scale = 1024 / np.where(extent > 0, extent, 1)
    build = replace(build, sorting=replace(build.sorting, lowest=tuple(lowest.tolist()), scale=tuple(scale.tolist())))
    count = build.input.count
    _run(device, Step.find_key, count, build)
    for shift in range(0, 32, 4):
        build = replace(build, sorting=replace(build.sorting, shift=shift))
        _run(device, Step.count_digits, _chunks(count), build)
        _run(device, Step.sum_digit, 16, build)
        _run(device, Step.place_digits, _chunks(count), build)
        now = build.sorting
        build = replace(build, sorting=replace(now, keys=now.sorted, sorted=now.keys))
    return build


def _cluster(device: Device, build: Build) -> tuple[int, ...]:
    """Joins clusters until one is left; where the nodes of each step begin, and where the last ends."""
    left, levels = build.input.count, [build.input.count]
    while left > 1:
        radius = RADIUS if len(levels) <= LONGEST_SEARCH else 0
        clusters = replace(build.clusters, count=left, made=levels[-1], radius=radius)
        build = replace(build, clusters=clusters, sorting=replace(build.sorting, chunk=_chunk(left)))
        _run(device, Step.find_partner, left, build)
        _run(device, Step.count_clusters, _chunks(left), build)
        _run(device, Step.join_clusters, _chunks(left), build)
        now = int(build.sorting.totals.to_numpy()[0])
        levels.append(levels[-1] + left - now)
        left = now
        build = replace(build, clusters=replace(clusters, now=clusters.next, next=clusters.now))
    return tuple(levels)


def write(device: Device, tree: Tree, nodes: Tensor, primitives: Tensor, first_node: int, first_primitive: int) -> Tree:
    """Writes wide nodes and primitives, from those numbers on. What is left is what `refit` needs."""
    made = _kept(tree)
    output = Output(nodes, primitives, made.output.leaf_size, first_node * NODE_SIZE, first_primitive * PRIMITIVE_SIZE)
    made = replace(made, output=output)
    _run(device, Step.write_node, 2 * tree.given.count - 1, made)
    nothing, no_keys = made.sorting.totals, _empty(device, 1, "uint2")
    sorting = replace(made.sorting, keys=no_keys, sorted=no_keys, table=nothing)
    clusters = replace(made.clusters, now=nothing, next=nothing, partners=nothing)
    return replace(tree, build=replace(made, sorting=sorting, clusters=clusters))


def refit(device: Device, tree: Tree, points: Tensor) -> Tree:
    """The same tree, with boxes around primitives that have moved, written to where it lies."""
    made = _kept(tree)
    made = replace(made, input=replace(made.input, points=points))
    given = replace(tree.given, points=points)
    lowest, highest = _bounds(device, given, made)
    _run(device, Step.refit_leaf, given.count, made)
    for begin, end in _spans(tree.levels):
        _run_on(device, Step.refit_node, begin, end, made)
    _run(device, Step.write_node, 2 * given.count - 1, made)
    return replace(tree, given=given, build=made, lowest=lowest, highest=highest)


def moved_to(tree: Tree, nodes: Tensor) -> Tree:
    """The tree, whose wide nodes were copied to another tensor."""
    if tree.build is None:
        return tree
    return replace(tree, build=replace(tree.build, output=replace(tree.build.output, nodes=nodes)))


def _kept(tree: Tree) -> Build:
    if tree.build is None:
        raise RuntimeError(f"{tree.given.what}: nothing of its build was kept")
    return tree.build
