"""Packages that need not be installed, imported when something of theirs is met."""

from __future__ import annotations

import importlib
import sys
from typing import Any


def find_package(name: str) -> Any | None:
    """The package, or None where it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def torch_for(what: str) -> Any:
    """torch, the one way to it below `slangpy.pytorch`; ImportError says that `what` needs it."""
    torch = sys.modules.get("torch")
    if torch is not None:
        return torch
    try:
        return importlib.import_module("torch")
    except ImportError as error:
        raise ImportError(f"{what} needs torch: pip install torch ({error})") from None


__all__ = ["find_package", "torch_for"]
