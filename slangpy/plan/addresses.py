"""Calls whose results or outputs hold addresses: what those point to must live as long as they do."""

from __future__ import annotations

from typing import Any

from ..errors import ResolveException
from ..reflection import SlangType
from .bind.base import TENSOR, split_element, structured_element
from .bind.views import VIEW
from .records import Placed, Resolved, Vectorized

_HOST = ("array", "list", "dict")
"""Values of which a call makes a copy for itself."""


def address_in(type_: SlangType | None) -> str:
    """The first part of a type that holds an address, as text; empty without one."""
    if type_ is None:
        return ""
    inner, _ = split_element(type_)
    if inner.kind in ("pointer", "resource", "sampler_state") or _is_view(inner):
        return inner.full_name
    if inner.kind != "struct":
        return ""
    found = ((name, address_in(field.type)) for name, field in inner.fields.items())
    return next((f"{part} {name}" if " " not in part else part for name, part in found if part), "")


def resource_in(type_: SlangType | None) -> str:
    """The first field with a buffer, texture or sampler, which nothing can return: its path and type."""
    if type_ is None:
        return ""
    inner, _ = split_element(type_)
    if inner.kind != "struct" or _is_view(inner):
        return ""
    for name, field in inner.fields.items():
        element, _ = split_element(field.type)
        if element.kind in ("resource", "sampler_state"):
            return f"{name} ({element.full_name})"
        deeper = resource_in(element)
        if deeper:
            return f"{name}.{deeper}"
    return ""


def holds_objects(type_: SlangType) -> bool:
    """Whether values of a struct are made of what only Python objects stand for: tensors, buffers, textures."""
    inner, _ = split_element(type_)
    if inner.kind in ("resource", "sampler_state") or _is_view(inner):
        return True
    return inner.kind == "struct" and any(holds_objects(field.type) for field in inner.fields.values())


def _is_view(type_: SlangType) -> bool:
    return bool(TENSOR.match(type_.full_name) or VIEW.match(type_.full_name))


def check_resource_outputs(name: str, resolved: Resolved) -> None:
    """Raises ResolveException where a call would give back a struct with a resource in it."""
    outputs = [(f"parameter {p.name}", p.type) for p in resolved.parameters if p.io == "out"]
    for what, type_ in [("the result", resolved.return_type), *outputs]:
        field = resource_in(type_)
        if field:
            raise ResolveException(
                f"{what} of '{name}' is a {type_.full_name} with the resource {field}, which a call cannot give back; pass a "
                f"dict {{'_type': '{type_.full_name}', ...}} with the buffer or texture where a {type_.full_name} is needed"
            )


def _written(placed: Placed, layout: Any) -> SlangType | None:
    """What one element that a call writes is of."""
    type_ = placed.binding.type
    if placed.binding.rank >= 0 or placed.binding.kind in ("resource", "pointer"):
        tensor = TENSOR.match(type_.full_name)
        element = tensor.group(4) if tensor else structured_element(type_.full_name)
        return layout.find_type_by_name(element) if element else None
    return type_


def keepers(plan: Vectorized, module: Any) -> tuple[int, ...]:
    """The leaves that get addresses, and -1 for the result. ResolveException where they would outlive what they point to."""
    made = plan.result_mode in ("value", "tensor", "numpy", "torch")
    held = address_in(plan.resolved.return_type) if made else ""
    found = [-1] if held else []
    for placed in plan.placed:
        if placed.writes and placed.leaf >= 0:
            part = address_in(_written(placed, module.layout))
            if part:
                found.append(placed.leaf)
                held = held or part
    if found:
        _check_copies(plan, held, module.device.compile_target.format in ("cpp", "cuda"))
    return tuple(found)


def _check_copies(plan: Vectorized, held: str, sees_torch: bool) -> None:
    """`sees_torch`: the device reads torch's tensors where they are."""
    for placed in plan.placed:
        binding, value = placed.binding, placed.binding.value
        is_whole = binding.rank >= 0 or binding.kind in ("resource", "pointer")
        is_copied = value is not None and value.kind in _HOST and not (sees_torch and value.details.get("torch"))
        if value is not None and is_copied and is_whole:
            raise ResolveException(
                f"argument {placed.path} is {value.summary()}, of which the call makes a copy that ends with it, but the call "
                f"gives back addresses ({held}), which may point there; pass a Tensor: Tensor.from_numpy(device, array)"
            )


__all__ = ["address_in", "check_resource_outputs", "holds_objects", "keepers"]
