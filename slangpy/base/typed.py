"""Values that are what an annotation says: arguments, and attributes that a class declares with a plain type."""

from __future__ import annotations

import difflib
import enum
import math
from collections.abc import Callable, Iterable, Sequence
from functools import cache, reduce
from inspect import get_annotations
from operator import or_
from types import UnionType
from typing import Any, ClassVar, TypeVar, Union, get_args, get_origin

from .. import _native
from ..errors import NativeValueError

_Class = TypeVar("_Class", bound=type[Any])
_Member = TypeVar("_Member", bound=enum.Enum)
_PACKAGE = __name__.partition(".")[0]
_COUNTS = {getattr(_native, f"{scalar}{count}"): count for scalar in ("float", "int", "uint") for count in (2, 3, 4)}
"""Components of the vector types that attributes have."""


_MOST_LISTED = 16
"""Members of an enum that a message lists whole."""


def _parts(kind: type[enum.Enum], text: str) -> list[str]:
    """The names in a text: of flags, those between `|`."""
    return [part.strip() for part in text.split("|")] if issubclass(kind, enum.Flag) else [text]


def joined_flags(kind: type[_Member], text: str) -> _Member | None:
    """The flags that a text such as "a | b" names; None where it is another text."""
    names = _parts(kind, text)
    return reduce(or_, (kind[name] for name in names)) if all(name in kind.__members__ for name in names) else None


def near_members(kind: type[enum.Enum], text: str) -> list[str]:
    """The member whose name is most like the first name of the text that no member has; none if none is like it."""
    wrong = next((name for name in _parts(kind, text) if name not in kind.__members__), text)
    return difflib.get_close_matches(wrong, kind.__members__, 1)


def _expected(kind: type[enum.Enum], value: Any) -> str:
    """What a message says of the members."""
    near = near_members(kind, value) if isinstance(value, str) else []
    listed = list(kind.__members__)[:_MOST_LISTED]
    known = ", ".join(listed) + (", ..." if len(kind.__members__) > len(listed) else "")
    return f"expected a {kind.__name__}" + (f" such as {near[0]}" if near else f" ({known})") + f", got {value!r}"


def named_member(what: str, kind: type[_Member], value: Any) -> _Member:
    """A member of an enum, given as such or by its name; several flags as "a | b"."""
    found = joined_flags(kind, value) if isinstance(value, str) else value
    if isinstance(found, kind):
        return found
    raise TypeError(f"{what}: {_expected(kind, value)}")


def member(what: str, kind: type[_Member], value: Any) -> _Member:
    """As `named_member`, and by its number; members of another enum only as the flag of the same name."""
    if isinstance(value, kind):
        return value
    name = value.name if isinstance(value, enum.Enum) and issubclass(kind, enum.Flag) else value
    if isinstance(name, str) and (found := joined_flags(kind, name)) is not None:
        return found
    try:
        if not isinstance(value, (bool, str, enum.Enum)):
            return kind(value)
    except (ValueError, TypeError):
        pass
    error = NativeValueError if isinstance(value, (int, str)) and not isinstance(value, (bool, enum.Enum)) else TypeError
    raise error(f"{what}: {_expected(kind, value)}")


def integer(what: str, value: Any, least: int | None = None, most: int | None = None) -> int:
    """An int, or what has `__index__`; ValueError below `least` and above `most`."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{what}: expected an int, got {value!r}")
    number = value.__index__()
    if (least is not None and number < least) or (most is not None and number > most):
        limits = f"at least {least}" if most is None else f"at most {most}" if least is None else f"{least} to {most}"
        raise NativeValueError(f"{what}: expected {limits}, got {value!r}")
    return number


def number(what: str, value: Any) -> Any:
    """A number, as it is where it is an int or a float, else as a float."""
    if isinstance(value, bool) or not (hasattr(value, "__float__") or hasattr(value, "__index__")):
        raise TypeError(f"{what}: expected a number, got {value!r}")
    return value if isinstance(value, (int, float)) else float(value)


def positive(what: str, value: Any) -> float:
    """A finite number above zero, as a float."""
    found = float(number(what, value))
    if not (0 < found < math.inf):
        raise NativeValueError(f"{what} must be greater than 0, got {value!r}")
    return found


def text(what: str, value: Any) -> str:
    """A str."""
    if not isinstance(value, str):
        raise TypeError(f"{what}: expected a str, got {value!r}")
    return value


def truth(what: str, value: Any) -> bool:
    """A bool, 0 or 1."""
    if type(value).__name__ not in ("bool", "bool_") and not (hasattr(value, "__index__") and value in (0, 1)):
        raise TypeError(f"{what}: expected a bool, got {value!r}")
    return bool(value)


def vector(what: str, kind: type[Any], value: Any) -> Any:
    """A vector of so many numbers."""
    if isinstance(value, kind):
        return value
    count = _COUNTS[kind]
    try:
        parts = None if isinstance(value, str) else list(value)
    except TypeError:
        parts = None
    if parts is None or len(parts) != count:
        raise TypeError(f"{what}: expected {count} numbers, got {value!r}")
    check = number if kind.__name__.startswith("float") else integer
    return kind(*(check(what, part) for part in parts))


def texts(what: str, value: Any) -> list[str]:
    """A list of texts."""
    if isinstance(value, str):
        raise TypeError(f"{what}: expected a list of texts, got {value!r}; write [{value!r}]")
    if not isinstance(value, Iterable):
        raise TypeError(f"{what}: expected a list of texts, got {value!r}")
    return [text(f"{what}[{i}]", item) for i, item in enumerate(value)]


def function_or_none(what: str, value: Any) -> Any:
    """What can be called, or None."""
    if value is not None and not callable(value):
        raise TypeError(f"{what}: expected a function or None, got {value!r}")
    return value


_PLAIN: dict[Any, Callable[[str, Any], Any]] = {str: text, bool: truth, int: integer, float: number, list[str]: texts}


def _rule(annotation: Any) -> Callable[[str, Any], Any] | None:
    """What an annotation asks of a value; None where it asks nothing that is checked here."""
    if annotation in _PLAIN:
        return _PLAIN[annotation]
    if annotation in _COUNTS:
        return lambda what, value: vector(what, annotation, value)
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return lambda what, value: member(what, annotation, value)
    parts = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else ()
    if len(parts) == 2 and type(None) in parts and any(get_origin(part) is Callable for part in parts):
        return function_or_none
    return None


@cache
def _rules(cls: type[Any]) -> dict[str, Callable[[str, Any], Any]]:
    """Of the attributes that the package's classes among the bases annotate."""
    found: dict[str, Callable[[str, Any], Any]] = {}
    for base in reversed(cls.__mro__):
        if base.__module__.partition(".")[0] != _PACKAGE:
            continue
        for name, annotation in get_annotations(base, eval_str=True).items():
            rule = None if get_origin(annotation) is ClassVar else _rule(annotation)
            if rule is not None:
                found[name] = rule
    return found


def typed_fields(cls: _Class) -> _Class:
    """Decorator of a class whose annotated attributes, and those of its subclasses, take values of these types alone:
    str, bool, int, float, enums, vectors, lists of texts, and functions or None. Others are a TypeError."""
    plain: Any = cls.__setattr__

    def set_typed(self: Any, name: str, value: Any) -> None:
        rule = _rules(type(self)).get(name)
        plain(self, name, value if rule is None else rule(f"{type(self).__name__} '{name}'", value))

    set_typed.__name__, set_typed.__qualname__ = "__setattr__", f"{cls.__qualname__}.__setattr__"
    cls.__setattr__ = set_typed  # type: ignore[method-assign]
    return cls


def sequence(what: str, items: Any, kind: type[Any]) -> Sequence[Any]:
    """A list or tuple of objects of one class."""
    expected = f"a list of {kind.__name__}"
    if isinstance(items, (str, bytes)) or not isinstance(items, Iterable):
        raise TypeError(f"{what}: expected {expected}, got {items!r}")
    found = list(items)
    for i, item in enumerate(found):
        if not isinstance(item, kind):
            raise TypeError(f"{what}[{i}]: expected a {kind.__name__}, got {item!r}")
    return found


__all__ = [
    "function_or_none", "integer", "joined_flags", "member", "named_member", "near_members", "number", "positive",
    "sequence", "text", "texts", "truth", "typed_fields", "vector",
]  # fmt: skip
