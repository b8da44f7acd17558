"""Dicts: structs bound field by field, and vectors by component names."""

from __future__ import annotations

from typing import Any

from ..call.ir import Binding, Value
from ..errors import BoundVariableException, KernelGenException
from ..reflection import SlangType
from .base import Context, NoMatch, bind, no_match, register

_COMPONENTS = ("x", "y", "z", "w")
_COLORS = {"r": "x", "g": "y", "b": "z", "a": "w"}


def type_of_dict(value: Value, context: Context) -> SlangType | None:
    """The type that `_type` names; None without one."""
    wanted = value.details.get("_type")
    if wanted is None:
        return None
    name = wanted if isinstance(wanted, str) else getattr(wanted, "full_name", str(wanted))
    found = context.find(name)
    if found is None:
        raise BoundVariableException(f"Could not find type '{name}' named by _type")
    return found


def _bind_dict(value: Value, type_: SlangType, context: Context) -> Binding:
    declared = type_of_dict(value, context)
    if declared is not None and declared.full_name != type_.full_name:
        raise no_match(value, type_, f"its _type is {declared.full_name}")
    if type_.kind == "vector":
        return _bind_vector(value, type_, context)
    if type_.kind != "struct":
        raise no_match(value, type_)
    fields = type_.fields
    bound: list[tuple[str, Binding]] = []
    for name, child in value.fields:
        assert name is not None
        if name not in fields:
            raise KernelGenException(f"struct {type_.full_name} has no field '{name}'; its fields are {list(fields)}")
        inner = Context(context.layout, context.convert, False)
        writable = context.writable and is_writable(child)
        inner.writable = writable
        try:
            bound.append((name, bind(child, fields[name].type, inner)))
        except NoMatch as error:
            raise type(error)(f"field '{name}': {error}") from None
        context.size_dependent |= inner.size_dependent
    cost = max([child.cost for _, child in bound], default=(0, 0))
    return Binding("struct", value, type_.full_name, type_, fields=tuple(bound), cost=cost)


def is_writable(value: Value) -> bool:
    """Whether an output can be stored in a value; leaves that are not are dropped."""
    if value.kind in ("tensor", "array", "buffer", "texture"):
        return True
    if value.kind == "dict":
        return any(is_writable(child) for _, child in value.fields)
    return value.kind in ("value_ref", "diff_pair")


def _bind_vector(value: Value, type_: SlangType, context: Context) -> Binding:
    element = type_.element_type
    assert element is not None
    allowed = _COMPONENTS[: type_.shape[0]]
    bound: list[tuple[str, Binding]] = []
    for name, child in value.fields:
        component = _COLORS.get(str(name), str(name))
        if component not in allowed:
            raise KernelGenException(f"{type_.full_name} has no field '{name}'; its fields are {list(allowed)}")
        inner = Context(context.layout, context.convert, context.writable and is_writable(child))
        bound.append((component, bind(child, element, inner)))
        context.size_dependent |= inner.size_dependent
    return Binding("struct", value, type_.full_name, type_, fields=tuple(bound), cost=(1, 0))


def _dict_candidates(value: Value, pattern: Any, context: Context) -> list[SlangType]:
    declared = type_of_dict(value, context)
    return [declared] if declared is not None else []


register(("dict",), _bind_dict, _dict_candidates)
