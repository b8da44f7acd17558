"""Which marshall serves which Python class."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _native
from .marshall import Marshall


class _Registry(dict[type, Callable[..., Any]]):
    """A dict of classes that tells native code about each change."""

    def __init__(self, what: str) -> None:
        super().__init__()
        self._what = what

    def __setitem__(self, key: type, value: Callable[..., Any]) -> None:
        if not isinstance(key, type):
            raise TypeError(f"{self._what}: the key must be a class, got {key!r}")
        if not callable(value):
            raise TypeError(f"{self._what}[{key.__name__}] must be callable, got {type(value).__name__}")
        super().__setitem__(key, value)
        _changed()

    def __delitem__(self, key: type) -> None:
        super().__delitem__(key)
        _changed()

    def pop(self, key: type, *default: Any) -> Any:
        found = super().pop(key, *default)
        _changed()
        return found

    def clear(self) -> None:
        super().clear()
        _changed()

    def update(self, *args: Any, **kwargs: Any) -> None:
        given: dict[Any, Any] = dict(*args, **kwargs)
        for key, value in given.items():
            self[key] = value

    def setdefault(self, key: type, default: Any = None) -> Any:
        if key not in self:
            self[key] = default
        return self[key]


PYTHON_TYPES = _Registry("PYTHON_TYPES")
"""{class: factory(layout, value) -> Marshall}; holds for subclasses too, and comes before all built-in rules."""

PYTHON_SIGNATURES = _Registry("PYTHON_SIGNATURES")
"""{class: fn(value) -> text}: what of a value, besides its class, its kernel depends on."""


def _changed() -> None:
    _native._set_custom_types(PYTHON_TYPES, PYTHON_SIGNATURES)


_changed()


def get_or_create_type(layout: Any, python_type: type, value: Any = None) -> Marshall:
    """The marshall that a registered class has for `value`; ValueError for classes that are not registered."""
    for base in python_type.__mro__:
        if base in PYTHON_TYPES:
            made = PYTHON_TYPES[base](layout, value)
            if not isinstance(made, Marshall):
                raise TypeError(
                    f"the factory registered for {base.__name__} must return a slangpy.bindings.Marshall, got "
                    f"{type(made).__name__}"
                )
            return made
    raise ValueError(
        f"Unsupported type {python_type.__name__}: register it in slangpy.bindings.PYTHON_TYPES, or give it get_this()"
    )


def register_write_to_cursor_type(
    cls: type, slang_type_name: str, signature: Any = None, imports: Any = (), accepted_type_regex: str | None = None
) -> None:
    """Would register a class whose values are written whole by a native writer."""
    del slang_type_name, signature, imports, accepted_type_regex
    raise NotImplementedError(
        f"register_write_to_cursor_type is not available yet; give {cls.__name__} a get_this() that returns a dict of "
        "the struct's fields, or register a Marshall in slangpy.bindings.PYTHON_TYPES"
    )
