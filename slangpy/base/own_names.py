"""Attributes that a class declares, and no others: what is set under a wrong name would be lost in silence."""

from __future__ import annotations

import difflib
from functools import cache
from inspect import get_annotations
from typing import Any, TypeVar

from .absent import absent

_Class = TypeVar("_Class", bound=type[Any])
_PACKAGE = __name__.partition(".")[0]


def own_names(cls: _Class) -> _Class:
    """Decorator of a class whose attributes are those that it annotates or defines: setting another is an AttributeError.

    Private names and subclasses of other packages are free. What to use in place of a name says the class's
    `_instead_of(name)`, where it has one.
    """

    own = cls.__dict__.get("__setattr__")

    def set_known(self: Any, name: str, value: Any) -> None:
        if not _is_settable(type(self), name):
            raise absent(lambda: _refusal(self, name), name=name, obj=self)
        if own is not None:
            own(self, name, value)
        else:
            super(cls, self).__setattr__(name, value)

    set_known.__name__, set_known.__qualname__ = "__setattr__", f"{cls.__qualname__}.__setattr__"
    cls.__setattr__ = set_known  # type: ignore[method-assign]
    return cls


def _is_settable(cls: type[Any], name: str) -> bool:
    """Whether instances take an attribute: one that the class declares, a private one, any on classes of other packages."""
    known = _known(cls)
    return known is None or name in known or name[0] == "_" or hasattr(cls, name)


@cache
def _known(cls: type[Any]) -> frozenset[str] | None:
    """Names that instances have; None for a class of another package, which may add its own."""
    if cls.__module__.partition(".")[0] != _PACKAGE:
        return None
    return frozenset(dir(cls)).union(*(get_annotations(base) for base in cls.__mro__))


def _settable(cls: type[Any]) -> list[str]:
    """Public names of a class that can be assigned: fields, and properties that have a setter."""
    found = []
    for name in sorted(_known(cls) or ()):
        value = getattr(cls, name, None)
        is_fixed = callable(value) or (isinstance(value, property) and value.fset is None)
        if name[0] != "_" and not is_fixed:
            found.append(name)
    return found


def _refusal(instance: Any, name: str) -> str:
    cls = type(instance)
    text = f"{cls.__name__} has no attribute '{name}' that could be set"
    instead = getattr(cls, "_instead_of", None)
    if instead is not None and (advice := instead(instance, name)):
        return f"{text}: {advice}"
    names = _settable(cls)
    close = difflib.get_close_matches(name, names, 1)
    if close:
        return f"{text}; did you mean {close[0]}?"
    return f"{text}; those that can: {', '.join(names)}" if names else f"{text}; keep values of your own beside the object"


__all__ = ["own_names"]
