"""NumPy arrays and foreign arrays: containers of a scalar type."""

from __future__ import annotations

from ...reflection import SlangType
from ..records import Binding, Value
from .base import TENSOR, Context, no_match, register
from .tensor import bind_container, container_candidates, how_to_write

_TORCH_CASTS = {
    "float": "float()", "double": "double()", "half": "half()", "int": "int()", "int64_t": "long()", "bool": "bool()",
    "int16_t": "short()", "int8_t": "char()", "uint8_t": "byte()", "uint16_t": "to(torch.uint16)",
    "uint": "to(torch.uint32)", "uint64_t": "to(torch.uint64)",
}  # fmt: skip


def torch_advice(value: Value, type_: SlangType, name: str) -> str:
    """For a torch tensor of another dtype than its parameter: how to get the right one. Empty where that is no remedy."""
    if not value.details.get("torch"):
        return ""
    found = TENSOR.match(type_.full_name)
    element = SlangType(found.group(4), source=type_.program) if found else type_
    cast = _TORCH_CASTS.get(element.scalar)
    return f"; pass {name}.{cast}" if cast and element.scalar != value.details["scalar"] else ""


def _bind(value: Value, type_: SlangType, context: Context) -> Binding:
    if context.writable and not value.details["writable"]:
        raise no_match(value, type_, f"it is read-only: {how_to_write(value)}")
    return bind_container(value, type_, context, value.details["scalar"])


register(("array",), _bind, lambda value, pattern, context: container_candidates(value, pattern, context))
