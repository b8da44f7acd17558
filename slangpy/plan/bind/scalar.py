"""Numbers, vectors, matrices and lists of them."""

from __future__ import annotations

from typing import Any

from ...base.scalars import INTEGERS, SIZES
from ...reflection import SlangType
from ..records import Binding, Value
from .aggregate import bind_items
from .base import (
    TENSOR,
    TENSOR_NAME,
    Context,
    NoMatch,
    WrongSize,
    candidates,
    converts,
    enum_storage,
    fixed_size,
    no_match,
    number_cost,
    pattern_kind,
    register,
    split_element,
    tensor_candidates,
    with_sizes,
)
from .table import bind_table
from .temporary import bind_list_to_buffer, bind_list_to_tensor, math_shape, math_type

NUMBERS = ("bool", "int", "float", "scalar")


def _bind_number(value: Value, type_: SlangType, context: Context) -> Binding:
    source = value.details["scalar"]
    if type_.kind == "scalar":
        if value.kind == "float" and type_.scalar == "bool":
            raise no_match(value, type_, "a float cannot be passed as a bool: pass a comparison, such as x != 0")
        cost = number_cost(source, type_.scalar)
        return Binding("value", value, type_.full_name, type_, stored=fixed_size(type_.full_name), cost=(cost, 0))
    if type_.kind == "enum":
        if source not in INTEGERS:
            raise no_match(value, type_)
        return Binding("value", value, type_.full_name, type_, stored=type_.full_name, cost=(1, 0))
    if type_.kind == "vector":
        return Binding("value", value, type_.full_name, type_, stored=type_.scalar, cost=(3, 0), widen=True)
    if type_.kind == "pointer" and source in INTEGERS and value.kind != "bool":
        return Binding("pointer", value, type_.full_name, type_, stored=type_.full_name, cost=(1, 0))
    raise no_match(value, type_)


def _number_candidates(value: Value, pattern: Any, context: Context) -> list[SlangType]:
    if pattern_kind(pattern) in ("generic_type_parameter", "interface", "none"):
        names = [value.details["scalar"]]
        if names[0] in INTEGERS or names[0] == "bool":
            names.append("float")
        return [context.layout.require_type_by_name(name) for name in names]
    return []


def _bind_math(value: Value, type_: SlangType, context: Context) -> Binding:
    """A vector or matrix: whole, or spread by rows or components."""
    scalar = value.details["scalar"]
    own = math_type(value)
    if type_.full_name == own:
        return Binding("value", value, own, type_, stored=own)
    sizes = math_shape(value)
    element, inner = split_element(type_)
    same = element.full_name == scalar
    if not (same or converts(scalar, element.full_name, context.convert)) or type_.kind == "array":
        raise no_match(value, type_, _convert_hint(scalar, element.full_name))
    if len(inner) > len(sizes) - same or list(sizes[len(sizes) - len(inner) :]) != inner:
        raise no_match(value, type_, f"it has the shape {list(sizes)}, expected one that ends in {inner}: pass a value of that size")
    dims = len(sizes) - len(inner)
    cost = (number_cost(scalar, element.full_name), 1 if dims else 0)
    return Binding("packed", value, type_.full_name, type_, dims, tuple(inner), scalar, cost=cost)


def _convert_hint(source: str, target: str) -> str:
    if source == target or source not in SIZES or target not in SIZES:
        return ""
    return f'its components are {source}, expected {target}; convert="safe" or "any" converts them'


def _math_candidates(value: Value, pattern: Any, context: Context) -> list[SlangType]:
    own = context.layout.require_type_by_name(math_type(value))
    kind = pattern_kind(pattern)
    if kind in ("vector", "matrix"):
        return [own] if own.kind == kind else [own.element_type] if own.kind == "matrix" and own.element_type else []
    if kind in ("generic_type_parameter", "interface", "none"):
        return [own, context.layout.require_type_by_name(value.details["scalar"])]
    return []


def _list_scalar(value: Value, type_: SlangType) -> str:
    scalar = value.details.get("scalar", "")
    if scalar == "float" and type_.scalar == "bool":
        raise no_match(value, type_)
    return scalar


def _bind_list(value: Value, type_: SlangType, context: Context) -> Binding:
    if value.details.get("items"):
        return _bind_objects(value, type_, context)
    tensor = TENSOR.match(type_.full_name)
    if tensor:
        if tensor.group(2):
            raise no_match(value, type_, "read-only: a list cannot be written; pass a Tensor or a NumPy array")
        return bind_list_to_tensor(value, type_, int(tensor.group(5)), tensor.group(4), context)
    if type_.kind == "resource":
        return bind_list_to_buffer(value, type_, context)
    shape, scalar = value.shape, value.details.get("scalar", "")
    cols = value.details.get("cols", 0)
    element, inner = split_element(type_)
    if type_.kind == "array" and -1 in inner and len(math_shape(value)) >= len(inner) and 0 not in shape:
        return _bind_list(value, with_sizes(type_, math_shape(value)[-len(inner) :], context), context)
    if 0 in shape:
        return _bind_empty(value, type_, inner, context)
    if element.kind == "enum" and not inner and not cols and scalar in INTEGERS:
        stored = enum_storage(element)
        return Binding("packed", value, type_.full_name, type_, len(shape), (), stored, cost=(1, 1))
    if element.kind == "pointer" and not cols and scalar in INTEGERS and _fits(shape, inner):
        dims = len(shape) - len(inner)
        return Binding("packed", value, type_.full_name, type_, dims, tuple(inner), "uint64_t", cost=(1, 1))
    if element.kind != "scalar":
        raise no_match(value, type_)
    _list_scalar(value, type_)
    return _bind_numbers(value, type_, element, inner, context)


def _bind_numbers(value: Value, type_: SlangType, element: SlangType, inner: list[int], context: Context) -> Binding:
    """A list of numbers, vectors or matrices; `inner`: the sizes that one invocation takes, of `element` each."""
    scalar, cols = value.details.get("scalar", ""), value.details.get("cols", 0)
    if cols and scalar != element.full_name and not converts(scalar, element.full_name, context.convert):
        raise no_match(value, type_, _convert_hint(scalar, element.full_name))
    rank = len(math_shape(value))
    if rank < len(inner):
        raise no_match(value, type_, f"it has {rank} dimensions, the parameter takes {len(inner)}")
    own = math_shape(value)
    if inner and [s for s, want in zip(own[rank - len(inner) :], inner, strict=False) if want >= 0 and s != want]:
        context.size_dependent = True
        trailing = list(own[rank - len(inner) :])
        hint = f"its trailing shape {trailing} does not match the expected shape {inner}"
        raise WrongSize(str(no_match(value, type_, hint)))
    if -1 in inner:
        raise NoMatch(f"{value.summary()} does not say which size {type_.full_name} has; name the type with map")
    cost = number_cost(scalar, element.full_name) if scalar and not cols else 0
    if rank - len(inner) < context.list_dims and not cols:
        if type_.kind != "vector" or rank != context.list_dims:
            raise no_match(value, type_, "a number per element")
        inner = []  # each number is widened
    stored = scalar if cols else fixed_size(element.full_name)
    return Binding("packed", value, type_.full_name, type_, rank - len(inner), tuple(inner), stored, cost=(cost, 1))


def _fits(shape: tuple[int, ...], inner: list[int]) -> bool:
    return len(shape) >= len(inner) and list(shape[len(shape) - len(inner) :]) == inner


def _bind_empty(value: Value, type_: SlangType, inner: list[int], context: Context) -> Binding:
    """Nothing of any type: as many invocations, which is none (one, where the parameter's own sizes are given)."""
    shape = value.shape
    context.size_dependent = True
    if -1 in inner:
        raise NoMatch(f"{value.summary()} does not say which size {type_.full_name} has; name the type with map")
    return Binding("packed", value, type_.full_name, type_, len(shape), (), type_.full_name, cost=(0, 1))


def _bind_objects(value: Value, type_: SlangType, context: Context) -> Binding:
    """A list of containers or resources: an array of them, or one for each element."""
    if type_.kind != "array":
        return bind_table(value, type_, context)
    try:
        return bind_items(value, type_, context)
    except NoMatch as error:
        reason = error
    try:
        return bind_table(value, type_, context)
    except NoMatch:
        raise reason from None


def _pattern_scalar(pattern: Any) -> str:
    """Scalar that a generic vector, matrix or array type states; empty when it is a parameter."""
    while pattern is not None and pattern_kind(pattern) in ("vector", "matrix", "array"):
        pattern = pattern.element_type
    return pattern.full_name if pattern is not None and pattern.full_name in SIZES else ""


def _list_candidates(value: Value, pattern: Any, context: Context) -> list[SlangType]:
    kind = pattern_kind(pattern)
    if value.details.get("items"):
        return _item_candidates(value, pattern, context)
    if "scalar" not in value.details:
        return []
    if TENSOR_NAME.match(pattern.full_name.split("<")[0]):
        scalar = value.details["scalar"]
        return tensor_candidates(
            math_type(value) if value.details.get("cols") else scalar, value.shape, pattern, context
        )
    scalar = value.details["scalar"]
    if not value.details.get("cols"):
        scalar = _pattern_scalar(pattern) or scalar
    element = math_type(value) if value.details.get("cols") else scalar
    shape = value.shape
    context.size_dependent = True
    found: list[str] = []
    if kind in ("vector", "matrix") and not all(1 <= size <= 4 for size in shape[-1 if kind == "vector" else -2 :]):
        return []
    if kind == "vector":
        found = [f"vector<{scalar},{shape[-1]}>"] if not value.details.get("cols") else [element]
    elif kind == "matrix":
        found = [f"matrix<{scalar},{shape[-2]},{shape[-1]}>"] if len(shape) >= 2 else []
    elif kind == "array":
        declared, inner = _array_rank(pattern)
        held = {"vector": 1, "matrix": 2}.get(pattern_kind(inner), 0) if inner is not None and element in SIZES else 0
        if held and len(shape) > held and all(1 <= size <= 4 for size in shape[-held:]):
            element = f"{pattern_kind(inner)}<{scalar},{','.join(map(str, shape[-held:]))}>"
            shape = shape[:-held]
        if len(shape) >= declared:
            sizes = shape[len(shape) - declared :]
            found = [element + "".join(f"[{size}]" for size in reversed(sizes))]
    else:
        found = [element, element + "".join(f"[{size}]" for size in reversed(shape))]
    return [t for t in (context.find(name) for name in found) if t is not None]


def _item_candidates(value: Value, pattern: Any, context: Context) -> list[SlangType]:
    """Arrays of resources whose element type is generic: as the first element says."""
    if not value.fields:
        return []
    if pattern_kind(pattern) != "array":
        return candidates(value.fields[0][1], pattern, context)
    context.size_dependent = True
    inner = candidates(value.fields[0][1], pattern.element_type, context)
    found = [context.find(f"{type_.full_name}[{len(value.fields)}]") for type_ in inner]
    return [type_ for type_ in found if type_ is not None]


def _array_rank(pattern: Any) -> tuple[int, Any]:
    """Dimensions of an array type, and its element type."""
    rank = 0
    while pattern is not None and pattern_kind(pattern) == "array":
        rank, pattern = rank + 1, pattern.element_type
    return rank, pattern


register(NUMBERS, _bind_number, _number_candidates)
register(("vector", "matrix"), _bind_math, _math_candidates)
register(("list",), _bind_list, _list_candidates)
