"""NumPy arrays and foreign arrays: containers of a scalar type."""

from __future__ import annotations

from ..call.ir import Binding, Value
from ..reflection import SlangType
from .base import Context, no_match, register
from .tensor import bind_container, container_candidates


def _bind(value: Value, type_: SlangType, context: Context) -> Binding:
    if context.writable and not value.details["writable"]:
        raise no_match(value, type_, "the array is read-only: set flags.writeable or pass a copy")
    return bind_container(value, type_, context, value.details["scalar"])


register(("array",), _bind, lambda value, pattern, context: container_candidates(value, pattern, context))
