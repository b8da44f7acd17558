"""Values made in the kernel: range, grid, call_id, thread_id, wang_hash, rand_float."""

from __future__ import annotations

from typing import Any

from ...base.scalars import FLOATS, INTEGERS
from ...errors import KernelGenException
from ...reflection import SlangType
from ..records import Binding, Value
from .base import Context, no_match, number_cost, pattern_kind, register, split_element

_MOST_DIMS = 8
"""Dimensions of a call that are tried for a call_id whose parameter is generic in their number."""
_MADE = {"rand_float": "float", "wang_hash": "uint"}
"""The scalar that a generator makes, where that is not int."""


def _components(type_: SlangType) -> tuple[str, int]:
    """Scalar name and component count of a scalar, vector or one-dimensional array; 0 for anything else."""
    element, sizes = split_element(type_)
    if element.kind != "scalar" or len(sizes) > 1:
        return element.full_name, 0
    return element.full_name, sizes[0] if sizes else 1


def _bind(value: Value, type_: SlangType, context: Context) -> Binding:
    kind = value.details["generator"]
    scalar, count = _components(type_)
    wanted = FLOATS if kind == "rand_float" else INTEGERS
    if (
        count == 0
        or scalar not in wanted
        or (type_.kind == "array" and kind in ("thread_id", "wang_hash", "rand_float"))
    ):
        made, name = ("floats", "float") if kind == "rand_float" else ("integers", "int")
        raise no_match(value, type_, f"{kind} makes {made}; declare the parameter as {name} or a vector of it")
    demanded = value.details["dims"]
    rank = len(value.shape) if kind in ("range", "grid") else 0
    if kind == "range" and type_.kind != "scalar":
        raise no_match(value, type_, "a range gives one integer per invocation")
    if kind == "grid" and count != rank:
        fitting = "int" if rank == 1 else f"int{rank}" if rank <= 4 else f"int[{rank}]"
        raise KernelGenException(
            f"Could not find suitable conversion from a grid of {rank} dimensions to {type_.full_name} "
            f"with {count} components; declare the parameter as {fitting}, or give the grid {count} sizes"
        )
    limit = {"thread_id": 3, "wang_hash": 4, "rand_float": 4}.get(kind, count)
    if count > limit or (kind not in ("range", "grid") and demanded >= 1 and demanded != count):
        raise KernelGenException(
            f"Could not find suitable conversion from {kind} of {demanded if demanded >= 1 else limit} components "
            f"to {type_.full_name} with {count} components"
        )
    cost = number_cost(_MADE.get(kind, "int"), scalar), 1 if rank else 0
    return Binding("generator", value, type_.full_name, type_, rank, (), scalar, cost=cost)


def _candidates(value: Value, pattern: Any, context: Context) -> list[SlangType]:
    kind, dims = value.details["generator"], value.details["dims"]
    scalar = _MADE.get(kind, "int")
    if pattern_kind(pattern) in ("vector", "array"):
        return _sized_candidates(value, pattern, context, scalar)
    if kind == "range":
        return [context.layout.require_type_by_name("int")]
    count = len(value.shape) if kind == "grid" else dims
    if not 1 <= count <= 4:
        return []
    name = f"vector<{scalar},{count}>"
    if pattern_kind(pattern) == "array":
        element = pattern.element_type.full_name if pattern.element_type is not None else ""
        name = f"{element if element in INTEGERS + FLOATS else scalar}[{count}]"
    found = context.find(name)
    return [found] if found is not None else []


def _sized_candidates(value: Value, pattern: Any, context: Context, scalar: str) -> list[SlangType]:
    """Vectors or arrays of as many components as a grid has dimensions; of any number for call_id: the call decides."""
    kind, dims = value.details["generator"], value.details["dims"]
    stated = pattern.element_type.full_name if pattern.element_type is not None else ""
    scalar = stated if stated in INTEGERS + FLOATS else scalar
    if kind == "grid":
        counts = [len(value.shape)]
    elif dims >= 1:
        counts = [dims]
    else:
        counts = list(range(1, _MOST_DIMS + 1)) if kind == "call_id" else []
    is_vector = pattern_kind(pattern) == "vector"
    names = [f"vector<{scalar},{n}>" if is_vector else f"{scalar}[{n}]" for n in counts if n <= 4 or not is_vector]
    return [found for found in (context.find(name) for name in names) if found is not None]


register(("generator",), _bind, _candidates)
