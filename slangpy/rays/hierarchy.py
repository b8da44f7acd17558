"""Builds the hierarchy of one set of primitives on the device: the calls of slang/rays/build.slang in their order."""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from .._native import Device
from ..base.folders import LIBRARY_PATH
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
    write_node = 10
    refit_leaf = 11
    refit_node = 12


@dataclass(frozen=True)
class Given:
    """Primitives: `points` of (n, 3), (n, 4) or (n, 6) floats; of triangles also their rows."""

    what: str
    kind: Kind
    count: int
    points: Tensor
    triangles: Tensor


@dataclass(frozen=True)
class Tree:
    """A binary tree over primitives, from which wide nodes are written. levels: where the nodes of each step begin."""

    given: Given
    state: dict[str, Any]
    levels: tuple[int, ...]
    wide_count: int
    lowest: np.ndarray[Any, Any]
    highest: np.ndarray[Any, Any]

    @property
    def extent(self) -> float:
        return float(np.abs([self.lowest, self.highest]).max())

    @property
    def stack(self) -> int:
        """How many nodes may wait while a ray goes down: a wide node, two levels of the tree, leaves three."""
        return 3 * ((len(self.levels) + 1) // 2)


@lru_cache(maxsize=8)
def _module(device: Device) -> Module:
    return Module.load_from_file(device, LIBRARY_PATH / "rays" / "build.slang")


def _run(device: Device, step: Step, count: int, state: dict[str, Any]) -> None:
    _module(device).run(grid((count,)), int(step), state)


def _empty(device: Device, count: int, dtype: str) -> Tensor:
    return Tensor.empty(device, (max(count, 1),), dtype)


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
    state = _new_state(device, given)
    if boxes is not None:
        state["given"].copy_from_numpy(np.concatenate([boxes, np.zeros((count, 2, 1))], axis=2).astype(np.float32).reshape(-1, 4))
    lowest, highest = _bounds(device, given, state)
    extent = highest - lowest
    state["lowest"] = _float3(lowest)
    state["scale"] = _float3(1024 / np.where(extent > 0, extent, 1))
    _sort(device, state)
    _run(device, Step.make_leaf, count, state)
    levels = _cluster(device, state)
    root = state["wide"][2 * count - 2].to_numpy()
    return Tree(given, state, levels, max(int(root.reshape(-1)[0]), 1), lowest, highest)


def _float3(values: np.ndarray[Any, Any]) -> Any:
    return [float(value) for value in values]


def _new_state(device: Device, given: Given) -> dict[str, Any]:
    """The fields of `Build`, uninitialised."""
    count = given.count
    nodes, chunks = 2 * count - 1, _chunks(count)
    keys = [_empty(device, count, "uint2") for _ in range(2)]
    clusters = [_empty(device, count, "int") for _ in range(3)]
    nothing = _empty(device, 1, "float4")
    return {
        "_type": "Build", "points": given.points, "triangles": given.triangles, "kind": int(given.kind), "count": count,
        "point_count": given.points.shape[0], "given": _empty(device, 2 * count, "float4"),
        "bounds": _empty(device, 2 * chunks, "float4"), "lowest": [0.0] * 3, "scale": [0.0] * 3, "keys": keys[0],
        "sorted": keys[1], "table": _empty(device, 16 * chunks, "int"), "totals": _empty(device, 16, "int"),
        "chunk": _chunk(count), "shift": 0, "boxes": _empty(device, 2 * nodes, "float4"), "links": _empty(device, nodes, "int4"),
        "wide": _empty(device, nodes, "int2"), "clusters": clusters[0], "next": clusters[1], "partners": clusters[2],
        "cluster_count": count, "node_count": count, "radius": RADIUS, "nodes": nothing, "primitives": nothing,
        "first_node": 0, "first_primitive": 0, "leaf_size": 1 if given.kind is Kind.instances else LEAF_SIZE,
    }  # fmt: skip


def _bounds(device: Device, given: Given, state: dict[str, Any]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The corners of the box around all; boxes of single primitives stay in `given` on the device."""
    if given.kind is not Kind.instances:
        _run(device, Step.find_box, given.count, state)
    _run(device, Step.find_bounds, _chunks(given.count), state)
    corners = state["bounds"].to_numpy().reshape(-1, 2, 4)
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


def _sort(device: Device, state: dict[str, Any]) -> None:
    """By the 30 bits of the codes."""
    count = state["count"]
    _run(device, Step.find_key, count, state)
    for shift in range(0, 30, 4):
        state["shift"] = shift
        _run(device, Step.count_digits, _chunks(count), state)
        _run(device, Step.sum_digit, 16, state)
        _run(device, Step.place_digits, _chunks(count), state)
        state["keys"], state["sorted"] = state["sorted"], state["keys"]


def _cluster(device: Device, state: dict[str, Any]) -> tuple[int, ...]:
    """Joins clusters until one is left; where the nodes of each step begin, and where the last ends."""
    left, levels = state["count"], [state["count"]]
    while left > 1:
        state.update(cluster_count=left, node_count=levels[-1], chunk=_chunk(left))
        state["radius"] = RADIUS if len(levels) <= LONGEST_SEARCH else 0
        _run(device, Step.find_partner, left, state)
        _run(device, Step.count_clusters, _chunks(left), state)
        _run(device, Step.join_clusters, _chunks(left), state)
        now = int(state["totals"].to_numpy()[0])
        levels.append(levels[-1] + left - now)
        left = now
        state["clusters"], state["next"] = state["next"], state["clusters"]
    return tuple(levels)


def write(device: Device, tree: Tree, nodes: Tensor, primitives: Tensor, first_node: int, first_primitive: int) -> Tree:
    """Writes wide nodes and primitives, from those numbers on."""
    state = {
        **tree.state, "nodes": nodes, "primitives": primitives, "first_node": first_node * NODE_SIZE,
        "first_primitive": first_primitive * PRIMITIVE_SIZE,
    }  # fmt: skip
    _run(device, Step.write_node, 2 * tree.given.count - 1, state)
    return replace(tree, state=state)


def refit(device: Device, tree: Tree, points: Tensor) -> Tree:
    """The same tree, with boxes around primitives that have moved, written to where it lies."""
    given = replace(tree.given, points=points)
    state = {**tree.state, "points": points, "chunk": _chunk(given.count)}
    lowest, highest = _bounds(device, given, state)
    _run(device, Step.refit_leaf, given.count, state)
    for begin, end in zip(tree.levels, tree.levels[1:], strict=False):
        state["node_count"] = begin
        _run(device, Step.refit_node, end - begin, state)
    _run(device, Step.write_node, 2 * given.count - 1, state)
    return replace(tree, given=given, state=state, lowest=lowest, highest=highest)
