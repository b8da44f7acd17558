"""What a call returns: the mode that `_result`, `return_type` and torch arguments choose, and NumPy's form of it."""

from __future__ import annotations

from typing import Any

from .. import _native
from ..bindings.typeregistry import PYTHON_TYPES
from ..plan.records import Argument, Value
from ..tensor import Tensor
from .torch_side import torch_side


def result_mode(given: Any, node: Any, arguments: tuple[Argument, ...]) -> str:
    """The mode of a call: torch tensors among the arguments make the default result one."""
    mode = result_mode_of(given, node.options.return_type)
    has_torch = any(_mentions_torch(a.value) for a in arguments)
    return "torch" if mode == "auto" and has_torch else mode


def _mentions_torch(value: Value) -> bool:
    if value.kind in ("value_ref", "diff_pair"):  # what they hold is no argument of its own
        return False
    return bool(value.details.get("torch")) or any(_mentions_torch(child) for _, child in value.fields)


def torch_leaves(arguments: tuple[Argument, ...]) -> list[int]:
    """The leaves that are torch tensors, in the order of the walk."""
    found: list[int] = []
    for argument in arguments:
        _collect_torch(argument.value, found)
    return sorted(found)


def _collect_torch(value: Value, found: list[int]) -> None:
    if value.kind in ("value_ref", "diff_pair"):
        return
    if value.details.get("torch"):
        found.append(value.leaf)
    for _, child in value.fields:
        _collect_torch(child, found)


def result_mode_of(given: Any, default: Any) -> str:
    """auto, tensor or numpy from `_result` (text or class) or `return_type`."""
    chosen = given if given is not None else default
    if chosen is None:
        return "auto"
    if isinstance(chosen, str):
        if chosen in ("tensor", "numpy", "torch", "texture"):
            return chosen
        raise ValueError(f"Unknown return type '{chosen}'; use 'tensor', 'numpy' or 'texture'")
    if isinstance(chosen, type) and any(base in PYTHON_TYPES for base in chosen.__mro__):
        return "custom"
    name = chosen.__name__ if isinstance(chosen, type) else f"a {type(chosen).__name__}"
    if name == "ndarray":
        return "numpy"
    if name == "Tensor" and chosen.__module__.startswith("slangpy"):
        return "tensor"
    if isinstance(chosen, type) and issubclass(chosen, _native.Texture):
        return "texture"
    if name in ("Tensor", "Parameter") and chosen.__module__.startswith("torch"):
        return "torch"
    raise ValueError(
        f"Unknown return type '{name}'; use slangpy.Tensor, slangpy.Texture, numpy.ndarray, 'tensor', 'numpy' or 'texture'"
    )


def dual_result(mode: str, primal: Any, tangent: Any) -> Any:
    """A new result with its tangent, by how results are returned."""
    if mode == "numpy":
        return primal, tangent
    if mode == "value":
        return _native.DiffPair(primal, tangent)
    if mode == "torch":
        return torch_side().pair(primal, tangent)
    return Tensor._from_dual(primal, tangent)
