"""Structs with lanes in place of numbers."""

from __future__ import annotations

import re

from .parser import Unit
from .tree import NATIVE, Struct, arguments_of, is_vector

_NAME = re.compile(r"[A-Za-z_]\w*")


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
