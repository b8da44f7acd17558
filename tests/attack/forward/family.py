"""The attack without derivatives as a family: see ../family.py."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import slangpy as spy

from ..family import Family
from ..nodes import Node, Program
from ..shrink import Path, Rules
from .cases import Case, again, draw, part, runs
from .grammar import KNOWN
from .print_slang import batch_text
from .types import is_array, is_matrix, is_scalar, is_struct, is_vector

FEATURES = {"half": "half", "double": "double", "int16": "int16", "int64": "int64"}


@cache
def lacking(device: str) -> frozenset[str]:
    """Types that the device has not, and matrices that the package says it cannot have."""
    if device == "cuda_code":
        return frozenset()
    opened = spy.Device(type=spy.DeviceType[device], enable_hot_reload=False)
    missing = frozenset(name for name, feature in FEATURES.items() if not opened.has_feature(spy.Feature[feature]))
    opened.close()
    return missing | (frozenset({"int_matrix"}) if device == "vulkan" else frozenset())


def _runs(program: Program) -> bool:
    try:
        return runs(program)  # type: ignore[arg-type]
    except Exception:
        return False


def _simple(program: Program, path: Path, node: Node) -> Iterator[Node]:
    ty = node.ty
    if ty == "void" or is_struct(ty) or is_array(ty):
        return
    scalar = ty.split(":")[0]
    one = Node("const", [], scalar, "true" if scalar == "b" else "1.0" if scalar[0] == "f" else "1")
    if is_scalar(ty):
        yield one
    elif (is_vector(ty) or is_matrix(ty)) and node.op != "make":
        yield Node("make", [one], ty)


def _text(case: Case, programs: list[Program]) -> str:
    return batch_text(programs)  # type: ignore[arg-type]


RULES = Rules(_runs, _simple, "i32")
FAMILY = Family(f"{__package__}.compare", KNOWN, draw, part, again, _text, RULES, lacking)  # type: ignore[arg-type]
