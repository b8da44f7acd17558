"""Cases of a test of which the gate runs some, and the nightly run all."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest


def gate(cases: Iterable[Any], is_kept: Callable[[Any], bool]) -> list[Any]:
    """Parameters of a test: the gate runs the cases that `is_kept` chooses; those that only combine anew what these cover
    are of the tier `nightly`. Cases that are tuples are of several arguments."""
    return [case if is_kept(case) else _nightly(case) for case in cases]


def _nightly(case: Any) -> Any:
    return pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.nightly)
