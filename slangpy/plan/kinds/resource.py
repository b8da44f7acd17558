"""Buffers, textures and samplers that a function takes whole: parameters of the entry point."""

from __future__ import annotations

from ...base.scalars import SIZES
from .. import textures
from ..bind.base import structured_element
from ..records import Derivative, Placed
from ..slang_text import slang_name
from ..slots import Slots
from ..specification import Element, ResourceSpec, ValueSpec
from ..trampoline import Kernel
from .kind import LeafKind


def _declare(kernel: Kernel, placed: Placed) -> None:
    """A resource that the function takes whole."""
    binding, ident = placed.binding, placed.ident
    array = binding.array_type
    prefix = whole_format(kernel, [p for p in kernel.facts.plan.placed if p.ident == ident])
    kernel.extra.append(f"{prefix}uniform {slang_name(array) if array else f'_spy_T_{ident}'} {ident}")


def whole_format(kernel: Kernel, parts: list[Placed]) -> str:
    """States the format of writable textures, because not every device reads texels of a format it does not know."""
    found = textures.parse(parts[0].binding.type_name)
    if found is None or not found.writable or kernel.facts.on_cuda:  # CUDA stores bare bits whatever is stated
        return ""
    values = [p.binding.value for p in parts]
    formats = {value.details["format"] for value in values if value is not None}
    stated = textures.slang_format(formats.pop()) if len(formats) == 1 else ""
    return f'[format("{stated}")] ' if stated else ""


def _value(kernel: Kernel, placed: Placed) -> str:
    del kernel
    return placed.ident


def _spec(slots: Slots, placed: Placed, grad: Derivative) -> ResourceSpec:
    del grad
    binding = placed.binding
    kind = binding.value.kind if binding.value is not None else ""
    element = Element()
    if binding.stored in SIZES:
        element = slots.stored(binding.stored)
    elif kind == "buffer" and structured_element(binding.type_name):
        element = Element(size=slots.find_layout(binding.type.element_type).stride)
    elif kind in ("list", "dict"):
        element = Element(layout=slots.packed(binding))
    return ResourceSpec(slots.fields.slot_of(placed), element=element)


def _declare_handle(kernel: Kernel, placed: Placed) -> None:
    """Not in the call structure: Slang lays out some handles wrongly within structs for the CPU."""
    kernel.extra.append(f"uniform _spy_T_{placed.ident} {placed.ident}")


def _handle_spec(slots: Slots, placed: Placed, grad: Derivative) -> ValueSpec:
    del grad
    return ValueSpec(slots.fields.parameter(placed.ident))


HANDLE = LeafKind("handle", _declare_handle, _value, _handle_spec, is_movable=False)
"""Descriptor handles."""
KIND = LeafKind("resource", _declare, _value, _spec, is_movable=False)
