"""Timings of this package beside its peers; `python -m benchmarks` runs them all."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

# `python -m` puts the repository first on the path, where the source of slangpy would hide the installed package.
if Path(sys.path[0]).resolve() == Path(__file__).resolve().parents[1]:
    sys.path.append(sys.path.pop(0))


def find_package(name: str) -> Any | None:
    """The package, or None where it is not installed. Own code, so that older builds of slangpy can be measured, too."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None
