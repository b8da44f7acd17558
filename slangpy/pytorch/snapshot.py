"""The arguments of a call in torch's graph: with slots for torch's tensors, as the forward pass takes them, and copied,
as the backward pass reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _native
from ..run.snapshots import frozen

SLOT = _native.TorchSlot()


class Arguments:
    """Arguments of one call as native code stripped them (`strip` in src/native/values/signature.h). `args`, `kwargs`: what
    the forward pass takes; a bound `this` is among them.
    """

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.args = args
        self.kwargs = kwargs
        self.pairs: list[tuple[Any, Any]] = []
        """DiffPairs with the copies that stand for them: gradients go to the original."""

    def copies(self, changed: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """What the backward pass reads. changed: slangpy Tensors that this very call reads and writes."""
        ids = {id(tensor) for tensor in changed}

        def special(value: Any) -> Any:
            if isinstance(value, _native.DiffPair):
                copy = _native.DiffPair(frozen(value.primal), value.grad, value.needs_grad)
                self.pairs.append((value, copy))
                return copy
            if id(value) in ids:
                copy = value.copy()
                copy.grad_in, copy.grad_out = value.grad_in, value.grad_out
                return copy
            return None

        kwargs = {key: frozen(value, special) for key, value in self.kwargs.items()}
        return tuple([frozen(value, special) for value in self.args]), kwargs


__all__ = ["SLOT", "Arguments"]
