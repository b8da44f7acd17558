"""BFloat16 as a type of Slang functions: which devices have it."""

from __future__ import annotations

from typing import Any

from .._native import Feature
from .ir import Resolved


def check_bfloat(resolved: Resolved, device: Any, label: str) -> None:
    """Raises NotImplementedError for functions that take or give BFloat16 where the device cannot."""
    kind = device.compile_target.format
    if kind == "cuda" or (kind != "cpp" and device.has_feature(Feature.bfloat16)):
        return
    names = {p.name: p.type_name for p in resolved.parameters if p.io != "return"}
    names["the result"] = resolved.return_type_name
    for name, type_name in names.items():
        if "BFloat16" in type_name:
            reason = "Slang has no BFloat16 for the CPU" if kind == "cpp" else "the device lacks the feature bfloat16"
            raise NotImplementedError(
                f"{label}: {name} is a {type_name}, but {reason}; declare float there and pass BFloat16 containers "
                'with .convert("safe"), or .convert("any") where they are written'
            )


__all__ = ["check_bfloat"]
