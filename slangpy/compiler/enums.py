"""Enumerations of the program layer."""

from __future__ import annotations

import enum
from typing import Any


class _Named(enum.IntEnum):
    """Integers that print as "Class.name"; Python's own print as numbers."""

    __str__ = enum.Enum.__str__
    __format__ = enum.Enum.__format__  # type: ignore[assignment]


class SlangOptimizationLevel(_Named):
    """How hard Slang and the downstream compiler work on a kernel."""

    none = 0
    default = 1
    high = 2
    maximal = 3


class SlangFloatingPointMode(_Named):
    """`fast` allows approximate division and functions; `precise` forbids contraction, and takes the C library's
    exact functions on the CPU, where `default` may take vectorised ones (errors of up to 4 units in the last place)."""

    default = 0
    fast = 1
    precise = 2


class SlangDebugInfoLevel(_Named):
    """How much debug information goes into target code."""

    none = 0
    minimal = 1
    standard = 2
    maximal = 3


class SlangMatrixLayout(_Named):
    """How matrices lie in memory."""

    row_major = 1
    column_major = 2


class ShaderModel(_Named):
    """Direct3D's shader models, the scale on which devices state what they can do."""

    unknown = 0
    sm_6_0 = 60
    sm_6_1 = 61
    sm_6_2 = 62
    sm_6_3 = 63
    sm_6_4 = 64
    sm_6_5 = 65
    sm_6_6 = 66
    sm_6_7 = 67


class ShaderStage(_Named):
    """What an entry point is for. Equal to its name as text, too."""

    none = 0
    vertex = 1
    hull = 2
    domain = 3
    geometry = 4
    fragment = 5
    compute = 6
    ray_generation = 7
    intersection = 8
    any_hit = 9
    closest_hit = 10
    miss = 11
    callable = 12
    mesh = 13
    amplification = 14
    dispatch = 15

    def __eq__(self, other: Any) -> bool:
        return self.name == other if isinstance(other, str) else int(self) == other

    def __ne__(self, other: Any) -> bool:
        return not self == other

    __hash__ = enum.IntEnum.__hash__
