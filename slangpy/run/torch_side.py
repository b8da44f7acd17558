"""What running calls ask of torch. `slangpy.pytorch` stands above and gives it, so that nothing here knows torch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class TorchSide:
    records_gradients: Callable[[], bool]
    """Whether torch records what is done to tensors that require grad."""
    empty: Callable[[Any], Any]
    """An empty tensor of torch's device for one of ours: results go where it is."""
    note_written: Callable[[Any], None]
    """Tells torch that a tensor is written to."""
    pair: Callable[[Any, Any], Any]
    """A tensor with its tangent."""


_given: list[TorchSide] = []


def give(side: TorchSide) -> None:
    """Called once, when `slangpy.pytorch` is loaded."""
    _given[:] = [side]


def torch_side() -> TorchSide:
    return _given[0]
