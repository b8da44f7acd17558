"""A parameter while a call runs, as marshalls see it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..reflection import SlangType
    from .enums import AccessType


@dataclass(frozen=True)
class BoundVariableRuntime:
    """`transform[i]` is the call dimension that dimension i of the argument goes to; `path` names the argument."""

    path: str
    python: Any
    vector_type: SlangType
    access: AccessType
    transform: tuple[int, ...]

    @property
    def call_dimensionality(self) -> int:
        return len(self.transform)
