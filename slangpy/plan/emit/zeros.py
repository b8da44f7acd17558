"""Zeros for the parts of a struct that its value leaves out."""

from __future__ import annotations

from ...reflection import SlangType
from ..records import Binding
from ..slang_text import indent, slang_name


def zero_missing(var: str, binding: Binding) -> list[str]:
    """Statements that zero what `binding` does not fill of `var`. (`= {}` would ask for a constructor.)"""
    return _missing(var, binding.type, binding, 0)


def _missing(var: str, type_: SlangType, binding: Binding, depth: int) -> list[str]:
    if binding.kind != "struct":
        return []
    if type_.kind == "array":
        if not binding.lifted or type_.element_type is None:
            return []
        k = f"_z{depth}"
        return _loop(k, type_.shape[0], _missing(f"{var}[{k}]", type_.element_type, binding, depth + 1))
    given = dict(binding.fields)
    if type_.kind == "vector":
        return [f"{var} = {slang_name(type_.full_name)}(0);"] if len(given) < type_.shape[0] else []
    lines: list[str] = []
    for name, field in type_.fields.items():
        part = f"{var}.{name}"
        lines += _missing(part, field.type, given[name], depth) if name in given else _zero(part, field.type, depth)
    return lines


def _loop(index: str, count: int, lines: list[str]) -> list[str]:
    head = f"[ForceUnroll] for (int {index} = 0; {index} < {count}; {index}++)"
    return [head, "{", *indent(lines), "}"] if lines else []


def _zero(var: str, type_: SlangType, depth: int) -> list[str]:
    if type_.kind in ("scalar", "vector", "matrix", "pointer", "enum"):
        return [f"{var} = {slang_name(type_.full_name)}(0);"]
    if type_.kind == "struct":
        return [line for name, field in type_.fields.items() for line in _zero(f"{var}.{name}", field.type, depth)]
    element = type_.element_type if type_.kind == "array" and type_.shape[0] > 0 else None
    if element is None:
        return []  # resources have no zero
    k = f"_z{depth}"
    return _loop(k, type_.shape[0], _zero(f"{var}[{k}]", element, depth + 1))
