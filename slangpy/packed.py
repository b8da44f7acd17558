"""Values that are written once and shared by many calls (spec/values.md section 14)."""

from __future__ import annotations

from typing import Any


def pack(module: Any, value: Any) -> Any:
    """Would write `value` once into a parameter block of its own."""
    del module, value
    raise NotImplementedError(
        "pack is not available yet; keep large values in a Tensor (structs included), which calls share without copying"
    )
