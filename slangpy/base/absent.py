"""AttributeErrors whose text costs nothing before somebody reads it."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import TYPE_CHECKING, Any


class _LateError(builtins.AttributeError):
    """Text that takes a search for similar names is made when it is read. `hasattr`, and `getattr` with a default, throw
    their errors away: an absent attribute costs them what it costs with any other class."""

    def __init__(self, text: Callable[[], str], **context: Any) -> None:
        super().__init__(**context)
        self._make: Callable[[], str] | None = text
        self._text = ""

    def __str__(self) -> str:
        if self._make is not None:
            self._text, self._make = self._make(), None
        return self._text

    def __repr__(self) -> str:
        return f"AttributeError({str(self)!r})"

    if not TYPE_CHECKING:

        @property
        def args(self) -> tuple[Any, ...]:
            return (str(self),)

    def __reduce__(self) -> tuple[Any, ...]:
        return builtins.AttributeError, (str(self),)


_LateError.__name__ = _LateError.__qualname__ = "AttributeError"  # what tracebacks print
_LateError.__module__ = "builtins"


def absent(text: Callable[[], str], **context: Any) -> AttributeError:
    """An AttributeError to raise, whose text is made when it is read. context: `name` and `obj`, as of AttributeError."""
    return _LateError(text, **context)


__all__ = ["absent"]
