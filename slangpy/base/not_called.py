"""Objects that are no functions: calling one says what to call."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

_Class = TypeVar("_Class", bound=type[Any])


def not_called(advice: str) -> Callable[[_Class], _Class]:
    """Decorator of a class whose objects cannot be called: the TypeError of one that is called ends with `advice`.

    Python asks nobody about objects without `__call__`, so they have one, and `callable()` is true of them. Type checkers
    see none.
    """

    def decorate(cls: _Class) -> _Class:
        def refuse(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
            __tracebackhide__ = True
            del args, kwargs
            raise TypeError(f"a {type(self).__name__} cannot be called; {advice}")

        refuse.__name__, refuse.__qualname__ = "__call__", f"{cls.__qualname__}.__call__"
        if not TYPE_CHECKING:
            cls.__call__ = refuse
        return cls

    return decorate


__all__ = ["not_called"]
