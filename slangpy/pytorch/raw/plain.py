"""What native code knows of a kernel's parameters, to convert the plain cases of arguments itself."""

from __future__ import annotations

from typing import Any

from slangpy.pytorch.raw.program import KernelRecord
from slangpy.pytorch.raw.types import SCALARS, KernelType, alignment, python_name

_ELEMENTS = ("scalar", "enum", "vector", "matrix")


class _NotPlain(Exception):
    """A type whose values Python alone converts."""


def plain_parameters(record: KernelRecord) -> tuple[Any, ...] | None:
    """For `_native.RawKernel`: (name, Python's name, type, default) for each; None where a type is beyond it."""
    try:
        return tuple((p.name, python_name(p.name), _plain(p.type, p.offset), p.default) for p in record.parameters)
    except _NotPlain:
        return None


def _entry(
    kind: str, offset: int, size: int, scalar: str = "", count: int = 0, align: int = 1, inner: tuple[int, ...] = (),
    parts: tuple[Any, ...] = (), names: tuple[str, ...] = (),
) -> tuple[Any, ...]:  # fmt: skip
    return (kind, scalar, offset, size, count, align, inner, parts, names)


def _plain(type_: KernelType, offset: int) -> tuple[Any, ...]:
    kind, size = type_.kind, type_.size
    if kind == "empty":
        return _entry("nothing", offset, 0)
    if kind in ("scalar", "enum"):
        return _number(type_.scalar, offset)
    if kind == "vector":
        return _entry("array", offset, size, count=type_.count, parts=(_number(type_.scalar, 0),))
    if kind == "matrix":
        row = KernelType("vector", type_.name, size // type_.count, scalar=type_.scalar, count=type_.columns)
        return _entry("array", offset, size, count=type_.count, parts=(_plain(row, 0),))
    if kind == "array" and type_.element is not None:
        return _entry("array", offset, size, count=type_.count, parts=(_plain(type_.element, 0),))
    if kind == "struct":
        names = tuple(name for name, _, _ in type_.fields)
        return _entry(
            "struct", offset, size, parts=tuple(_plain(inner, at) for _, inner, at in type_.fields), names=names
        )
    if kind == "view":
        return _view(type_, offset)
    if kind == "diff_view":
        return _pair(type_, offset)
    raise _NotPlain


def _number(scalar: str, offset: int) -> tuple[Any, ...]:
    if scalar.startswith("FloatE"):
        raise _NotPlain
    return _entry("number", offset, SCALARS[scalar], scalar)


def _view(type_: KernelType, offset: int) -> tuple[Any, ...]:
    element = type_.element
    if element is None or element.kind not in _ELEMENTS:
        raise _NotPlain
    inner = {"vector": (element.count,), "matrix": (element.count, element.columns)}.get(element.kind, ())
    align = alignment(element.scalar, inner[-1]) if inner else SCALARS[element.scalar]
    return _entry("view", offset, type_.size, element.scalar, align=align, inner=inner)


def _pair(type_: KernelType, offset: int) -> tuple[Any, ...]:
    (_, primal, _), (_, wrapper, at) = type_.fields
    if wrapper.short_name != "AtomicAdd":
        raise _NotPlain
    return _entry("pair", offset, type_.size, parts=(_view(primal, 0), _view(wrapper.fields[0][1], at)))


__all__ = ["plain_parameters"]
