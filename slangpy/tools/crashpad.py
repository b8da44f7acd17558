"""Crash reports by Crashpad, which is not part of this package."""

from __future__ import annotations

from collections.abc import Mapping


def is_supported() -> bool:
    """False: see `start_handler`."""
    return False


def start_handler(handler: str = "", database: str = "", annotations: Mapping[str, str] | None = None) -> None:
    """NotImplementedError: Python's faulthandler says where a program crashed."""
    del handler, database, annotations
    raise NotImplementedError(
        "crashpad.start_handler is not implemented; use faulthandler.enable(), which prints the stacks of all threads"
    )


__all__ = ["is_supported", "start_handler"]
