"""How arrays lie in memory."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Layout:
    """How an array lies in memory: it is base[index] with its dimensions in another order."""

    shape: tuple[int, ...]  # of the base
    index: tuple[slice, ...]
    order: tuple[int, ...]

    def base_of(self, array: np.ndarray) -> np.ndarray:
        """A base array whose view is `array`."""
        base = np.full(self.shape, 77, array.dtype)
        base[self.index] = array.transpose(np.argsort(self.order))
        return base

    def view(self, base: Any) -> Any:
        view = base[self.index] if self.index else base
        if self.order == tuple(range(len(self.order))):
            return view
        return view.transpose(self.order) if isinstance(base, np.ndarray) else view.permute(*self.order)


def draw_layout(rng: random.Random, shape: tuple[int, ...]) -> Layout:
    order = list(range(len(shape)))
    if rng.random() < 0.3:
        rng.shuffle(order)
    inner = [shape[order.index(axis)] for axis in range(len(shape))]  # sizes in the order in memory
    sizes, index = [], []
    for size in inner:
        kind = rng.random()
        if kind < 0.7:
            sizes, index = [*sizes, size], [*index, slice(None)]
        elif kind < 0.85:
            sizes, index = [*sizes, size * 2], [*index, slice(rng.randrange(2), None, 2)]
        elif kind < 0.93:
            sizes, index = [*sizes, size + 3], [*index, slice(1, 1 + size)]
        else:
            sizes, index = [*sizes, size], [*index, slice(None, None, -1)]
    return Layout(tuple(sizes), tuple(index), tuple(order))
