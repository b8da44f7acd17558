"""Types of Slang functions that not every device has."""

from __future__ import annotations

import re
from typing import Any

from .._native import Feature
from .bind.base import fixed_size
from .records import Resolved

_FEATURES = {"BFloat16": Feature.bfloat16, "FloatE4M3": Feature.float8, "FloatE5M2": Feature.float8}
_NARROW = re.compile(rf"\b(?:{'|'.join(_FEATURES)})\b")
_VECTOR = re.compile(rf"\b(?:vector|matrix)<({'|'.join(_FEATURES)})\b")


def check_narrow_floats(resolved: Resolved, module: Any) -> None:
    """Raises NotImplementedError for functions that take or give BFloat16 or a float of 8 bits where the device cannot.

    Kernels on the CPU have structs of our library in their place, of which Slang makes no vectors.
    """
    device = module.device
    kind = device.compile_target.format
    if kind == "cuda":
        return
    names = {p.name: p.type_name for p in resolved.parameters if p.io != "return"}
    names["the result"] = resolved.return_type_name
    for name, type_name in names.items():
        found = (_VECTOR if kind == "cpp" else _NARROW).search(type_name)
        if found is None:
            continue
        scalar = found[found.lastindex or 0]
        if kind != "cpp" and (device.has_feature(_FEATURES[scalar]) or _is_users(module, scalar)):
            continue
        reason = (
            "the CPU has no such vectors" if kind == "cpp" else f"the device lacks the feature {_FEATURES[scalar].name}"
        )
        raise NotImplementedError(f"{name} is a {type_name}, but {reason}; {_instead(type_name, kind, scalar)}")


def _is_users(module: Any, name: str) -> bool:
    """Whether a struct of the user's has the name."""
    type_ = module.layout.find_type_by_name(name)
    return type_ is not None and type_.kind == "struct"


def _instead(type_name: str, kind: str, scalar: str) -> str:
    """What to write for a type that a device lacks."""
    own = _VECTOR.sub(lambda found: found[0].replace(scalar, "float"), type_name) if kind == "cpp" else "float"
    if scalar != "BFloat16":
        return f"declare {own} there and pass floats, or run on a cuda device"
    return f'declare {own} there and pass BFloat16 containers with .convert("safe"), or .convert("any") where they are written'


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


__all__ = ["check_narrow_floats", "check_pointer_sized"]
