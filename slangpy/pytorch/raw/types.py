"""Types of kernel parameters as plain data, and where their bytes lie.

The bytes of a kernel's parameters follow one rule, which is not that of reflection: scalars at their own size, vectors
and matrices as arrays of scalars, structs field by field (Slang's emitted code stores parameters so). What is in a tuple
lies as CUDA lays it out.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from slangpy.reflection.kinds import declared_name

from .scan import split_commas

VIEW_BYTES, WIDE_VIEW_BYTES = 56, 72
"""Of a view, and of one whose strides have 64 bits: in kernels for tensors with strides of 4 GiB or more."""
SCALARS = {
    "bool": 1, "int8_t": 1, "uint8_t": 1, "int16_t": 2, "uint16_t": 2, "int": 4, "uint": 4, "int64_t": 8, "uint64_t": 8,
    "half": 2, "float": 4, "double": 8, "BFloat16": 2, "FloatE4M3": 1, "FloatE5M2": 1,
}  # fmt: skip
"""Slang's names of scalars and their bytes."""
_TAGS = {"int8": "int8_t", "uint8": "uint8_t", "int16": "int16_t", "uint16": "uint16_t", "int32": "int", "uint32": "uint",
         "int64": "int64_t", "uint64": "uint64_t"}  # fmt: skip


@dataclass(frozen=True)
class KernelType:
    """A type of a parameter. `kind`: scalar, enum, vector, matrix, array, struct, view, diff_view, optional, tuple, pointer,
    empty, or unsupported (then `name` is followed by the reason in `note`)."""

    kind: str
    name: str  # as Slang spells it
    size: int = 0
    align: int = 1
    scalar: str = ""  # of scalars, enums, vectors, matrices
    count: int = 0  # elements of arrays and vectors, rows of matrices
    columns: int = 0
    element: KernelType | None = None  # of arrays, views (T), pointers
    fields: tuple[tuple[str, KernelType, int], ...] = ()  # name, type, offset
    cases: tuple[tuple[str, int], ...] = ()  # of enums
    note: str = ""

    @property
    def short_name(self) -> str:
        """The declared name without generic arguments and scope."""
        return declared_name(self.name)

    def to_plain(self) -> tuple[Any, ...]:
        """For `marshal`."""
        element = None if self.element is None else self.element.to_plain()
        fields = tuple((name, type_.to_plain(), offset) for name, type_, offset in self.fields)
        return (self.kind, self.name, self.size, self.align, self.scalar, self.count, self.columns, element, fields,
                self.cases, self.note)  # fmt: skip

    @staticmethod
    def from_plain(plain: tuple[Any, ...]) -> KernelType:
        kind, name, size, align, scalar, count, columns, element, fields, cases, note = plain
        return KernelType(
            kind,
            name,
            size,
            align,
            scalar,
            count,
            columns,
            None if element is None else KernelType.from_plain(element),
            tuple((field, KernelType.from_plain(type_), offset) for field, type_, offset in fields),
            cases,
            note,
        )


def python_name(field: str) -> str:
    """A field's name in Python: keywords get a trailing underscore."""
    return field + "_" if keyword.iskeyword(field) else field


def field_names(fields: Iterable[str]) -> list[str]:
    """Names of a namedtuple's fields: keywords get a trailing underscore; leading ones, which Python refuses, move there."""
    names: list[str] = []
    for field in fields:
        plain = field.lstrip("_")
        name = field if plain == field else (plain if plain[:1].isalpha() else "field" + plain) + "_"
        name = python_name(name)
        while name in names:
            name += "_"
        names.append(name)
    return names


def lay_out(kind: str, name: str, fields: list[tuple[str, KernelType]]) -> KernelType:
    """A struct: fields in order, each at its alignment."""
    at, align, placed = 0, 1, []
    for field, type_ in fields:
        if type_.kind != "empty":
            at = -(-at // type_.align) * type_.align
            align = max(align, type_.align)
        placed.append((field, type_, at))
        at += type_.size
    if all(type_.kind == "empty" for _, type_ in fields):
        return KernelType("empty", name, fields=tuple(placed))
    return KernelType(kind, name, -(-at // align) * align, align, fields=tuple(placed))


def short(name: str) -> str:
    """A type's name as users write it."""
    name = re.sub(r", ?AtomicAdd>", ">", name)
    name = re.sub(
        r"vector<(\w+),(\d)>",
        lambda m: (
            f"{m.group(1)}{m.group(2)}"
            if m.group(1) in ("float", "int", "uint", "half", "double", "bool")
            else m.group()
        ),
        name,
    )
    return re.sub(r"matrix<(float|int|uint|half|double),(\d),(\d)>", r"\1\2x\3", name)


def scalar_type(name: str) -> KernelType:
    return KernelType("scalar", name, SCALARS[name], SCALARS[name], scalar=name)


def alignment(scalar: str, count: int) -> int:
    """CUDA's alignment of a vector."""
    size = SCALARS[scalar]
    if scalar == "half":
        return 2 if count == 1 else 4
    if scalar == "BFloat16":
        return 4 if count == 2 else 2
    return min(16, size * count) if count in (2, 4) else size


def native(type_: KernelType) -> KernelType:
    """The type as CUDA lays it out: so Slang leaves what is in a tuple, where vectors are no arrays of scalars."""
    if type_.scalar == "half" and (type_.count if type_.kind == "vector" else type_.columns) == 3:
        return _unsupported(type_.name, "half vectors of 3 in a tuple; use a struct, or 4")  # CUDA pads them, C++ does not
    if type_.kind == "vector":
        align = alignment(type_.scalar, type_.count)
        return replace(type_, size=-(-type_.size // align) * align, align=align)
    if type_.kind == "matrix":
        row = native(KernelType("vector", "", type_.size // type_.count, 1, type_.scalar, type_.columns))
        return replace(type_, size=row.size * type_.count, align=row.align)
    if type_.kind == "array" and type_.element is not None:
        return _array(type_.name, native(type_.element), type_.count)
    if not type_.fields or type_.kind == "empty":
        return type_
    return _of_parts(type_.kind, type_.name, [(name, native(inner)) for name, inner, _ in type_.fields])


def _of_parts(kind: str, name: str, fields: list[tuple[str, KernelType]]) -> KernelType:
    """As `lay_out`, but for parts that cannot be passed."""
    for field, type_ in fields:
        if type_.kind == "unsupported":
            return replace(type_, note=f"its field {field} is a {type_.name}: {type_.note}", name=name)
    return lay_out(kind, name, fields)


def _array(name: str, element: KernelType, count: int) -> KernelType:
    if element.kind == "unsupported":
        return element
    if element.kind == "empty" or count == 0:
        return KernelType("empty", name)
    return KernelType("array", name, element.size * count, element.align, count=count, element=element)


def _unsupported(name: str, why: str) -> KernelType:
    return KernelType("unsupported", name, note=why)


_GENERIC = re.compile(r"^(\w+)<(.*)>$", re.DOTALL)


class TypeReader:
    """Reads types from reflection. `find`: name -> reflected type or None. `cases`: enum's name -> its members."""

    def __init__(self, find: Callable[[str], Any], cases: Callable[[str], tuple[tuple[str, int], ...]]) -> None:
        self._find = find
        self._cases = cases
        self._known: dict[str, KernelType] = {}

    def read(self, reflected: Any) -> KernelType:
        name = reflected.full_name
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = self._read(reflected, name)
        return known

    def named(self, name: str) -> KernelType:
        """A type that is known by its name only, such as an argument of a generic type."""
        found = self._find(name)
        return (
            _unsupported(name, "the compiler does not find this type again by its name")
            if found is None
            else self.read(found)
        )

    def _read(self, reflected: Any, name: str) -> KernelType:
        kind = reflected.kind.name
        if kind == "scalar":
            return scalar_type(name) if name in SCALARS else _unsupported(name, "no value of Python's has this type")
        if kind == "vector":
            scalar = reflected.element_type.full_name
            count = reflected.element_count
            return KernelType("vector", name, SCALARS[scalar] * count, SCALARS[scalar], scalar, count)
        if kind == "matrix":
            scalar = _GENERIC.match(name).group(2).split(",")[0]  # type: ignore[union-attr]
            rows, columns = reflected.row_count, reflected.col_count
            return KernelType("matrix", name, SCALARS[scalar] * rows * columns, SCALARS[scalar], scalar, rows, columns)
        if kind == "enum":
            tag = _TAGS[reflected.scalar_type.name]
            return KernelType("enum", name, SCALARS[tag], SCALARS[tag], tag, cases=self._cases(name))
        if kind == "array":
            if reflected.element_count < 0:
                return _unsupported(name, "its length is not known; give it one")
            return _array(name, self.read(reflected.element_type), reflected.element_count)
        if kind == "pointer":
            return KernelType("pointer", name, 8, 8, element=self.read(reflected.element_type))
        return self._read_struct(reflected, name) if kind == "struct" else _unsupported(name, "pass a TensorView")

    def _read_struct(self, reflected: Any, name: str) -> KernelType:
        found = _GENERIC.match(name)
        base, arguments = (found.group(1), split_commas(found.group(2))) if found else (name, [])
        if name in SCALARS:
            return scalar_type(name)
        if base == "TensorView":
            return KernelType("view", name, VIEW_BYTES, 8, element=self.named(arguments[0]))
        if base == "Optional":
            inner = self.named(arguments[0])
            return _of_parts("optional", name, [("value", inner), ("hasValue", scalar_type("bool"))])
        if base == "Tuple":
            return _of_parts("tuple", name, [(f"value{i}", native(self.named(part))) for i, part in enumerate(arguments)])
        if base == "TorchTensor":
            return KernelType("tensor", name, element=self.named(arguments[0]))
        fields = [(field.name, self.read(field.type)) for field in reflected.fields]
        return _of_parts("diff_view" if base == "DiffTensorView" else "struct", name, fields)


def widened(type_: KernelType) -> KernelType:
    """The type with views whose strides have 64 bits."""
    if type_.kind == "view":
        return replace(type_, size=WIDE_VIEW_BYTES)
    if type_.kind == "array" and type_.element is not None:
        return _array(type_.name, widened(type_.element), type_.count)
    if not type_.fields or type_.kind == "empty":
        return type_
    return lay_out(type_.kind, type_.name, [(name, widened(inner)) for name, inner, _ in type_.fields])


def reached(types: list[KernelType], kinds: tuple[str, ...] = ("struct", "enum")) -> dict[str, KernelType]:
    """The types of some kinds that others are made of, by name, in the order in which they are met."""
    found: dict[str, KernelType] = {}

    def visit(type_: KernelType) -> None:
        if type_.name in found:
            return
        if type_.kind in kinds:
            found[type_.name] = type_
        if type_.element is not None:
            visit(type_.element)
        for _, inner, _ in type_.fields:
            visit(inner)

    for type_ in types:
        visit(type_)
    return found
