"""Views of every order, sign and gap of strides over flat memory, with guards around and between their elements."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import slangpy as spy

GUARD = 8


@dataclass(frozen=True)
class Layout:
    """Sizes and steps of a view, and where its first element lies in memory of `total` elements."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    total: int


def draw_layout(rng: random.Random, shape: Sequence[int], signs: Sequence[int]) -> Layout:
    """A layout with signs (0: the elements along a dimension are one) drawn from `signs`; often without any gap."""
    plain = rng.random() < 0.3
    order = list(range(len(shape)))[::-1]
    if not plain:
        rng.shuffle(order)
    strides = [0] * len(shape)
    step, low, high = 1, 0, 0
    for dim in order:
        size = shape[dim]
        if size <= 1 and not plain and rng.random() < 0.5:
            strides[dim] = rng.choice([s for s in (1, 2, 7, -1, -5, 0) if (s > 0) - (s < 0) in signs])
            continue
        sign = 1 if plain else rng.choice(signs)
        stride = step * (1 if plain else rng.choice((1, 1, 2, 3)))
        strides[dim] = sign * stride
        reach = max(size - 1, 0) * stride
        if sign:
            step = reach + stride
        low, high = low + min(sign, 0) * reach, high + max(sign, 0) * reach
    return Layout(tuple(shape), tuple(strides), GUARD - low, 2 * GUARD + high - low + 1)


def host_view(base: np.ndarray, layout: Layout) -> np.ndarray:
    """A view over a flat array."""
    steps = [step * base.itemsize for step in layout.strides]
    return np.lib.stride_tricks.as_strided(base[layout.offset :], layout.shape, steps)


def tensor_view(base: Any, layout: Layout) -> Any:
    """A view over a flat Tensor. Views take strides from 0; those below come from slices."""
    turned = [step < 0 and size > 1 for step, size in zip(layout.strides, layout.shape, strict=True)]
    first = layout.offset
    for size, step, turn in zip(layout.shape, layout.strides, turned, strict=True):
        first += (size - 1) * step if turn else 0
    view = base.view(layout.shape, [abs(step) for step in layout.strides], first)
    if any(turned):
        view = view[tuple(slice(None, None, -1 if turn else None) for turn in turned)]
    assert tuple(view.shape) == layout.shape
    return view


class Memory:
    """One argument: a view over memory of its own, and what all of that memory should hold after the call."""

    def __init__(self, device: Any, kind: str, layout: Layout, content: np.ndarray) -> None:
        self.kind, self.layout = kind, layout
        self.expected = content.copy()
        self.base: Any = content.copy()
        if kind == "numpy":
            self.argument: Any = host_view(self.base, layout)
        elif kind == "torch":
            import torch

            self.base = torch.from_numpy(self.base).to(device.torch_device)
            self.argument = torch.as_strided(self.base, layout.shape, layout.strides, layout.offset)
        else:
            self.base = spy.Tensor.from_numpy(device, self.base)
            self.argument = tensor_view(self.base, layout)

    @property
    def values(self) -> np.ndarray:
        """What the view should hold after the call: writable."""
        return host_view(self.expected, self.layout)

    def check(self, what: str) -> None:
        got = self.base if isinstance(self.base, np.ndarray) else self.base.cpu().numpy() if self.kind == "torch" else None
        got = self.base.to_numpy() if got is None else got
        wrong = np.flatnonzero(got != self.expected).tolist()
        assert not wrong, f"{what} {self.layout}: at {wrong}: {got[wrong]} where {self.expected[wrong]} is right"
