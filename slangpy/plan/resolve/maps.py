"""What `map` says of a parameter: the type it names, the dimensions it lists, and whether a binding agrees."""

from __future__ import annotations

from typing import Any

from ...errors import BoundVariableException
from ..bind import Context, NoMatch
from ..bind.base import close_names
from ..records import Argument, Binding, Options

MAX_CALL_DIMS = 16


class MapMismatch(NoMatch):
    """A binding that `map` does not describe; another candidate type may."""


def map_entry(options: Options, name: str, argument: Argument | None) -> Any:
    by_name = dict(options.map_kwargs)
    if name in by_name:
        return by_name[name]
    if argument is not None and argument.name is None and argument.position < len(options.map_args):
        return options.map_args[argument.position]
    return None


def mapped_type(entry: Any) -> str:
    """Name of the type that a map entry states; empty when it states none."""
    if entry is None or entry[0] == "dims":
        return ""
    if entry[0] == "type":
        return entry[1]
    inner = dict(entry[1]).get("$type")
    return inner[1] if inner is not None else ""


def unknown_map_type(type_name: str, parameter: str, context: Context) -> BoundVariableException:
    close = close_names(type_name, context)
    hint = f"; did you mean {', '.join(close)}?" if close else "; text names a type, a tuple dimensions: .map((0,))"
    return BoundVariableException(
        f"Explicit vectorization raised exception: unknown type name '{type_name}' for parameter {parameter}{hint}"
    )


def check_map(binding: Binding, entry: Any, name: str) -> None:
    kind, content = entry[0], entry[1]
    prefix = "Explicit vectorization raised exception: "
    if kind == "dict":
        if binding.kind != "struct":
            raise MapMismatch(f"{prefix}parameter {name} is mapped with a dict of fields, but it is not a struct; map it with a tuple")
        children = dict(binding.fields)
        for field, inner in content:
            if field == "$type":
                continue
            if field not in children:
                raise BoundVariableException(
                    f"{prefix}parameter {name} maps field '{field}', but the value has {sorted(children) or 'no fields'}"
                )
            if inner is not None:
                check_map(children[field], inner, f"{name}.{field}")
        return
    if kind != "dims":
        return
    if any(index < 0 for index in content):
        raise BoundVariableException(f"{prefix}parameter {name} maps to a negative call dimension: {content}")
    if any(index >= MAX_CALL_DIMS for index in content):
        raise BoundVariableException(f"{prefix}parameter {name} maps to call dimension {max(content)}; the last one is 15")
    if binding.kind == "struct":
        details = binding.value.details if binding.value is not None else {}
        lists = details.get("list_depth", 0) - binding.lifted
        if lists != len(content) or any(leaf.dims != lists for leaf in binding.leaves()):
            raise BoundVariableException(f"{prefix}parameter {name} is a struct: map its fields with a dict, such as {{'field': (0,)}}")
        return
    if len(content) != binding.dims:
        value = binding.value
        text = value.summary() if value is not None else name
        raise MapMismatch(
            f"{prefix}parameter {name} maps {len(content)} dimensions {content}, but {text} bound to "
            f"{binding.type_name} has {binding.dims} to map"
        )
