"""How calls use their arguments."""

from __future__ import annotations

import enum

from ..reflection.functions import IOType as IOType


class AccessType(enum.Enum):
    """Whether a kernel reads an argument, writes it, or both."""

    none = 0
    read = 1
    write = 2
    readwrite = 3


class CallMode(enum.Enum):
    """Plain calls and backward calls."""

    prim = 0
    bwds = 1
    fwds = 2
