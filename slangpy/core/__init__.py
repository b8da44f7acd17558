"""The paths under which existing programs import modules, functions and structs; the names are those of `slangpy`."""

from __future__ import annotations

import importlib
from typing import Any

_SUBMODULES = (
    "module",
    "struct",
    "function",
    "calldata",
    "callsignature",
    "native",
    "utils",
    "enums",
    "instance",
    "packedarg",
)


def __getattr__(name: str) -> Any:  # imported when they are asked for
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
