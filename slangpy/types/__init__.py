"""The classes of values that calls take."""

from __future__ import annotations

import importlib
from typing import Any

from .._native import DiffPair as DiffPair, ValueRef as ValueRef
from ..generators import (
    CallIdArg as CallIdArg,
    GridArg as GridArg,
    RandFloatArg as RandFloatArg,
    ThreadIdArg as ThreadIdArg,
    WangHashArg as WangHashArg,
    call_id as call_id,
    grid as grid,
    rand_float as rand_float,
    thread_id as thread_id,
    wang_hash as wang_hash,
)
from ..refs import diffPair as diffPair, floatDiffPair as floatDiffPair, floatRef as floatRef, intRef as intRef
from ..tensor import Tensor as Tensor

_SUBMODULES = ("tensor", "diffpair", "valueref", "callidarg", "threadidarg", "randfloatarg", "wanghasharg")


def __getattr__(name: str) -> Any:  # imported when they are asked for
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
