"""What the tests with random parts draw, and how much.

SLANGPY_TEST_SEED  which random programs, calls and changes; default 1, which the gate draws
SLANGPY_TEST_MANY  how many times as many as the gate draws; default 1. From 10 on, what lives long lives its full time
"""

from __future__ import annotations

import os

SEED = int(os.environ.get("SLANGPY_TEST_SEED", "1"))
MANY = int(os.environ.get("SLANGPY_TEST_MANY", "1"))
LONG = MANY >= 10
