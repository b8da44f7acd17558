"""Structs with lanes in place of numbers."""

from __future__ import annotations

import re
from math import prod

from .parser import Unit
from .tokens import Unfit
from .tree import NATIVE, Struct, arguments_of, is_vector

_NAME = re.compile(r"[A-Za-z_]\w*")
_BYTES = {"bool": 1, "int8_t": 1, "uint8_t": 1, "half": 2, "int16_t": 2, "uint16_t": 2, "float": 4, "int32_t": 4, "uint32_t": 4}
_OTHER_BYTES = 8
_MOST_BYTES = 1024
"""Of one value in lanes: those of larger ones would leave the first cache, and then the stack."""


class Structs:
    """Those that functions for lanes use."""

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.texts: dict[str, str] = {}

    def is_open(self, type: str) -> bool:
        """Whether lanes of it have parts of their own; of others there is one whole value for each lane."""
        if is_vector(type):
            return arguments_of(type)[0] in NATIVE
        return type.startswith("FixedArray<") or type in self.unit.structs

    def check_size(self, type: str) -> None:
        """Whether one value for each lane can be held."""
        if self._bytes(type) > _MOST_BYTES:
            raise Unfit("a large array")

    def _bytes(self, type: str) -> int:
        if type.endswith("*"):
            return _OTHER_BYTES
        if type in self.unit.structs:
            return sum(self._bytes(field) for field, _ in self.unit.structs[type].fields)
        inner, *counts = arguments_of(type) or ("",)
        if not counts or not all(count[0].isdigit() for count in counts):
            return _BYTES.get(type, _OTHER_BYTES)
        return self._bytes(inner) * prod(int(count.rstrip("uUlL")) for count in counts)

    def many(self, type: str) -> str:
        """The type of one value for each lane."""
        if type in NATIVE:
            return f"_spy_lanes<{type}>"
        for name in _NAME.findall(type) if not type.endswith("*") else ():
            if name in self.unit.structs and name not in self.texts:
                self._write(self.unit.structs[name])
        return f"_spy_many<{type}>::type"

    def _write(self, struct: Struct) -> None:
        fields = [(self.many(type), name) for type, name in struct.fields]
        name, lanes = struct.name, f"{struct.name}_lanes"
        get = " ".join(f"r.{f} = _spy_get(a.{f}, i);" for _, f in fields)
        put = " ".join(f"_spy_put(a.{f}, i, x.{f});" for _, f in fields)
        fill = " ".join(f"_spy_fill(a.{f}, x.{f});" for _, f in fields)
        set = " ".join(f"_spy_set(m, a.{f}, x.{f});" for _, f in fields)
        self.texts[name] = (
            f"struct {lanes} {{ {' '.join(f'{type} {f};' for type, f in fields)} }};\n"
            f"template <> struct _spy_many<{name}> {{ typedef {lanes} type; }};\n"
            f"SPY_LANE_INLINE {name} _spy_get(const {lanes}& a, int i) {{ {name} r; {get} return r; }}\n"
            f"SPY_LANE_INLINE void _spy_put({lanes}& a, int i, const {name}& x) {{ {put} }}\n"
            f"SPY_LANE_INLINE void _spy_fill({lanes}& a, const {name}& x) {{ {fill} }}\n"
            f"SPY_LANE_INLINE void _spy_set(const _spy_mask& m, {lanes}& a, const {lanes}& x) {{ {set} }}\n"
        )
