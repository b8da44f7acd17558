"""Checks of arguments that several public classes take."""

from __future__ import annotations

from typing import Any

from .._native import CommandQueueType
from .typed import named_member


def check_queue(function: str, queue: Any) -> None:
    """There is one queue."""
    if queue is not None:
        named_member(f"{function} 'queue'", CommandQueueType, queue)
