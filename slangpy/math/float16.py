"""Operations of float16_t beyond those of vectors: powers, remainders, rounding and format, as a float has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_NAMES = ("__pow__", "__rpow__", "__mod__", "__rmod__", "__divmod__", "__rdivmod__", "__round__", "__format__")


def _through_float(operation: Callable[..., Any]) -> Callable[..., Any]:
    """Floats that come out become halves again."""

    def of_half(self: Any, *others: Any) -> Any:
        half = type(self)
        if not all(other is None or isinstance(other, (int, float, str, half)) for other in others):
            return NotImplemented
        found = operation(float(self), *(float(other) if isinstance(other, half) else other for other in others))
        if isinstance(found, tuple):
            return tuple(half(part) for part in found)
        return half(found) if isinstance(found, float) else found

    of_half.__name__ = operation.__name__
    return of_half


def extend(half: type) -> None:
    for name in _NAMES:
        setattr(half, name, _through_float(getattr(float, name)))
