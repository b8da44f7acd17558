"""When to look for garbage: modules and devices refer to themselves in circles, and hold far more memory and threads
than Python's collector, which counts small objects, can know of."""

from __future__ import annotations

import gc
import weakref
from typing import Any

from .locks import new_lock


def collect() -> None:
    """Collects garbage, unless the program has chosen to do that itself."""
    if gc.isenabled():
        gc.collect()


class Census:
    """The living objects of a kind. Collects garbage when there are twice as many as the last time left over."""

    def __init__(self, least: int) -> None:
        """least: so few are never worth a collection, which takes as long as a program has objects."""
        self._least = self._limit = least
        self._living: weakref.WeakSet[Any] = weakref.WeakSet()
        self._lock = new_lock()

    def add(self, item: Any) -> None:
        with self._lock:
            self._living.add(item)
            many = len(self._living) >= self._limit
        if many:
            collect()
            with self._lock:
                self._limit = max(self._least, 2 * len(self._living))

    def discard(self, item: Any) -> None:
        """For those that let go of what they held while they live."""
        with self._lock:
            self._living.discard(item)

    def items(self) -> list[Any]:
        with self._lock:
            return list(self._living)
