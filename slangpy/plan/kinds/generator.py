"""Generators: values that the kernel makes from the place of an invocation, or from hashes of it."""

from __future__ import annotations

from ...base.scalars import INTEGERS
from ..records import Derivative, Placed
from ..slang_text import slang_name
from ..slots import Slots
from ..specification import GeneratorSpec
from ..trampoline import Kernel
from .kind import LeafKind

_FIELDS = ("offset", "stride", "seed", "min", "max")


def declare_generator(kernel: Kernel, placed: Placed) -> None:
    """The numbers that its values are made from."""
    ident, value = placed.ident, placed.binding.value
    assert value is not None
    kind = value.details["generator"]
    if kind in ("range", "grid"):
        kernel.fields += [f"int64_t {ident}_offset[{len(placed.map)}]", f"int64_t {ident}_stride[{len(placed.map)}]"]
    elif kind in ("wang_hash", "rand_float"):
        kernel.fields += [f"uint {ident}_seed", f"uint {ident}_warmup"]
        if kind == "rand_float":
            kernel.fields += [f"float {ident}_min", f"float {ident}_max"]


def generator_value(kernel: Kernel, placed: Placed) -> str:
    """Expression of the value of this invocation."""
    binding, ident = placed.binding, placed.ident
    value = binding.value
    assert value is not None
    kind = value.details["generator"]
    type_ = binding.type
    count = type_.shape[0] if type_.kind in ("vector", "array") else 1
    name = f"_spy_T_{ident}"
    if kind in ("wang_hash", "rand_float"):
        bounds = f", _call.{ident}_min, _call.{ident}_max" if kind == "rand_float" else ""
        suffix = f"_vector<{count}>" if type_.kind == "vector" else ""
        return f"{name}(_spy_{kind}{suffix}(uint(_i), _call.{ident}_seed, _call.{ident}_warmup{bounds}))"
    if kind == "thread_id":
        if type_.kind == "scalar":
            return f"{name}({kernel.facts.thread})"
        first = f"{slang_name(binding.stored)}({kernel.facts.thread})"
        return f"{name}(" + ", ".join([first, "0", "0"][:count]) + ")"
    if kind == "call_id":
        parts = [f"_c{dim}" for dim in range(kernel.facts.rank)]
    else:
        parts = [
            f"(_call.{ident}_offset[{k}] + _call.{ident}_stride[{k}] * int64_t(_c{dim}))"
            for k, dim in enumerate(placed.map)
        ]
    scalar = slang_name(binding.stored)
    if type_.kind == "vector":
        parts = parts[::-1] + ["0"] * (count - len(parts))
    if type_.kind == "scalar":
        return f"{scalar}({parts[0] if parts else '0'})"
    inner = ", ".join(f"{scalar}({part})" for part in parts)
    if type_.kind == "vector":
        return f"{name}({inner})"
    kernel.body.append(f"{name} _v_{ident} = {{ {inner} }};")
    return f"_v_{ident}"


def _spec(slots: Slots, placed: Placed, grad: Derivative) -> GeneratorSpec:
    del grad
    stored = placed.binding.stored
    offset, stride, seed, low, high = (slots.fields.offset(f"{placed.ident}_{name}") for name in _FIELDS)
    return GeneratorSpec(offset, stride, seed, low, high, stored if stored in INTEGERS else "")


def _flattens(placed: Placed, rank: int) -> bool:
    value = placed.binding.value
    return rank <= 1 or value is None or value.details["generator"] not in ("grid", "call_id", "range")


KIND = LeafKind("generator", declare_generator, generator_value, _spec, flattens=_flattens)
