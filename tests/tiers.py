"""Cases of a test of which the gate runs some, and the nightly run all."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest


def gate(cases: Iterable[Any], is_kept: Callable[[Any], bool]) -> list[Any]:
    """Parameters of a test: the gate runs the cases that `is_kept` chooses; those that only combine anew what these cover
    are of the tier `nightly`. Cases that are tuples are of several arguments, or of one that is a tuple or a list itself."""
    return [_param(case) if is_kept(case) else _param(case, pytest.mark.nightly) for case in cases]


def _param(case: Any, *marks: pytest.MarkDecorator) -> Any:
    return pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=marks)
