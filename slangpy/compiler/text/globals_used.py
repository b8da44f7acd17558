"""Which resources of a program a kernel uses, read from the code that the compiler emitted.

A layout lists every global of every module, and every field of every block; those that a kernel never reaches need no
value.
"""

from __future__ import annotations

import math
import re
from typing import Any

from .spirv import instructions

_DECLARATION = re.compile(r"struct GlobalParams_\d+\s*\{(.*?)\n\s*\};", re.DOTALL)
_REGISTER = re.compile(rb"((?:\[int\(\d+\)\])*) : register\(([tusb])(\d+)(?:, space(\d+))?\)")
_BLOCK = re.compile(r"^cbuffer (\w+)_\d+ : register", re.MULTILINE)  # HLSL: those that the kernel reaches alone
_FIELD = re.compile(r"\b(\w+)_(\d+)\s*;")


def used_slots(code: bytes, format: str, layout: Any) -> tuple[int, ...]:
    """Slots of the globals that `code` (C++, CUDA, SPIR-V or HLSL) refers to."""
    slots = _slots(layout, 0, layout.entry_point_slot)
    if not slots:
        return ()
    if format.startswith("spirv"):
        return _bound_slots(code, slots)
    if format.startswith("hlsl"):
        return _registered_slots(code, slots)
    used = mentioned_globals(code.decode("utf-8", "replace"), [slot["path"] for _, slot in slots])
    return tuple(i for (i, _), is_used in zip(slots, used, strict=True) if is_used)


def mentioned_globals(text: str, paths: list[str]) -> list[bool]:
    """Which of the globals (or fields of them) at `paths` C++, CUDA or HLSL refers to."""
    declared = _DECLARATION.search(text)
    names = {name: f"{name}_{number}" for name, number in _FIELD.findall(declared.group(1))} if declared else {}
    blocks = set(_BLOCK.findall(text))
    if declared is None and not blocks:
        return [False] * len(paths)
    return [_mentions(text, path, names, blocks) for path in paths]


def all_used_slots(code: bytes, format: str, layout: Any) -> tuple[int, ...] | None:
    """The same of a kernel that users wrote, its parameters included. None where it uses all, or where the code
    cannot be read so."""
    count = len(layout.slots)
    if format.startswith("spirv"):
        used = _bound_slots(code, _slots(layout, 0, count))
    elif format.startswith("hlsl"):
        used = _registered_slots(code, _slots(layout, 0, count))
    else:
        text = code.decode("utf-8", "replace")
        parameters = _slots(layout, layout.entry_point_slot, count)
        used = used_slots(code, format, layout)
        used += tuple(i for i, slot in parameters if mentions_parameter(text, slot["path"]))
    return used if len(used) < count else None


def _slots(layout: Any, begin: int, end: int) -> list[tuple[int, Any]]:
    return [(i, layout.slots[i]) for i in range(begin, end) if layout.slots[i]["path"] != "_spy_print"]


def _bound_slots(code: bytes, slots: list[tuple[int, Any]]) -> tuple[int, ...]:
    bound = _bindings(code)
    return tuple(i for i, slot in slots if (slot["set"], slot["binding"]) in bound)


def _registered_slots(code: bytes, slots: list[tuple[int, Any]]) -> tuple[int, ...]:
    """Slang declares what a kernel reaches alone."""
    found: set[tuple[str, int, int]] = set()
    for sizes, kind, number, space in _REGISTER.findall(code):
        count = math.prod(int(size) for size in re.findall(rb"\d+", sizes))
        found.update((kind.decode(), int(number) + i, int(space or 0)) for i in range(min(count, 1 << 16)))

    def place(slot: Any) -> tuple[str, int, int]:
        kind = "s" if slot["kind"] == "sampler" else "u" if slot["writable"] else "t"
        return kind, slot["binding"], slot["set"]

    return tuple(i for i, slot in slots if place(slot) in found)


def mentions_parameter(text: str, path: str) -> bool:
    """Whether a kernel's text reads a parameter or a field of one. A parameter is declared once, in the kernel or in a
    struct; its fields are read through signs."""
    first, *rest = re.findall(r"[A-Za-z_]\w*", path)
    declared_and_used = len(re.findall(rf"\b{first}_\d+\b", text)) > 1
    return declared_and_used and all(re.search(rf"(?:->|\.){part}_\d+\b", text) for part in rest)


def _mentions(text: str, path: str, names: dict[str, str], blocks: set[str]) -> bool:
    first, *rest = re.findall(r"[A-Za-z_]\w*", path)
    parts = [part + r"_\d+" for part in rest]
    if first not in blocks:
        parts.insert(0, names.get(first, first + r"_\d+"))
    return all(re.search(rf"(?:->|\.){part}\b", text) for part in parts)


def _bindings(code: bytes) -> set[tuple[int, int]]:
    """(descriptor set, binding) of all variables of a SPIR-V module."""
    sets: dict[int, int] = {}
    bindings: dict[int, int] = {}
    for operation, operands in instructions(code):
        if operation == 71 and len(operands) == 3 and operands[1] in (33, 34):  # OpDecorate ... Binding, DescriptorSet
            (bindings if operands[1] == 33 else sets)[operands[0]] = operands[2]
    return {(sets.get(variable, 0), binding) for variable, binding in bindings.items()}
