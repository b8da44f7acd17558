"""Locks that a forked child finds open: the thread that held one when the process was forked does not exist there."""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any

_made: weakref.WeakSet[Any] = weakref.WeakSet()


def new_lock() -> threading.Lock:
    lock = threading.Lock()
    _made.add(lock)
    return lock


def new_rlock() -> threading.RLock:
    """One that the thread which holds it may take again."""
    lock = threading.RLock()
    _made.add(lock)
    return lock


def _reopen() -> None:
    for lock in list(_made):
        is_own = getattr(lock, "_is_owned", None)  # of a recursive one: the forking thread lives on in the child
        if is_own is None or not is_own():
            lock._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reopen)

__all__ = ["new_lock", "new_rlock"]
