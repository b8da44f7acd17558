"""Values of registered classes: stored as their class says, loaded and stored by functions of the stored type."""

from __future__ import annotations

from ..records import Derivative, Placed
from ..slang_text import slang_name
from ..slots import Slots
from ..specification import CustomSpec
from ..trampoline import Kernel
from .kind import LeafKind, up_to_one


def _declare(kernel: Kernel, placed: Placed) -> None:
    kernel.fields.append(f"{slang_name(placed.binding.stored)} {placed.ident}")
    if placed.map:
        kernel.fields.append(f"int64_t {placed.ident}_stride[{len(placed.map)}]")


def _value(kernel: Kernel, placed: Placed) -> str:
    """A value of a registered class, loaded by the function of its stored type."""
    ident = placed.ident
    kernel.body.append(f"_spy_T_{ident} _v_{ident};")
    if placed.reads:
        custom_context(kernel, placed)
        kernel.body.append(f"_call.{ident}.__slangpy_load(_x_{ident}, _v_{ident});")
    return f"_v_{ident}"


def custom_context(kernel: Kernel, placed: Placed) -> None:
    """Where in its own dimensions the argument is; sizes of 1 are spread by a step of 0."""
    ident = placed.ident
    lines = [
        f"_spy_Context<{len(placed.map)}> _x_{ident};",
        f"_x_{ident}.thread_id = uint3(uint({kernel.facts.thread}), 0, 0);",
    ]
    for k, dim in enumerate(placed.map):
        lines.append(f"_x_{ident}.call_id[{k}] = int(int64_t(_c{dim}) * _call.{ident}_stride[{k}]);")
    if not placed.map:
        lines.append(f"_x_{ident}.call_id[0] = 0;")
    kernel.body += lines


def _store(kernel: Kernel, placed: Placed, var: str) -> None:
    if not placed.reads:
        custom_context(kernel, placed)
    kernel.body.append(f"_call.{placed.ident}.__slangpy_store(_x_{placed.ident}, {var});")


def _spec(slots: Slots, placed: Placed, grad: Derivative) -> CustomSpec:
    del grad
    return CustomSpec(slots.fields.value(placed.ident), slots.fields.offset(placed.ident + "_stride"))


KIND = LeafKind("custom", _declare, _value, _spec, _store, is_movable=False, flattens=up_to_one)
