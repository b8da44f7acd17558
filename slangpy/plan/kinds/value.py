"""Numbers, vectors, matrices and addresses: one value for all invocations, stored in the call structure."""

from __future__ import annotations

from ..records import Derivative, Placed
from ..slang_text import slang_name
from ..slots import Slots
from ..specification import PointerSpec, SkipSpec, ValueSpec
from ..trampoline import Kernel
from .kind import LeafKind


def _declare(kernel: Kernel, placed: Placed) -> None:
    kernel.fields.append(f"{slang_name(placed.binding.stored)} {placed.ident}")


def _value(kernel: Kernel, placed: Placed) -> str:
    del kernel
    binding, ident = placed.binding, placed.ident
    if binding.widen or binding.stored != binding.type_name:
        return f"_spy_T_{ident}(_call.{ident})"
    return f"_call.{ident}"


def _spec(slots: Slots, placed: Placed, grad: Derivative) -> ValueSpec:
    del grad
    return ValueSpec(slots.fields.value(placed.ident))


def _declare_pointer(kernel: Kernel, placed: Placed) -> None:
    kernel.fields.append(f"_spy_T_{placed.ident} {placed.ident}")


def _pointer(kernel: Kernel, placed: Placed) -> str:
    del kernel
    return f"_call.{placed.ident}"


def _pointer_spec(slots: Slots, placed: Placed, grad: Derivative) -> PointerSpec:
    del grad
    return PointerSpec(slots.fields.value(placed.ident))


def _declare_nothing(kernel: Kernel, placed: Placed) -> None:
    del kernel, placed


def _literal(kernel: Kernel, placed: Placed) -> str:
    del kernel
    return placed.binding.stored


def _no_spec(slots: Slots, placed: Placed, grad: Derivative) -> SkipSpec:
    del slots, placed, grad
    return SkipSpec()


KIND = LeafKind("value", _declare, _value, _spec)
POINTER = LeafKind("pointer", _declare_pointer, _pointer, _pointer_spec)
LITERAL = LeafKind("literal", _declare_nothing, _literal, _no_spec)
"""A default value, written into the kernel."""
