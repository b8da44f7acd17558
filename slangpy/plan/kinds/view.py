"""Elements of containers: tensors and arrays, each reached through a view, or taken whole by tensor parameters."""

from __future__ import annotations

from ...base.scalars import NARROW_SIZES, SIZES
from ..records import Derivative, Placed
from ..slots import Slots
from ..specification import Element, ViewSpec
from ..trampoline import Kernel
from ..trampoline.elements import keep, load_element, offset_of, shared_load, transfer, wide_load, wide_store
from ..trampoline.variant import CROSSED, UNIFORM
from ..trampoline.views import declare_views, tensor_value
from .kind import LeafKind


def value(kernel: Kernel, placed: Placed) -> str:
    """The element of this invocation, or the tensor moved to its part."""
    binding, ident = placed.binding, placed.ident
    if binding.rank >= 0:
        return tensor_value(kernel, placed)
    if kernel.facts.variant.patch is not None and kernel.access_of(placed) == CROSSED:
        return shared_load(kernel, placed)
    is_uniform = kernel.access_of(placed) == UNIFORM and not placed.writes
    if kernel.wide is not None and not is_uniform and kernel.facts.moves_together and not kernel.facts.variant.cpu:
        return wide_load(kernel, placed)
    lines = kernel.hoisted if is_uniform else kernel.body
    load_element(kernel, placed, ident, binding.stored, f"_v_{ident}", lines, binding.type)
    return f"_v_{ident}"


def _store(kernel: Kernel, placed: Placed, var: str) -> None:
    binding, ident = placed.binding, placed.ident
    if kernel.wide is not None and kernel.facts.moves_together:
        wide_store(kernel, ident, binding.stored, var, placed.reads)
        return
    if kernel.wide is not None:
        at = f"_o_{ident}" if placed.reads else offset_of(kernel, placed, ident)
        kept, at = keep(kernel, ident, f"_spy_T_{ident}", var, at)
        transfer(kernel, placed, ident, kept, binding.type, at, 0, kernel.wide.stores, binding.stored, load=False)
        return
    if not placed.reads:
        kernel.body.append(f"int64_t _o_{ident} = {offset_of(kernel, placed, ident)};")
    elif kernel.access_of(placed) == UNIFORM and not placed.writes:
        return
    transfer(kernel, placed, ident, var, binding.type, f"_o_{ident}", 0, kernel.body, binding.stored, load=False)


def element_of(slots: Slots, stored: str) -> Element:
    """What memory holds of one element of a container."""
    if stored in NARROW_SIZES and stored not in SIZES:
        return Element(size=NARROW_SIZES[stored])
    return slots.stored(stored)


def _spec(slots: Slots, placed: Placed, grad: Derivative) -> ViewSpec:
    """The views of the container and of its gradients."""
    del grad
    binding, ident, fields = placed.binding, placed.ident, slots.fields
    views = (fields.view(ident), fields.view(ident + "_gi"), fields.view(ident + "_go"))
    return ViewSpec(views, element_of(slots, binding.stored), binding.vectors, binding.packs or int(placed.addressed))


KIND = LeafKind("view", declare_views, value, _spec, _store, is_classed=True)
