"""Which marshall serves which Python class."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from .. import _native
from .marshall import CursorMarshall, Marshall


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
    cls: type,
    slang_type_name: str,
    signature: Callable[[Any], str] | None = None,
    imports: Sequence[str] = (),
    accepted_type_regex: str | None = None,
) -> None:
    """Registers a class whose values are one whole, read-only value of the Slang type `slang_type_name`.

    cls: has a method `write_to_cursor(cursor)`, which fills a cursor of that type (`cursor.field = value`, `cursor.write({...})`).
    signature: what of a value, besides its class, decides the kernel. imports: modules that the kernel needs for the type.
    accepted_type_regex: other types that parameters may have for the value to be written to them.
    Raises ValueError for classes that are registered already, TypeError for classes without `write_to_cursor`.
    """
    if not isinstance(cls, type):
        raise TypeError(f"register_write_to_cursor_type: the first argument must be a class, got {cls!r}")
    if cls in PYTHON_TYPES:
        raise ValueError(f"register_write_to_cursor_type: {cls.__name__} is already registered")
    if not callable(getattr(cls, "write_to_cursor", None)):
        raise TypeError(f"register_write_to_cursor_type: {cls.__name__} needs a method write_to_cursor(self, cursor)")
    if signature is not None and not callable(signature):
        raise TypeError(f"register_write_to_cursor_type: signature must be callable, got {type(signature).__name__}")
    names = (imports,) if isinstance(imports, str) else tuple(imports)
    accepted = re.compile(accepted_type_regex) if accepted_type_regex is not None else None
    if signature is not None:
        PYTHON_SIGNATURES[cls] = signature
    PYTHON_TYPES[cls] = lambda layout, value: CursorMarshall(layout, slang_type_name, names, accepted)
