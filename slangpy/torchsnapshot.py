"""The arguments of a call in torch's graph: with slots for torch's tensors, as the forward pass takes them, and copied,
as the backward pass reads them."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import torch  # pyright: ignore[reportMissingImports]

from . import _native
from .call.snapshots import frozen, has_this, is_registered

if TYPE_CHECKING:
    from .function import FunctionNode

SLOT = _native.TorchSlot()
_CONSTANTS = frozenset((int, float, bool, str, type(None)))


class Arguments:
    """Arguments of one call. `args`, `kwargs`: what the forward pass takes; a bound `this` is among them.

    asked: (object, answer) for each get_this() of the call, in that order: nobody is asked again.
    """

    def __init__(self, node: FunctionNode, args: Any, kwargs: dict[str, Any], asked: Iterable[tuple[Any, Any]]) -> None:
        self._answers: dict[int, list[Any]] = {}
        for owner, answer in asked:
            self._answers.setdefault(id(owner), []).append(answer)
        self.pairs: list[tuple[Any, Any]] = []
        """DiffPairs with the copies that stand for them: gradients go to the original."""
        bound = {} if node._bound is None or "_this" in kwargs else {"_this": self._slotted(node._bound)}
        self.args = tuple([self._slotted(value) for value in args])
        self.kwargs = {**{key: self._slotted(value) for key, value in kwargs.items()}, **bound}

    def _slotted(self, value: Any) -> Any:
        """The value with slots for torch tensors, and answers for objects; classes in the order of the native walk."""
        if type(value) in _CONSTANTS or is_registered(value):
            return value
        if isinstance(value, torch.Tensor):
            return SLOT
        if has_this(value) and not isinstance(value, _native.TensorBase):
            return self._slotted(self._answer(value))
        if isinstance(value, enum.Enum) and not isinstance(value, int):
            return self._slotted(value.value)
        if isinstance(value, dict):
            return {key: self._slotted(value[key]) for key in sorted(value)}  # as the walk goes
        if isinstance(value, (list, tuple)):
            return [self._slotted(item) for item in value]
        return value

    def _answer(self, value: Any) -> Any:
        answers = self._answers.get(id(value))
        return answers.pop(0) if answers else value.get_this()

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
