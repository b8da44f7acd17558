"""Constructors of structs, seen as functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...errors import ResolveException
from ...reflection import SlangType

__all__ = ["FieldParameter", "OfSpecialized", "Overloads", "WithoutFields", "constructors_without_fields"]


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


class Part:
    """A component of a vector, a row of a matrix, or the number that a scalar or enum is made of."""

    has_default = False
    default_int = default_float = None

    def __init__(self, name: str, type_: SlangType) -> None:
        self.name = name
        self.type = type_.type_reflection

    def has_modifier(self, modifier: Any) -> bool:
        del modifier
        return False


class WithoutFields:
    """A constructor of a type that is no struct."""

    generic = return_type = None
    is_overloaded = False
    name = "__init"

    def __init__(self, parameters: list[Part]) -> None:
        self.parameters = parameters

    def has_modifier(self, modifier: Any) -> bool:
        del modifier
        return False


def constructors_without_fields(label: str, type_: SlangType, layout: Any) -> Overloads:
    """Those of numbers, enums, vectors and matrices: of nothing, which is zero, and of their parts. ResolveException for
    types that have none."""
    name, element = type_.full_name, type_.element_type
    if type_.kind in ("scalar", "enum") and name != "void":
        number = type_ if type_.kind == "scalar" else layout.require_type_by_name("int")
        return Overloads([WithoutFields([]), WithoutFields([Part("value", number)])])
    if type_.kind == "vector" and element is not None and type_.shape[0] in range(1, 5):
        parts = [Part(name, element) for name in "xyzw"[: type_.shape[0]]]
        return Overloads([WithoutFields([]), WithoutFields([Part("value", element)]), WithoutFields(parts)])
    if type_.kind == "matrix":
        row = layout.require_type_by_name(f"vector<{type_.scalar},{type_.shape[1]}>")
        return Overloads([WithoutFields([]), WithoutFields([Part(f"row{i}", row) for i in range(type_.shape[0])])])
    instead = {
        "interface": "construct a type that conforms to it",
        "array": "pass a nested list or an array where one is wanted",
    }.get(type_.kind, "pass an object of its kind where one is wanted")
    raise ResolveException(f"{label}: {name} has no constructor; {instead}")
