"""What every batch can take: each program names those that it uses."""

from __future__ import annotations

from dataclasses import dataclass

from ..nodes import Node, Program, Struct

INPUT_STRUCT = Struct(
    "In", [("s", "i16", False), ("q", "f32:2", False), ("z", "u64", False), ("t", "b", False), ("e", "f16", False)]
)

SCALARS = ("b", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "f32", "f64")
VECTORS = ("b:2", "i8:3", "i16:2", "i32:4", "i64:2", "u8:4", "u16:3", "u32:2", "u64:3", "f16:2", "f32:3", "f64:2")
MATRICES = ("f32:2x2", "f32:3x2", "i32:2x3")
ARRAYS = ("i32[4]", "f32[3]", "u8[4]", "i64[2]", "f16[3]")

INPUTS = (
    {f"x_{ty}": ty for ty in SCALARS}
    | {f"y_{ty}": ty for ty in SCALARS}
    | {f"v_{ty.split(':')[0]}": ty for ty in VECTORS}
    | {f"m{at}": ty for at, ty in enumerate(MATRICES)}
    | {f"h{at}": ty for at, ty in enumerate(ARRAYS)}
    | {"s": "In"}
)


@dataclass
class Constant:
    """A static const of the module: a scalar, vector or array."""

    name: str
    ty: str
    value: Node


@dataclass
class ForwardProgram(Program):
    constants: list[Constant]

    def struct(self, name: str) -> Struct:
        return next(struct for struct in [*self.structs, INPUT_STRUCT] if struct.name == name)
