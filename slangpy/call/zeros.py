"""Zeros for the parts of a struct that its value leaves out."""

from __future__ import annotations

from ..reflection import SlangType
from .ir import Binding
from .text import indent, slang_name


def zero_missing(var: str, binding: Binding) -> list[str]:
    """Statements that zero what `binding` does not fill of `var`. (`= {}` would ask for a constructor.)"""
    type_: SlangType = binding.type
    if binding.kind != "struct" or type_.kind == "array":
        return []
    given = dict(binding.fields)
    if type_.kind == "vector":
        return [f"{var} = {slang_name(type_.full_name)}(0);"] if len(given) < type_.shape[0] else []
    lines: list[str] = []
    for name, field in type_.fields.items():
        part = f"{var}.{name}"
        lines += zero_missing(part, given[name]) if name in given else _zero(part, field.type, 0)
    return lines


def _zero(var: str, type_: SlangType, depth: int) -> list[str]:
    if type_.kind in ("scalar", "vector", "matrix", "pointer", "enum"):
        return [f"{var} = {slang_name(type_.full_name)}(0);"]
    if type_.kind == "struct":
        return [line for name, field in type_.fields.items() for line in _zero(f"{var}.{name}", field.type, depth)]
    element = type_.element_type if type_.kind == "array" and type_.shape[0] > 0 else None
    if element is None:
        return []  # resources have no zero
    k = f"_z{depth}"
    inner = _zero(f"{var}[{k}]", element, depth + 1)
    head = f"[ForceUnroll] for (int {k} = 0; {k} < {type_.shape[0]}; {k}++)"
    return [head, "{", *indent(inner), "}"] if inner else []
