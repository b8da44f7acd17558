"""Lists for tensor and buffer parameters: their elements go to a temporary of the call."""

from __future__ import annotations

from dataclasses import replace

from ...base.scalars import SIZES
from ...errors import KernelGenException
from ...reflection import SlangType
from ..records import Binding, Value
from .base import Context, no_match, split_element, structured_element

_PLAIN = ("bool", "int", "float", "scalar", "vector", "matrix", "list", "dict")


def is_plain(value: Value) -> bool:
    """Whether a value holds nothing but numbers, so that the host can write it whole."""
    if value.kind == "list" and value.details.get("items"):
        return False
    return value.kind in _PLAIN and all(is_plain(child) for _, child in value.fields)


def math_type(value: Value) -> str:
    scalar, rows, cols = value.details["scalar"], value.details["rows"], value.details["cols"]
    if value.kind == "matrix" or rows > 1:
        return f"matrix<{scalar},{rows},{cols}>"
    return f"vector<{scalar},{cols}>" if cols else scalar


def math_shape(value: Value) -> tuple[int, ...]:
    """Sizes of the components; lists add theirs in front."""
    rows, cols = value.details.get("rows", 0), value.details.get("cols", 0)
    inner = (rows, cols) if value.kind == "matrix" or rows > 1 else (cols,) if cols else ()
    return value.shape + inner if value.kind == "list" else inner


def components_shape(value: Value) -> tuple[int, ...]:
    """Sizes of a value with those of its vectors' and matrices' components."""
    return math_shape(value) if value.kind in ("list", "vector", "matrix") else value.shape


def bind_list_to_tensor(value: Value, type_: SlangType, rank: int, element: str, context: Context) -> Binding:
    """A list of numbers, vectors, matrices or dicts for a parameter of tensor type."""
    dims = _list_rank(value, type_, element, context) - rank
    if dims < 0:
        raise no_match(value, type_, f"it has {dims + rank} dimensions of {element}, the parameter takes {rank}")
    value = _whole(value)
    return Binding(
        "packed", value, type_.full_name, type_, dims, (-1,) * rank, element, rank=rank, cost=(1, 1 if dims else 0)
    )


def bind_list_to_buffer(value: Value, type_: SlangType, context: Context) -> Binding:
    """A list of numbers, vectors, matrices or dicts for a buffer parameter."""
    name = type_.full_name
    if name.startswith("RW"):
        raise no_match(value, type_, "read-only: a list cannot be written; pass a Buffer, Tensor or NumPy array")
    is_raw = name == "ByteAddressBuffer" and value.kind == "list"
    element = (math_type(value) if "scalar" in value.details else "uint") if is_raw else structured_element(name)
    if not element or _list_rank(value, type_, element, context) != 1:
        raise no_match(value, type_, "a list for a buffer has one dimension of its elements")
    return Binding("resource", _whole(value), name, type_, inner=(-1,), stored=element, cost=(1, 0))


def _whole(value: Value) -> Value:
    """A list of dicts as one value instead of field by field."""
    return replace(value, leaf=value.details["list_leaf"]) if value.kind == "dict" else value


def _list_rank(value: Value, type_: SlangType, name: str, context: Context) -> int:
    """Dimensions of a list in front of elements of a type."""
    element = context.find(name)
    if element is None:
        raise no_match(value, type_)
    if value.kind == "dict":
        return _dict_rank(value, type_, element)
    scalar, sizes = split_element(element)
    own, cols = math_shape(value), value.details.get("cols", 0)
    if "scalar" not in value.details:  # nothing of any type
        return len(value.shape)
    if scalar.full_name not in SIZES or (cols and value.details["scalar"] != scalar.full_name):
        raise no_match(value, type_, f"its elements cannot be converted to {name}")
    if value.details["scalar"] == "float" and scalar.full_name == "bool":
        raise no_match(value, type_, "a float cannot be passed as a bool: pass a comparison, such as x != 0")
    front = len(own) - len(sizes)
    if front < 0 or list(own[front:]) != sizes or front > len(value.shape):
        raise no_match(value, type_, f"its trailing shape {list(own[max(front, 0) :])} does not match {name}")
    context.size_dependent |= bool(sizes)
    return front


def _dict_rank(value: Value, type_: SlangType, element: SlangType) -> int:
    if element.kind != "struct" or not is_plain(value):
        raise no_match(value, type_, "only dicts of numbers, vectors and lists can be elements of a temporary")
    for name, _ in value.fields:
        if name not in element.fields:
            raise KernelGenException(
                f"struct {element.full_name} has no field '{name}'; its fields are {list(element.fields)}"
            )
    return len(value.details["list_shape"])
