"""Lists of numbers, written into a temporary of the call: reached as views are, and only read."""

from __future__ import annotations

from dataclasses import replace

from ...base.scalars import NARROW_SIZES, SIZES
from ..records import Derivative, Placed
from ..slots import Slots
from ..specification import NO_VIEW, PackedSpec
from ..trampoline.views import declare_views
from . import view
from .kind import LeafKind


def _spec(slots: Slots, placed: Placed, grad: Derivative) -> PackedSpec:
    del grad
    binding = placed.binding
    element = view.element_of(slots, binding.stored)
    if binding.stored in NARROW_SIZES:
        element = replace(element, scalar=binding.stored)  # what numbers are rounded to
    elif binding.stored not in SIZES:
        element = replace(element, layout=slots.packed(binding))
    return PackedSpec(slots.fields.view(placed.ident) or NO_VIEW, element, binding.vectors)


KIND = LeafKind("packed", declare_views, view.value, _spec, is_classed=True)
