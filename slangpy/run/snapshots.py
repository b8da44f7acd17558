"""Copies of host values that somebody may change later: what a function was given by `set`, and what a recorded call read."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _native
from ..bindings.typeregistry import PYTHON_TYPES

_FIXED = frozenset((int, float, bool, str, bytes, complex, type(None), range, type))
_FOREIGN = ("__array_interface__", "__dlpack__")
MAX_DEPTH = 64
"""As deep as arguments may be nested; what is deeper is refused by the call."""


class _Exported:
    """The copy of an array whose element type NumPy does not have."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()


def is_registered(value: Any) -> bool:
    """Whether the class of a value has a marshall of the user's."""
    return any(base in PYTHON_TYPES for base in type(value).__mro__)


def has_this(value: Any) -> bool:
    """Whether a value stands for what its get_this() gives."""
    return hasattr(type(value), "get_this")


def frozen(
    value: Any, special: Callable[[Any], Any] | None = None, depth: int = 0, known: dict[int, Any] | None = None
) -> Any:
    """A copy of `value` that later changes do not reach.

    What lives on a device, torch tensors, packed values and objects with get_this() stay what they are. `special` gives
    what stands for a value, or None where the rules of this function hold. `known`: copies of containers met before, by
    id; one that holds itself stays inside its copy, for the call to refuse.
    """
    if type(value) in _FIXED or depth > MAX_DEPTH:
        return value
    found = special(value) if special is not None else None
    if found is not None:
        return found
    if is_registered(value):
        return _object(value, depth)
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, (dict, list, tuple)) and not has_this(value):
        return _container(value, special, depth, {} if known is None else known)
    return _single(value, depth)


def _container(value: Any, special: Callable[[Any], Any] | None, depth: int, known: dict[int, Any]) -> Any:
    if id(value) in known:
        return known[id(value)]
    known[id(value)] = value
    if isinstance(value, dict):
        copied: Any = {key: frozen(item, special, depth + 1, known) for key, item in value.items()}
    else:
        copied = [frozen(item, special, depth + 1, known) for item in value]
        copied = tuple(copied) if isinstance(value, tuple) else copied
    known[id(value)] = copied
    return copied


def _single(value: Any, depth: int) -> Any:
    if isinstance(value, _native.ValueRef):
        return _native.ValueRef(frozen(value.value, None, depth + 1))
    if isinstance(value, _native.DiffPair):
        return _native.DiffPair(frozen(value.primal, None, depth + 1), value.grad, value.needs_grad)
    if isinstance(value, _native.float16_t) or (hasattr(value, "element_type") and _is_ours(value)):
        return copy.copy(value)  # vectors and matrices can be written to
    if _is_foreign(value):
        return _array(value)
    return value


def _is_ours(value: Any) -> bool:
    return any(base.__module__.startswith("slangpy") for base in type(value).__mro__) and not isinstance(
        value, _native.TensorBase
    )


def _is_foreign(value: Any) -> bool:
    """Whether a value is read as an array in host memory."""
    if isinstance(value, (np.generic, _native.TensorBase, _native.Buffer)) or has_this(value) or is_torch(value):
        return False
    if any(hasattr(value, name) for name in _FOREIGN):
        return True
    try:
        memoryview(value)
    except TypeError:
        return False
    return True


def is_torch(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _array(value: Any) -> Any:
    """What calls read of a foreign array, copied; the array itself where they could not read it."""
    _native._refuse_masked(value)
    try:
        if hasattr(value, "__array_interface__") or not hasattr(value, "__dlpack__"):
            return np.array(value if hasattr(value, "__array_interface__") else memoryview(value))
        return np.from_dlpack(value).copy()
    except (ValueError, TypeError, BufferError, RuntimeError):
        torch = sys.modules.get("torch")
        if torch is None or not hasattr(value, "__dlpack__"):
            return value
    try:
        return _Exported(torch.from_dlpack(value).clone())  # bfloat16 and the like
    except (ValueError, TypeError, BufferError, RuntimeError):
        return value


def _object(value: Any, depth: int) -> Any:
    """An object of a registered class with copies of the plain values among its attributes."""
    made = copy.copy(value)
    for name, item in list(getattr(made, "__dict__", {}).items()):
        kept = item if has_this(item) or is_registered(item) else frozen(item, None, depth + 1)
        if kept is not item:
            made.__dict__[name] = kept
    return made


__all__ = ["MAX_DEPTH", "frozen", "has_this", "is_registered", "is_torch"]
