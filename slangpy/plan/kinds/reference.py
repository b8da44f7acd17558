"""ValueRef and DiffPair: a value for all invocations, and memory for what is written back."""

from __future__ import annotations

from dataclasses import replace

from ..derive.gradients import NONE
from ..records import Derivative, Placed
from ..slang_text import slang_name
from ..slots import Slots
from ..specification import ReferenceSpec
from ..trampoline import Kernel
from .kind import LeafKind


def _declare(kernel: Kernel, placed: Placed) -> None:
    if placed.binding.pair:
        _declare_pair(kernel, placed)
    else:
        _declare_reference(kernel, placed)


def _declare_reference(kernel: Kernel, placed: Placed) -> None:
    """A ValueRef or DiffPair: its value, and memory for what is written back."""
    ident, grad = placed.ident, kernel.facts.grads.get(placed.ident, NONE)
    if placed.reads:
        kernel.fields.append(f"_spy_T_{ident} {ident}")
    if grad.seed == "value":
        kernel.fields.append(f"_spy_T_{ident}.Differential {ident}_seed")
    if placed.writes or grad.target == "reference":
        kind = f"_spy_T_{ident}.Differential" if grad.target == "reference" else f"_spy_T_{ident}"
        kernel.fields.append(f"_spy_Storage<{kind}> {ident}_out")
    if grad.target == "pair":
        kernel.fields.append(f"_spy_Storage<_spy_T_{ident}.Differential> {ident}_tangent")


def _declare_pair(kernel: Kernel, placed: Placed) -> None:
    """A DiffPair for a DifferentialPair: both halves stored, and written back together."""
    ident = placed.ident
    kernel.aliases.append(f"typealias _spy_H_{ident} = {slang_name(placed.binding.stored)};")
    if placed.reads:
        kernel.fields += [f"_spy_H_{ident} {ident}", f"_spy_H_{ident}.Differential {ident}_seed"]
    if placed.writes and not kernel.facts.options.bwds:
        kernel.fields.append(f"_spy_Storage<_spy_PairParts<_spy_H_{ident}>> {ident}_out")


def _value(kernel: Kernel, placed: Placed) -> str:
    del kernel
    ident = placed.ident
    if placed.binding.pair:
        half = f"_spy_H_{ident}"
        value = f"_call.{ident}, _call.{ident}_seed" if placed.reads else f"{half}.dzero(), {half}.dzero()"
        return f"diffPair({value})"
    return f"_call.{ident}" if placed.reads else "{}"


def _store(kernel: Kernel, placed: Placed, var: str) -> None:
    stored = f"{{ {var}.p, {var}.d }}" if placed.binding.pair else var
    kernel.body.append(f"_call.{placed.ident}_out.write(0, {stored});")


def _spec(slots: Slots, placed: Placed, grad: Derivative) -> ReferenceSpec:
    binding, ident, fields = placed.binding, placed.ident, slots.fields
    found = ReferenceSpec(fields.value(ident) if placed.reads else None, fields.value(ident + "_seed"))
    if fields.offset(ident + "_tangent") >= 0:
        tangent = (fields.offset(ident + "_tangent"), slots.find_layout(binding.type.derivative))
        found = replace(found, tangent=tangent)
    if fields.offset(ident + "_out") < 0:
        return found
    is_grad = grad.target == "reference"
    type_ = binding.type.derivative if is_grad else binding.type
    if binding.pair:
        type_ = binding.type.program.require_type_by_name(f"_spy_PairParts<{binding.stored}>")
    out = (fields.offset(ident + "_out"), slots.find_layout(type_))
    return replace(found, out=out, out_is_grad=is_grad, out_is_pair=binding.pair)


KIND = LeafKind("reference", _declare, _value, _spec, _store, is_movable=False)
