"""Checks of arguments that several public classes take."""

from __future__ import annotations

from typing import Any

from .._native import CommandQueueType


def check_queue(function: str, queue: Any) -> None:
    """There is one queue."""
    if queue is not None and not isinstance(queue, CommandQueueType):
        raise TypeError(f"{function}: 'queue' must be a CommandQueueType, got {queue!r}")
