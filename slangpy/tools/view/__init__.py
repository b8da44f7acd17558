"""`python -m slangpy view`: the picture of a Slang function of a pixel, in a window with sliders or in a file."""

from __future__ import annotations

from .program import Program as Program
from .viewer import Viewer as Viewer
