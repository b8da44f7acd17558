"""Lists of containers and resources: an entry for each invocation."""

from __future__ import annotations

from ...errors import BoundVariableException
from ...reflection import SlangType
from ..records import Binding, Value
from .base import Context, NoMatch, bind, no_match

_CONTAINERS = ("tensor", "array")
_RESOURCES = ("buffer", "texture", "texture_view", "sampler")


def bind_table(value: Value, type_: SlangType, context: Context) -> Binding:
    """A list of tensors, arrays, generators or resources, spread over the call.

    The kernel finds containers and addresses through a table of their places, and resources in an array of parameters.
    The binding's fields hold those of the entries, in order. Raises NoMatch for entries that differ in how they bind.
    """
    shape, items = entries(value)
    kinds = {item.kind for _, item in items}
    if not kinds <= {*_CONTAINERS, *_RESOURCES, "int", "scalar", "generator"} or (
        "generator" in kinds and len(kinds) > 1
    ):
        raise no_match(value, type_, "its elements must be containers, resources or generators, all of one kind")
    bound: list[tuple[str, Binding]] = []
    for path, item in items:
        try:
            bound.append((path, bind(item, type_, context)))
        except NoMatch as error:
            raise type(error)(f"element {path}: {error}") from None
    first = bound[0][1]
    if "generator" in kinds:
        if any(child.dims for _, child in bound):
            raise no_match(value, type_, "generators with a shape cannot be elements of a list")
        return Binding("select", value, type_.full_name, type_, len(shape), (), "", tuple(bound), (first.cost[0], 1))
    if first.kind == "resource" and all(child.kind == "resource" for _, child in bound):
        return Binding("pick", value, type_.full_name, type_, len(shape), (), "", tuple(bound), (first.cost[0], 1))
    if first.kind not in ("view", "pointer"):
        raise no_match(value, type_, "a list of textures binds to texture parameters and arrays of them only")
    for path, other in bound:
        if (other.kind, other.stored, other.inner, other.dims) != (first.kind, first.stored, first.inner, first.dims):
            raise no_match(value, type_, f"element {path} does not bind as element {bound[0][0]} does")
    if first.vectors > 1:
        raise no_match(value, type_, "lists of arrays of numbers bind to views of numbers; pass Tensors of vectors")
    if first.view:
        type_ = first.type  # the tensors that the views are made from
    return Binding(
        "table", value, type_.full_name, type_, len(shape) + first.dims, first.inner, first.stored, tuple(bound),
        (first.cost[0], 1), first.rank, view=first.view, vectors=first.vectors,
    )  # fmt: skip


def entries(value: Value) -> tuple[tuple[int, ...], list[tuple[str, Value]]]:
    """Sizes of nested lists, and what they hold with its path. Raises for lists of unequal lengths."""
    if value.kind != "list" or not value.details.get("items"):
        return (), [("", value)]
    found = [(f"[{index}]", *entries(child)) for index, (_, child) in enumerate(value.fields)]
    shapes = {shape for _, shape, _ in found}
    if len(shapes) > 1:
        first = found[0]
        path, shape, _ = next(entry for entry in found if entry[1] != first[1])
        raise BoundVariableException(
            f"nested lists must have equal lengths: {path} has sizes {list(shape)}, {first[0]} has {list(first[1])}"
        )
    return (len(found), *shapes.pop()), [(path + inner, item) for path, _, items in found for inner, item in items]


def list_dims(binding: Binding) -> int:
    """Dimensions of a table's list; those of its entries follow."""
    return binding.dims - binding.fields[0][1].dims
