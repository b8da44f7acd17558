"""Addresses that calls give back, with what they point to."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _native
from ..base.shared import Shared
from ..tensor import Tensor

_VALUES = (type(None), bool, float, str, list, tuple, np.ndarray, np.generic)
"""What is read as numbers: arrays that calls would take as a whole are refused (plan/addresses.py)."""


class Address(int, Shared):
    """The address of device memory in the result of a call. `memory`: the arguments of the call, which stay alive."""

    memory: tuple[Any, ...] = ()

    def __reduce__(self) -> Any:
        return int, (int(self),)


class _Owner(np.ndarray[Any, Any]):
    """Numbers of a result, some of them addresses. The array that users get is a view of it."""

    memory: tuple[Any, ...] = ()


def memory_of(objects: list[Any], globals_: Any) -> tuple[Any, ...]:
    """What of the arguments of a call may hold memory that it sees. Of Tensors their storages: those can be replaced."""
    found: list[Any] = []
    for value in objects:
        if isinstance(value, Tensor):
            found += [part.storage for part in (value, value.grad_in, value.grad_out) if part is not None]
        elif not isinstance(value, _VALUES) and type(value) is not int:
            found.append(value)
    return tuple(found if globals_ is None else [*found, globals_])


def keep(value: Any, layout: Any, memory: tuple[Any, ...]) -> Any:
    """The result or an output of a call, which keeps `memory` alive. `layout`: the native layout of its type."""
    if not memory:
        return value
    if isinstance(value, Tensor):
        _keep_in(value.storage, memory, True)
    elif isinstance(value, np.ndarray):
        owner = np.ndarray.__new__(_Owner, value.shape, value.dtype)
        owner[...] = value
        owner.memory = memory
        return owner.view(np.ndarray)
    elif isinstance(value, (int, dict, list)):
        return _marked(value, layout, memory)
    else:
        value._slangpy_memory = memory  # a torch tensor
    return value


def keep_written(value: Any, slot: Any, memory: tuple[Any, ...], reads: bool) -> None:
    """Does so for an argument that a call wrote addresses to. An array of NumPy's takes them as plain numbers."""
    memory = tuple(item for item in memory if item is not value)
    if isinstance(value, _native.ValueRef):
        value.value = keep(value.value, slot[1] if slot else None, memory)
    elif isinstance(value, Tensor):
        _keep_in(value.storage, memory, not reads and value.nbytes == value.storage.size)
    elif isinstance(value, _native.Buffer):
        _keep_in(value, memory, False)


def _keep_in(buffer: Any, memory: tuple[Any, ...], is_whole: bool) -> None:
    """A buffer keeps alive what it points to, each object once. `is_whole`: nothing is left of what it held before."""
    known = getattr(buffer, "_memory", None)
    if known is None or is_whole:
        known = buffer._memory = {}
    known.update((id(item), item) for item in memory if item is not buffer)


def _marked(value: Any, layout: Any, memory: tuple[Any, ...], name: str = "") -> Any:
    """A value as a call returns it, its addresses as Address."""
    if isinstance(value, dict):
        types = {field["name"]: field["type"] for field in layout.fields} if layout is not None else {}
        return {key: _marked(item, types[key], memory, key) if key in types else item for key, item in value.items()}
    if isinstance(value, list):
        element = layout.element
        return [_marked(item, element, memory) for item in value] if element is not None else value
    is_address = layout is not None and (layout.kind is _native.TypeKind.pointer or name == "_address")
    if not is_address or type(value) is not int:
        return value
    address = Address(value)
    address.memory = memory
    return address


__all__ = ["Address", "keep", "keep_written", "memory_of"]
