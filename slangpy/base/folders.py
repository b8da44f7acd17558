"""Where the package's files are."""

from __future__ import annotations

import os
from pathlib import Path

PACKAGE = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
LIBRARY = os.path.join(PACKAGE, "slang")
"""Folder of the Slang library that comes with the package."""
LIBRARY_PATH = Path(LIBRARY)
