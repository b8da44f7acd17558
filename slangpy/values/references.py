"""References to host values, with and without gradient."""

from __future__ import annotations

import enum
from typing import Any

from .._native import DiffPair, ValueRef
from ..base.typed import integer, member, number


class PrimType(enum.Enum):
    """Which half of a DiffPair."""

    primal = 0
    derivative = 1


def _get(self: DiffPair, kind: PrimType | str) -> Any:
    """The primal or the gradient."""
    return self.primal if member("DiffPair.get 'kind'", PrimType, kind) is PrimType.primal else self.grad


def _set(self: DiffPair, kind: PrimType | str, value: Any) -> None:
    """Replaces the primal or the gradient."""
    setattr(self, "primal" if member("DiffPair.set 'kind'", PrimType, kind) is PrimType.primal else "grad", value)


setattr(DiffPair, "get", _get)  # noqa: B010 - methods of a native class
setattr(DiffPair, "set", _set)  # noqa: B010


def intRef(init: int = 0) -> ValueRef:
    """A reference to an int."""
    return ValueRef(integer("intRef 'init'", init))


def floatRef(init: float = 0.0) -> ValueRef:
    """A reference to a float."""
    return ValueRef(float(number("floatRef 'init'", init)))


def _zero_of(value: Any) -> Any:
    if isinstance(value, bool):
        return False
    if isinstance(value, dict):
        return {k: v if k == "_type" else _zero_of(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_zero_of(v) for v in value]
    if isinstance(value, (int, float)):
        return type(value)(0)
    zeros = getattr(type(value), "zeros", None)
    return zeros() if callable(zeros) else type(value)()


def diffPair(p: Any = None, d: Any = None, needs_grad: bool = True) -> DiffPair:
    """A value `p` (0.0 when None) with its gradient `d` (zero of p's kind when None)."""
    primal = 0.0 if p is None else p
    return DiffPair(primal, _zero_of(primal) if d is None else d, needs_grad)


def floatDiffPair(p: float = 0.0, d: float = 1.0, needs_grad: bool = True) -> DiffPair:
    """A float with its gradient."""
    return diffPair(p, d, needs_grad)
