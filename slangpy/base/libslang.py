"""The compiler's module `slangpy._slang`, loaded when one of its names is first used.

`from ..base import libslang` costs nothing, so that a warm start never opens the compiler; `libslang.version()` loads it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .._slang import *  # noqa: F403


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    found = globals()[name] = getattr(importlib.import_module("slangpy._slang"), name)
    return found
