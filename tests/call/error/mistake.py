"""A mistake and the message that it gets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Mistake(NamedTuple):
    make: Callable[[Any], Any]
    kind: type[Exception]
    words: tuple[str, ...]
    """What the message holds."""
