"""Types of forward programs, as short names.

Scalars: b i8 i16 i32 i64 u8 u16 u32 u64 f16 f32 f64. A vector: i8:3, a matrix: f32:2x3, an array: f16:2[4]. Else a struct.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Scalar:
    name: str
    slang: str
    dtype: np.dtype
    kind: str  # b, i, u, f
    bits: int

    @property
    def low(self) -> int:
        return -(1 << (self.bits - 1)) if self.kind == "i" else 0

    @property
    def high(self) -> int:
        return (1 << (self.bits - (self.kind == "i"))) - 1

    @property
    def unit(self) -> float:
        """Half a unit in the last place of 1."""
        return {16: 2.0**-11, 32: 2.0**-24, 64: 2.0**-53}[self.bits]

    @property
    def tiny(self) -> float:
        """The least number that is not subnormal."""
        return {16: 2.0**-14, 32: 2.0**-126, 64: 2.0**-1022}[self.bits]

    @property
    def largest(self) -> float:
        return float(np.finfo(self.dtype).max)


def _table() -> dict[str, Scalar]:
    rows = [Scalar("b", "bool", np.dtype(np.bool_), "b", 8)]
    for bits in (8, 16, 32, 64):
        rows.append(Scalar(f"i{bits}", "int" if bits == 32 else f"int{bits}_t", np.dtype(f"i{bits // 8}"), "i", bits))
        rows.append(Scalar(f"u{bits}", "uint" if bits == 32 else f"uint{bits}_t", np.dtype(f"u{bits // 8}"), "u", bits))
    for bits, slang in ((16, "half"), (32, "float"), (64, "double")):
        rows.append(Scalar(f"f{bits}", slang, np.dtype(f"f{bits // 8}"), "f", bits))
    return {row.name: row for row in rows}


SCALARS = _table()
INTEGERS = tuple(name for name, row in SCALARS.items() if row.kind in "iu")
FLOATS = ("f16", "f32", "f64")


def is_struct(ty: str) -> bool:
    return ty != "T" and ty.split(":")[0].split("[")[0] not in SCALARS


def is_array(ty: str) -> bool:
    return ty.endswith("]")


def is_matrix(ty: str) -> bool:
    return "x" in ty and not is_array(ty) and not is_struct(ty)


def is_vector(ty: str) -> bool:
    return ":" in ty and not is_array(ty) and "x" not in ty


def is_scalar(ty: str) -> bool:
    return ty in SCALARS


def base(ty: str) -> Scalar:
    """The scalar type of the elements of all but structs."""
    return SCALARS[ty.split(":")[0].split("[")[0]]


def shape(ty: str) -> tuple[int, ...]:
    """Of the elements of one value."""
    front, _, count = ty.rstrip("]").partition("[")
    inner = front.partition(":")[2]
    return (*((int(count),) if count else ()), *(int(part) for part in inner.split("x") if inner))


def element(ty: str) -> str:
    """What an index into the type gives."""
    if is_array(ty):
        return ty.partition("[")[0]
    name, _, inner = ty.partition(":")
    return name if "x" not in inner else f"{name}:{inner.split('x')[1]}"


def like(name: str, ty: str) -> str:
    """The type of the shape of `ty` whose elements are `name`."""
    _, colon, rest = ty.partition(":")
    return name + colon + rest


def slang_name(ty: str) -> str:
    if ty in ("T", "void") or is_struct(ty):
        return ty
    if is_array(ty):
        return f"{slang_name(element(ty))}[{shape(ty)[0]}]"
    row, inner = base(ty), ty.partition(":")[2]
    if row.bits == 32 or row.name in ("b", "f16", "f64") or not inner:
        return row.slang + inner
    return f"matrix<{row.slang}, {inner.replace('x', ', ')}>" if "x" in inner else f"vector<{row.slang}, {inner}>"


def declared(ty: str, name: str) -> str:
    return f"{slang_name(element(ty))} {name}[{shape(ty)[0]}]" if is_array(ty) else f"{slang_name(ty)} {name}"
