"""Constructors of structs, seen as functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...reflection import SlangType

__all__ = ["FieldParameter", "OfSpecialized", "Overloads"]


class Overloads:
    """Constructors of a struct, as one overloaded function."""

    generic = None

    def __init__(self, overloads: Sequence[Any]) -> None:
        self.overloads = list(overloads)
        self.is_overloaded = True


class OfSpecialized:
    """A constructor of a specialised generic struct: reflection speaks of the generic's parameters."""

    generic = None
    is_overloaded = False

    def __init__(self, function: Any, struct: SlangType) -> None:
        self.name = function.name
        self.has_modifier = function.has_modifier
        self.return_type = function.return_type
        self.parameters = [SpecializedParameter(p, struct.type_reflection) for p in function.parameters]


class SpecializedParameter:
    def __init__(self, parameter: Any, struct: Any) -> None:
        self.name = parameter.name
        self.type = struct.substitute(parameter.type)
        self.has_modifier = parameter.has_modifier
        self.has_default = parameter.has_default
        self.default_int = parameter.default_int
        self.default_float = parameter.default_float


class FieldParameter:
    has_default = True

    def __init__(self, field: Any) -> None:
        self.name = field.name
        self.type = field.type
        self.default_int = field.default_int
        self.default_float = field.default_float

    def has_modifier(self, modifier: Any) -> bool:
        del modifier
        return False
