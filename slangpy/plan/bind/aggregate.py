"""Dicts: structs bound field by field, and vectors by component names. Lists of resources: arrays bound one by one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...compiler.modules.facts import may_use
from ...errors import BoundVariableException, KernelGenException
from ...reflection import SlangType
from ...reflection.dtypes import open_generic
from ..records import Binding, Value
from .base import (
    TENSOR,
    Context,
    NoMatch,
    bind,
    close_names,
    no_match,
    register,
    split_element,
    structured_element,
    with_sizes,
)
from .temporary import bind_list_to_buffer, bind_list_to_tensor, is_plain

_COMPONENTS = ("x", "y", "z", "w")
_COLORS = {"r": "x", "g": "y", "b": "z", "a": "w"}


def type_of_dict(value: Value, context: Context) -> SlangType | None:
    """The type that `_type` names; None without one."""
    wanted = value.details.get("_type")
    if wanted is None:
        return None
    name = wanted if isinstance(wanted, str) else getattr(wanted, "full_name", str(wanted))
    found = context.find(name)
    if getattr(found or wanted, "is_generic", False):
        raise BoundVariableException(f"_type {open_generic(name)}")
    if found is None:
        close = close_names(name, context)
        hint = f"; did you mean {', '.join(close)}?" if close else ""
        raise BoundVariableException(f"Could not find type '{name}' named by _type{hint}")
    return found


def is_writable(value: Value) -> bool:
    """Whether an output can be stored in a value; leaves that are not are dropped."""
    if value.kind in ("tensor", "array", "buffer", "texture", "texture_view", "custom"):
        return True
    if value.kind == "dict":
        return "list_length" not in value.details and any(is_writable(child) for _, child in value.fields)
    return value.kind in ("value_ref", "diff_pair")


def _bind_dict(value: Value, type_: SlangType, context: Context) -> Binding:
    declared = type_of_dict(value, context)
    if "list_length" in value.details and (TENSOR.match(type_.full_name) or type_.kind == "resource"):
        return _bind_temporary(value, type_, declared, context)
    if type_.kind == "array" and "list_length" in value.details:
        return _bind_struct_array(value, type_, declared, context)
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
        lists = value.details.get("list_depth", -1)
        bound.append((name, _bind_child(child, fields[name].type, context, f"field '{name}'", lists)))
    _check_resources(value, type_, type_, context)
    return Binding("struct", value, type_.full_name, type_, fields=tuple(bound), cost=_cost(bound, len(fields)))


def _cost(bound: list[tuple[str, Binding]], count: int) -> tuple[int, int]:
    """That of the worst field, and more where some of the type's `count` fields are left out: of overloads that take
    a dict, the one is meant whose fields it has."""
    kind, way = max([child.cost for _, child in bound], default=(0, 0))
    return kind + (len(bound) < count), way


def _bind_temporary(value: Value, type_: SlangType, declared: SlangType | None, context: Context) -> Binding:
    """A list of dicts for a tensor or buffer of structs."""
    tensor = TENSOR.match(type_.full_name)
    element = tensor.group(4) if tensor else structured_element(type_.full_name)
    if declared is not None and declared.full_name != element:
        raise no_match(value, type_, f"its _type is {declared.full_name}")
    if tensor is None:
        return bind_list_to_buffer(value, type_, context)
    if tensor.group(2):
        raise no_match(value, type_, "read-only: a list cannot be written; pass a Tensor")
    return bind_list_to_tensor(value, type_, int(tensor.group(5)), element, context)


def _missing_resource(type_: SlangType, given: set[str], context: Context) -> str:
    """Path of a texture, buffer or sampler that a struct would hold in a field that is left out, and that the function may
    use; empty without one."""
    for name, field in type_.fields.items():
        if name in given:
            continue
        inner, _ = split_element(field.type)
        if inner.kind in ("resource", "sampler_state") and may_use(context.module, context.function, name):
            return name
        deeper = _missing_resource(inner, set(), context) if inner.kind == "struct" else ""
        if deeper:
            return f"{name}.{deeper}"
    return ""


def _bind_child(child: Value, type_: SlangType, context: Context, where: str, lists: int = -1) -> Binding:
    inner = replace(
        context, writable=context.writable and is_writable(child), size_dependent=False,
        list_dims=context.list_dims if lists < 0 else lists,
    )  # fmt: skip
    try:
        bound = bind(child, type_, inner)
    except NoMatch as error:
        raise type(error)(f"{where}: {error}") from None
    context.size_dependent |= inner.size_dependent
    return bound


def _bind_struct_array(value: Value, type_: SlangType, declared: SlangType | None, context: Context) -> Binding:
    """A list of dicts for an array of structs: one value that the host writes, or field by field.

    The fields of all elements are one list each, which binds to an array of the field's type.
    """
    element, sizes = _array_of(type_)
    if element.kind not in ("struct", "vector"):
        raise no_match(value, type_)
    if declared is not None and declared.full_name != element.full_name:
        raise no_match(value, type_, f"its _type is {declared.full_name}")
    context.size_dependent = True
    shape = tuple(value.details["list_shape"])
    front = len(shape) - len(sizes)
    if -1 in sizes and front >= 0:
        type_ = with_sizes(type_, shape[front:], context)
        element, sizes = _array_of(type_)
    if front < 0 or shape[front:] != sizes:
        raise no_match(value, type_, f"it has {_count(shape)} elements, the parameter takes {_count(sizes)}")
    fields = _fields_of(value, element)
    _check_resources(value, type_, element, context)
    if is_plain(value) and not front and element.kind == "struct":
        whole = replace(value, leaf=value.details["list_leaf"])
        cost = _cost([], len(element.fields) - len(fields))
        return Binding("value", whole, type_.full_name, type_, stored=type_.full_name, cost=cost)
    suffix = "".join(f"[{size}]" for size in reversed(sizes))
    bound: list[tuple[str, Binding]] = []
    for name, field, child in fields:
        lifted = context.layout.require_type_by_name(field.full_name + suffix)
        bound.append((name, _bind_child(child, lifted, context, f"field '{name}'", front)))
    count = element.shape[0] if element.kind == "vector" else len(element.fields)
    return Binding("struct", value, type_.full_name, type_, fields=tuple(bound), cost=_cost(bound, count), lifted=len(sizes))


def _fields_of(value: Value, element: SlangType) -> list[tuple[str, SlangType, Value]]:
    """The fields of a dict for a struct or vector: name, type, value."""
    if element.kind == "vector":
        scalar = element.element_type
        assert scalar is not None
        return [(component, scalar, child) for component, _, child in _components(value, element)]
    found: list[tuple[str, SlangType, Value]] = []
    for name, child in value.fields:
        if name is None or name not in element.fields:
            raise KernelGenException(
                f"struct {element.full_name} has no field '{name}'; its fields are {list(element.fields)}"
            )
        found.append((name, element.fields[name].type, child))
    return found


def _count(sizes: tuple[int, ...]) -> str:
    return str(sizes[0]) if len(sizes) == 1 else str(list(sizes))


def _array_of(type_: SlangType) -> tuple[SlangType, tuple[int, ...]]:
    """What an array holds, and its sizes."""
    sizes: list[int] = []
    while type_.kind == "array" and type_.element_type is not None:
        sizes.append(type_.shape[0])
        type_ = type_.element_type
    return type_, tuple(sizes)


def _check_resources(value: Value, type_: SlangType, struct: SlangType, context: Context) -> None:
    resource = _missing_resource(struct, {str(name) for name, _ in value.fields}, context)
    if resource:
        raise no_match(value, type_, f"field '{resource}' is a resource, which has no default: pass one")


def _bind_vector(value: Value, type_: SlangType, context: Context) -> Binding:
    element = type_.element_type
    assert element is not None
    bound = [
        (component, _bind_child(child, element, context, f"component '{name}'"))
        for component, name, child in _components(value, type_)
    ]
    cost = 1 + (len(bound) < type_.shape[0]), 0
    return Binding("struct", value, type_.full_name, type_, fields=tuple(bound), cost=cost)


def _components(value: Value, type_: SlangType) -> list[tuple[str, str, Value]]:
    """The fields of a dict for a vector: component, name in the dict, value."""
    allowed = _COMPONENTS[: type_.shape[0]]
    found: dict[str, tuple[str, Value]] = {}
    for name, child in value.fields:
        component = _COLORS.get(str(name), str(name))
        if component not in allowed:
            raise KernelGenException(f"{type_.full_name} has no field '{name}'; its fields are {list(allowed)}")
        if component in found:
            raise KernelGenException(
                f"{type_.full_name} gets its component {component} twice, as '{found[component][0]}' and as '{name}'"
            )
        found[component] = (str(name), child)
    return [(component, name, child) for component, (name, child) in found.items()]


def bind_items(value: Value, type_: SlangType, context: Context) -> Binding:
    """A list of buffers, tensors, textures, ...: an array of them."""
    element = type_.element_type
    if type_.kind != "array" or element is None:
        raise no_match(value, type_, "a list of resources needs a parameter that is an array of them")
    if type_.shape[0] < 0:
        raise no_match(value, type_, "declare the array of resources with a size, such as Texture2D<float4> textures[4]")
    if len(value.fields) != type_.shape[0]:
        raise no_match(value, type_, f"it has {len(value.fields)} elements, the parameter takes {type_.shape[0]}")
    if element.kind != "array" and any(
        child.kind == "list" and child.details.get("items") for _, child in value.fields
    ):
        raise no_match(value, type_, "an array of resources takes one list; lists of such lists are not available")
    bound: list[tuple[str, Binding]] = []
    for index, (_, child) in enumerate(value.fields):
        item = _bind_child(child, element, context, f"element [{index}]")
        if item.kind == "resource":
            item = replace(item, array_type=type_.full_name)
        bound.append((f"[{index}]", item))
    cost = max([item.cost for _, item in bound], default=(0, 0))
    return Binding("struct", value, type_.full_name, type_, fields=tuple(bound), cost=cost)


def _dict_candidates(value: Value, pattern: Any, context: Context) -> list[SlangType]:
    declared = type_of_dict(value, context)
    if declared is None:
        return []
    if pattern.kind.name.rstrip("_") == "array" and "list_length" in value.details:
        found = context.find(f"{declared.full_name}[{value.details['list_length']}]")
        context.size_dependent = True
        return [found] if found is not None else []
    return [declared]


register(("dict",), _bind_dict, _dict_candidates)
