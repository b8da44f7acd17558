"""What a comparison finds."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass
class Failure:
    kind: str  # wrong value, wrong gradient, wrong tangent, error
    stage: str  # value, bwds, fwds, torch
    program: int  # its place in the case; -1 where it is not known
    text: str

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)
