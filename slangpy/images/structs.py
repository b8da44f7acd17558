"""Records of numbers described at run time, and their conversion."""

from __future__ import annotations

import enum
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..base.own_names import own_names
from ..base.typed import member, number, sequence, text
from .scalars import Array, read_normalized, store, to_linear, to_srgb


class DataType(enum.IntEnum):
    """Types of fields."""

    int8 = 0
    int16 = 1
    int32 = 2
    int64 = 3
    uint8 = 4
    uint16 = 5
    uint32 = 6
    uint64 = 7
    float16 = 8
    float32 = 9
    float64 = 10

    __str__ = enum.Enum.__str__


class FieldFlags(enum.IntFlag):
    """normalized: the range of an integer stands for 0 to 1; srgb_gamma: stored with the curve of sRGB; default: filled
    with the default value where the source lacks the field."""

    none = 0
    normalized = 1
    srgb_gamma = 2
    default = 4

    __str__ = enum.Enum.__str__


class ByteOrder(enum.IntEnum):
    """Which byte of a number comes first."""

    little_endian = 0
    big_endian = 1
    host = 0 if sys.byteorder == "little" else 1

    __str__ = enum.Enum.__str__


@own_names
@dataclass
class Field:
    """One number of a record; `offset` and `size` in bytes. `blend`: weights and fields of the source to sum instead."""

    name: str
    type: DataType
    flags: FieldFlags
    size: int
    offset: int
    default_value: float = 0.0
    blend: Sequence[tuple[float, str]] = ()


def _blend(blend: Any) -> tuple[tuple[float, str], ...]:
    """Weights and names of fields."""
    what = "DataStruct.append 'blend'"
    found: list[tuple[float, str]] = []
    for i, part in enumerate(sequence(what, blend, tuple)):
        if len(part) != 2:
            raise TypeError(f"{what}[{i}]: expected a weight and the name of a field, got {part!r}")
        found.append((float(number(f"{what}[{i}][0]", part[0])), text(f"{what}[{i}][1]", part[1])))
    return tuple(found)


def _dtype(type_: DataType) -> np.dtype[Any]:
    return np.dtype(type_.name)


@own_names
class DataStruct:
    """Fields in the order in which they lie in memory: each at its natural alignment, or without gaps (`pack`)."""

    Type = DataType
    Flags = FieldFlags
    ByteOrder = ByteOrder
    Field = Field

    def __init__(self, pack: bool = False, byte_order: ByteOrder = ByteOrder.host) -> None:
        self._pack = bool(pack)
        self._byte_order = member("DataStruct 'byte_order'", ByteOrder, byte_order)
        self._fields: list[Field] = []

    def append(
        self, name: str | Field, type: DataType | str | None = None, flags: FieldFlags | str = FieldFlags.none,
        default_value: float = 0.0, blend: Sequence[tuple[float, str]] = (),
    ) -> DataStruct:  # fmt: skip
        """Adds a field after the others; returns the struct. RuntimeError for a name that it has."""
        if isinstance(name, Field):
            name, type, flags, default_value, blend = name.name, name.type, name.flags, name.default_value, name.blend
        if type is None:
            raise TypeError(f"DataStruct.append: the field '{name}' needs a type, such as DataStruct.Type.float32")
        text("DataStruct.append 'name'", name)
        if any(field.name == name for field in self._fields):
            raise RuntimeError(f'Field "{name}" already exists.')
        kind = member("DataStruct.append 'type'", DataType, type)
        bits = member("DataStruct.append 'flags'", FieldFlags, flags)
        default = float(number("DataStruct.append 'default_value'", default_value))
        size = self.type_size(kind)
        end = self._fields[-1].offset + self._fields[-1].size if self._fields else 0
        offset = end if self._pack else -(-end // size) * size
        self._fields.append(Field(name, kind, bits, size, offset, default, _blend(blend)))
        return self

    @property
    def byte_order(self) -> ByteOrder:
        """Of the fields: little, big or that of the host."""
        return self._byte_order

    @property
    def alignment(self) -> int:
        """In bytes."""
        return 1 if self._pack else max((field.size for field in self._fields), default=1)

    @property
    def size(self) -> int:
        """Bytes of one record, with what pads it to its alignment."""
        end = self._fields[-1].offset + self._fields[-1].size if self._fields else 0
        return -(-end // self.alignment) * self.alignment

    @property
    def field_count(self) -> int:
        """Number of fields."""
        return len(self._fields)

    def field(self, name: str) -> Field:
        """The field of that name; RuntimeError where there is none."""
        found = next((field for field in self._fields if field.name == name), None)
        if found is None:
            raise RuntimeError(f'Field "{name}" not found; the fields are {[field.name for field in self._fields]}')
        return found

    def has_field(self, name: str) -> bool:
        """Whether there is a field of that name."""
        return any(field.name == name for field in self._fields)

    def __getitem__(self, index: int) -> Field:
        return self._fields[index]

    def __len__(self) -> int:
        return len(self._fields)

    def __iter__(self) -> Iterator[Field]:
        return iter(self._fields)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DataStruct) or self._byte_order != other._byte_order:
            return False
        return self._fields == other._fields and self.size == other.size

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        lines = [f"  {field.offset}: {field.type.name} {field.name}" for field in self._fields]
        return "DataStruct(\n" + "\n".join([*lines, f"  size = {self.size}, alignment = {self.alignment}"]) + "\n)"

    @property
    def dtype(self) -> np.dtype[Any]:
        """The same as a structured NumPy dtype."""
        order = "<" if self._byte_order == ByteOrder.little_endian else ">"
        return np.dtype(
            {
                "names": [field.name for field in self._fields],
                "formats": [_dtype(field.type).newbyteorder(order) for field in self._fields],
                "offsets": [field.offset for field in self._fields],
                "itemsize": self.size,
            }
        )

    @staticmethod
    def type_size(type: DataType | str) -> int:
        """Bytes of a number."""
        return _dtype(member("DataStruct: 'type'", DataType, type)).itemsize

    @staticmethod
    def type_range(type: DataType | str) -> tuple[float, float]:
        """Least and greatest number."""
        found = _dtype(member("DataStruct: 'type'", DataType, type))
        info: Any = np.finfo(found) if found.kind == "f" else np.iinfo(found)
        return (float(info.min), float(info.max))

    @staticmethod
    def is_integer(type: DataType | str) -> bool:
        """Whether the type is of integers."""
        return _dtype(member("DataStruct: 'type'", DataType, type)).kind in "iu"

    @staticmethod
    def is_unsigned(type: DataType | str) -> bool:
        """Whether the type has no sign."""
        return _dtype(member("DataStruct: 'type'", DataType, type)).kind == "u"

    @staticmethod
    def is_signed(type: DataType | str) -> bool:
        """Whether the type has a sign."""
        return _dtype(member("DataStruct: 'type'", DataType, type)).kind != "u"

    @staticmethod
    def is_float(type: DataType | str) -> bool:
        """Whether the type is of floats."""
        return _dtype(member("DataStruct: 'type'", DataType, type)).kind == "f"


@own_names
class DataStructConverter:
    """Turns records of one struct into records of another, field by field of the same name."""

    src: DataStruct
    dst: DataStruct

    def __init__(self, src: DataStruct, dst: DataStruct) -> None:
        for what, given in (("src", src), ("dst", dst)):
            if not isinstance(given, DataStruct):
                raise TypeError(f"DataStructConverter '{what}': expected a DataStruct, got {given!r}")
        for field in dst:
            for name in [name for _, name in field.blend] or [field.name]:
                if not src.has_field(name) and not field.flags & FieldFlags.default:
                    raise RuntimeError(f'Field "{name}" not found in source struct.')
        self.src = src
        self.dst = dst

    def convert(self, data: bytes | bytearray | memoryview) -> bytes:
        """data: whole records, one after the other. RuntimeError where the bytes are none."""
        view = memoryview(data).cast("B")
        if self.src.size == 0 or len(view) % self.src.size:
            raise RuntimeError(f"convert: {len(view)} bytes are not whole records of {self.src.size} bytes")
        source = np.frombuffer(view, self.src.dtype)
        target = np.zeros(len(source), self.dst.dtype)
        for field in self.dst:
            target[field.name] = self._column(field, source)
        return target.tobytes()

    def _column(self, field: Field, source: Array) -> Array:
        """The values of one field of the target."""
        if field.blend:
            parts = [weight * self._linear(self.src.field(name), source) for weight, name in field.blend]
            return self._stored(field, np.sum(parts, axis=0))
        if not self.src.has_field(field.name):
            return store(np.full(len(source), field.default_value), _dtype(field.type))
        own = self.src.field(field.name)
        meaning = FieldFlags.normalized | FieldFlags.srgb_gamma
        if own.flags & meaning == field.flags & meaning and (own.type == field.type or not own.flags & meaning):
            return store(_native(source[own.name]), _dtype(field.type))
        return self._stored(field, self._linear(own, source))

    def _linear(self, field: Field, source: Array) -> Array:
        """Doubles, with what normalisation and the curve of sRGB hide taken away."""
        values = _native(source[field.name])
        wide = read_normalized(values) if _is_normalized(field) else values.astype(np.float64)
        return to_linear(wide) if field.flags & FieldFlags.srgb_gamma else wide

    def _stored(self, field: Field, values: Array) -> Array:
        curved = to_srgb(values) if field.flags & FieldFlags.srgb_gamma else values
        return store(curved, _dtype(field.type), _is_normalized(field))


def _is_normalized(field: Field) -> bool:
    return bool(field.flags & FieldFlags.normalized) and DataStruct.is_integer(field.type)


def _native(values: Array) -> Array:
    return np.ascontiguousarray(values, values.dtype.newbyteorder("="))
