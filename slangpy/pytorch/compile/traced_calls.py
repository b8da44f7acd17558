"""Traced calls: what of them is neither tensor nor number, planned once with stand-ins of the tensors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch  # pyright: ignore[reportMissingImports]

from ... import _native
from ...base.scalars import SCALARS
from ...plan.planner import decode
from ...plan.specification import CustomSpec, LeafSpec, PackedSpec, TableSpec, ViewSpec
from .. import autograd

DTYPES = {scalar.name: getattr(torch, scalar.torch) for scalar in SCALARS.values()}
records: dict[str, Record] = {}
objects: dict[str, Any] = {}
"""What templates name: generators, enumerations, ranges, classes, vectors."""
contents: dict[str, Any] = {}
"""What those that can be written to held when they were traced."""


def content_of(value: Any) -> Any:
    """What a vector, matrix, reference or pair holds, to be compared; None for what never changes."""
    if isinstance(value, _native.ValueRef):
        return "reference", content_of(value.value) or repr(value.value)
    if isinstance(value, _native.DiffPair):
        return "pair", content_of(value.primal) or repr(value.primal)
    if isinstance(value, _native.float16_t) or hasattr(value, "element_type"):
        return np.asarray(value).tobytes()
    return None


def _object(key: str) -> Any:
    """An object of the structure. RuntimeError when it holds something else than when the call was traced: the forward
    and the backward pass run at different times and must read the same."""
    value = objects[key]
    held = contents.get(key)
    if held is not None and held != content_of(value):
        raise RuntimeError(
            f"slangpy: this {type(value).__name__} was changed after torch.compile had traced the call that takes it; pass a "
            "torch tensor or numbers, or a new object"
        )
    return value


@dataclass
class _Leaf:
    """What one value tells about the call shape: call dimensions of its leading sizes, demanded trailing sizes."""

    name: str
    map: tuple[int, ...]
    inner: tuple[int, ...]
    tensor: int
    """Position among the tensors; -1: `sizes` are known."""
    sizes: tuple[int, ...]


@dataclass
class Record:
    """All of a traced call that is neither tensor nor number."""

    node: Any
    template: Any
    kinds: Any
    view: Any
    recipe: autograd._Recipe
    leaves: list[_Leaf]

    def call(self, ints: Sequence[int], numbers: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments with slots for tensors."""
        floats = iter([number.item() for number in numbers])
        rest = iter(ints)
        bound, positional, named = self.template
        this = {} if bound is None else {"_this": _fill(bound, rest, floats)}
        args = tuple([_fill(part, rest, floats) for part in positional])
        return args, {**{name: _fill(part, rest, floats) for name, part in named}, **this}


def _fill(template: Any, ints: Iterator[int], floats: Iterator[float]) -> Any:
    kind = template[0]
    if kind == "tensor":
        return autograd._SLOT
    if kind == "int":
        return next(ints)
    if kind == "float":
        return next(floats)
    if kind == "dict":
        filled = {name: _fill(part, ints, floats) for name, part in template[1]}
        return filled if template[2] is None else {**filled, "_type": _fill(template[2], ints, floats)}
    if kind == "list":
        return [_fill(part, ints, floats) for part in template[1]]
    return template[1] if kind == "constant" else _object(template[1])


def plan_record(node: Any, template: Any, kinds: Any) -> tuple[str, Any]:
    """A record, or why there is none. Errors of the call itself are raised here, at trace time."""
    stand_ins = iter([torch.empty((1,) * dims, dtype=dtype, device=device) for dtype, dims, device in kinds])
    bound, positional, named = template
    plain = node if bound is None else node._unbound()

    def value(part: Any) -> Any:
        if part[0] == "tensor":
            return next(stand_ins)
        if part[0] == "dict":
            return {**{n: value(p) for n, p in part[1]}, **({} if part[2] is None else {"_type": part[2][1]})}
        if part[0] == "list":
            return [value(p) for p in part[1]]
        return {"int": 1, "float": 1.0}[part[0]] if part[0] in ("int", "float") else _fill(part, iter(()), iter(()))

    target = plain if bound is None else plain.bind(value(bound))
    args = [value(part) for part in positional]
    kwargs = {name: value(part) for name, part in named}
    if "_append_to" in kwargs:
        return f"{node.label}: append_to cannot be traced by torch.compile; call it outside", None
    view = target._plan_of(*args, **kwargs).plan
    if view.spec.result.mode not in ("torch", "none", "leaf"):
        return (
            f"{node.label}: the result of this call is no torch tensor, which torch.compile cannot trace; leave out "
            "_result for a torch tensor, or call the function outside"
        ), None
    leaves = _leaves(view, decode(target._describe(*args, **kwargs)), len(kinds))
    if leaves is None:
        return f"{node.label}: an argument of this call cannot be traced by torch.compile; call it outside", None
    return "", Record(node, template, kinds, view, autograd._recipe_of(view), leaves)


def _leaves(view: Any, arguments: Any, count: int) -> list[_Leaf] | None:
    """The parts of a call that decide its shape; None where they are not those that the template holds."""
    values: list[Any] = []

    def collect(value: Any) -> None:
        if value.leaf >= 0:
            values.append(value)
        for _, child in value.fields:
            collect(child)

    for argument in arguments:
        collect(argument.value)
    values.sort(key=lambda v: v.leaf)
    found, tensors = [], 0
    for value in values:
        leaves = view.spec.leaves
        spec: LeafSpec = leaves[value.leaf] if value.leaf < len(leaves) else LeafSpec()
        is_torch = bool(value.details.get("torch"))
        place = tensors if is_torch else -1
        tensors += is_torch
        if isinstance(spec.kind, (CustomSpec, TableSpec)) or "list_leaf" in value.details:
            return None
        if not isinstance(spec.kind, (ViewSpec, PackedSpec)) and not spec.map:
            continue
        found.append(_Leaf(spec.name, spec.map, spec.inner, place, _sizes(value)))
    return found if tensors == count else None


def _sizes(value: Any) -> tuple[int, ...]:
    """Sizes of a value without tensors, followed by the components of vectors and matrices."""
    details = value.details
    rows, cols = details.get("rows", 0), details.get("cols", 0)
    if not cols:
        return value.shape
    return (*value.shape, rows, cols) if rows > 1 or value.kind == "matrix" else (*value.shape, cols)


def find(key: str) -> Record:
    record = records.get(key)
    if record is None:
        raise RuntimeError(
            f"slangpy: the traced call {key} is not known to this process; a graph with Slang calls runs in the process "
            "that traced it"
        )
    return record


# --- shapes, for tracing with stand-ins


def call_shape(record: Record, shapes: Sequence[Any]) -> list[Any]:
    call: list[Any] = [1] * record.view.spec.call_rank
    for leaf in record.leaves:
        sizes = shapes[leaf.tensor] if leaf.tensor >= 0 else leaf.sizes
        for size, expected in zip(sizes[len(leaf.map) :], leaf.inner, strict=False):
            if expected >= 0 and size != expected:
                raise ValueError(
                    f"{record.view.label}: {leaf.name}: size {size} of a trailing dimension does not match the expected "
                    f"shape: the parameter takes {expected} there"
                )
        for dim, size in zip(leaf.map, sizes, strict=False):
            if isinstance(size, int) and size in (-1, 1):
                continue
            if isinstance(call[dim], int) and call[dim] == 1:
                call[dim] = size
            elif size != 1 and size != call[dim]:
                raise ValueError(
                    f"{record.view.label}: Shape mismatch for {leaf.name} between value ({size}) and call ({call[dim]}) "
                    f"in call dimension {dim}"
                )
    return call


def fake_result(record: Record, tensors: Sequence[Any]) -> list[Any]:
    shape = call_shape(record, [t.shape for t in tensors])
    if not record.recipe.returns:
        return []
    result = record.view.spec.result
    like = next((t for t in tensors if t.device.type != "cpu"), tensors[0])
    dtype = DTYPES[result.leaf.kind.element.scalar]
    return [torch.empty([*shape, *result.element_shape], dtype=dtype, device=like.device)]
