"""Gradients that are summed beside their memory: which, how much memory that takes, and the kernel that adds them to their gradients.

Modes (slangpy/slang/exact.slang): half-precision gradients that many invocations add to are summed in float32 and
rounded once; in deterministic calls all sums are exact, so that the order of threads does not show; and the threads of a
GPU add to copies of small gradients, where fewer of them wait for each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...base.scalars import SCALARS
from ...compiler.generated import import_statement
from ...reflection import SlangType
from ..records import Derivative, Placed, Vectorized
from ..slang_text import entry_point, from_memory, stored_name

HALF, EXACT, PRIVATE = 1, 2, 3
_EXACT_BYTES = {"half": 48, "BFloat16": 48, "float": 48, "double": 280}
"""Bytes of an exact sum: 32-bit words for the whole range of the format, two for infinities."""
_COPIES = 16
"""That one thread adds up: privatized_copies_per_thread in src/native/call/stages/dispatch/privatized.h."""
_NARROW = ("half", "BFloat16")
_FLOAT_BYTES = {"half": 4, "BFloat16": 4}


@dataclass(frozen=True)
class Sums:
    """How the gradient of one leaf is summed. `parts`: scalars of an element, by offset."""

    mode: int
    ratio: int
    """Bytes of sums for one byte of gradient."""
    stride: int
    """Bytes of one element of the gradient."""
    parts: tuple[tuple[int, str], ...]


def sums_of(placed: Placed, grad: Derivative, deterministic: bool) -> Sums | None:
    """Sums for the gradient of a leaf, None where kernels add to the gradient itself."""
    type_ = target_type(placed, grad)
    if type_ is None:
        return None
    parts = tuple(scalars_of(type_))
    names = {name for _, name in parts}
    if not parts or not (deterministic or names.intersection(_NARROW)):
        return None
    mode, bytes_of = (EXACT, _EXACT_BYTES) if deterministic else (HALF, _FLOAT_BYTES)
    ratio = max(bytes_of[name] // SCALARS[name].size for name in names if name in bytes_of)
    return Sums(mode, ratio, type_.element_layout.stride, parts)


def adds_anywhere(plan: Vectorized, grads: Mapping[str, Derivative]) -> bool:
    """Whether invocations add to gradients at places of their choice, and to none beside its memory."""
    found = [grads[placed.ident] for placed in plan.placed if placed.binding.rank >= 0 and placed.ident in grads]
    return any(g.target and not g.forward for g in found) and all(g.sums is None for g in grads.values())


def target_type(placed: Placed, grad: Derivative) -> SlangType | None:
    """The type that the gradient of a leaf is stored as, None where there is none."""
    if not grad.target:
        return None
    if grad.target == "reference":
        return placed.binding.type.derivative
    program = placed.binding.type.program
    return program.find_type_by_name(grad.grad_type) if program is not None else None


def scalars_of(type_: SlangType, base: int = 0) -> list[tuple[int, str]]:
    """Byte offset and type of each floating-point scalar in a stored element."""
    if type_.kind == "scalar":
        return [(base, type_.full_name)] if type_.full_name in _EXACT_BYTES else []
    if type_.kind == "struct":
        offsets = {field["name"]: field["offset"] for field in type_.element_layout.fields}
        return [s for name, f in type_.fields.items() for s in scalars_of(f.type, base + offsets[name])]
    if type_.kind == "matrix":
        row = SlangType(f"vector<{type_.scalar},{type_.shape[1]}>", source=type_.program)
        return [s for r in range(type_.shape[0]) for s in scalars_of(row, base + r * row.element_layout.stride)]
    if type_.kind == "vector" and type_.scalar in _EXACT_BYTES:
        return [(base + k * SCALARS[type_.scalar].size, type_.scalar) for k in range(type_.shape[0])]
    if type_.kind == "array" and type_.element_type is not None:
        step = type_.element_layout.element_stride
        return [s for k in range(type_.shape[0]) for s in scalars_of(type_.element_type, base + k * step)]
    return []


def own_addition(type_: SlangType) -> str:
    """Name of a struct inside a type that brings its own atomicAdd; empty where there is none."""
    if type_.kind == "array" and type_.element_type is not None:
        return own_addition(type_.element_type)
    if type_.kind != "struct":
        return ""
    program = type_.program
    if program is not None and program.reflect_method(type_, "atomicAdd") is not None:
        return type_.full_name
    return next((name for field in type_.fields.values() if (name := own_addition(field.type))), "")


def sums_source(sums: Sums, cpu: bool, imports: list[str], in_memory: bool = False) -> str:
    """The kernel that adds the sums of one gradient to it. AdditionArguments in src/native/call/stages/dispatch/sums.cpp."""
    lines = [import_statement(name) for name in imports]
    if sums.mode == EXACT:
        lines.append(f"export static const int _spy_sum_mode = {EXACT};")
    lines += [
        "struct _spy_Call", "{", "    int64_t _count;", "    int64_t _block;", "    uint64_t _begin;",
        "    uint64_t _sums;", *from_memory(in_memory), "}", "void _add_sums_of_element(int64_t i, _spy_Call call)", "{",
        f"    uint64_t at = uint64_t(i) * {sums.stride};",
    ]  # fmt: skip
    for offset, name in sums.parts:
        place = f"call._begin + at + {offset}, call._sums + (at + {offset}) * {sums.ratio}"
        if sums.mode == EXACT:
            lines.append(f"    {stored_name(name)}._add_sum({place});")
        elif name in _NARROW:
            lines.append(f"    {stored_name(name)}._add_float_sum({place});")
    lines += ["}", '[shader("compute")]']
    if cpu:
        lines += [
            "[numthreads(1, 1, 1)]", *entry_point("uint3 _group : SV_GroupID"),
            "    int64_t _first = (int64_t(_group.x) + int64_t(_group.y) * 0xffffffffll) * _call._block;",
            "    int64_t _last = _first + _call._block;", "    if (_last > _call._count) _last = _call._count;",
            "    for (int64_t _i = _first; _i < _last; _i++)", "        _add_sums_of_element(_i, _call);", "}",
        ]  # fmt: skip
    else:
        lines += [
            "[numthreads(256, 1, 1)]",
            *entry_point("uint3 _group : SV_GroupID, uint3 _threads : SV_GroupThreadID", in_memory=in_memory),
            "    int64_t _i = (int64_t(_group.x) + int64_t(_group.y) * _call._block) * 256 + int64_t(_threads.x);",
            "    if (_i < _call._count)", "        _add_sums_of_element(_i, _call);", "}",
        ]  # fmt: skip
    return "\n".join(lines) + "\n"


def private_source(scalar: str, imports: list[str]) -> str:
    """The kernel that adds the copies of a gradient to it: each thread some copies of one scalar. AdditionArguments in
    src/native/call/stages/dispatch/privatized.cpp."""
    name, size = ("f64", 8) if scalar == "double" else ("f32", 4)
    return "\n".join([
        *(import_statement(name) for name in imports),
        "struct _spy_Call", "{", "    int64_t _count;", "    int64_t _block;", "    uint64_t _begin;",
        "    uint64_t _copies;", "    uint64_t _pitch;", "}", '[shader("compute")]', "[numthreads(256, 1, 1)]",
        *entry_point("uint3 _group : SV_GroupID, uint3 _threads : SV_GroupThreadID"),
        "    int64_t _i = int64_t(_group.x) * 256 + int64_t(_threads.x);",
        "    if (_i >= _call._block) return;",
        f"    uint64_t _at = uint64_t(_i % _call._count) * {size};",
        f"    uint64_t _copy = _call._copies + uint64_t(_i / _call._count) * {_COPIES} * _call._pitch + _at;",
        f"    {scalar} _sum = 0;",
        f"    [ForceUnroll] for (int _k = 0; _k < {_COPIES}; _k++)",
        f"        _sum += _spy_Ptr<{scalar}>(_copy + uint64_t(_k) * _call._pitch)[0];",
        f"    if (_sum != 0) _spy_plain_add_{name}(_spy_Ptr<{scalar}>(_call._begin + _at), _sum);",
        "}",
    ]) + "\n"  # fmt: skip


__all__ = [
    "EXACT", "HALF", "PRIVATE", "Sums", "adds_anywhere", "own_addition", "private_source", "scalars_of", "sums_source",
    "sums_of", "target_type",
]  # fmt: skip
