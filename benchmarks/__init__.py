"""Timings of this package beside its peers; `python -m benchmarks` runs them all."""

from __future__ import annotations

import sys
from pathlib import Path

# `python -m` puts the repository first on the path, where the source of slangpy would hide the installed package.
if Path(sys.path[0]).resolve() == Path(__file__).resolve().parents[1]:
    sys.path.append(sys.path.pop(0))
