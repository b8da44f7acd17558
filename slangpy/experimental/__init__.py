"""The paths of what was once experimental."""

from __future__ import annotations

import importlib
from typing import Any

_SUBMODULES = ("gridarg", "diffinstancelist")


def __getattr__(name: str) -> Any:  # imported when they are asked for
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
