"""Types of Slang functions that not every device has."""

from __future__ import annotations

from typing import Any

from .._native import Feature
from .bind.base import fixed_size
from .records import Resolved


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


def check_pointer_sized(resolved: Resolved, device: Any, label: str) -> None:
    """Raises RuntimeError where Slang's compiler would abort: it writes no SPIR-V with integers as wide as a pointer."""
    if device.compile_target.format != "spirv":
        return
    names = {p.name: p.type_name for p in resolved.parameters if p.io != "return"}
    names["the result"] = resolved.return_type_name
    for name, type_name in names.items():
        if fixed_size(type_name) != type_name:
            raise RuntimeError(
                f"{label}: {name} is of type {type_name}, which kernels for Vulkan cannot have: declare it as "
                f"{fixed_size(type_name)}, or run on a cpu or cuda device"
            )


__all__ = ["check_bfloat", "check_pointer_sized"]
