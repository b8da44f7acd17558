"""Arguments of registered classes at launch: what native code asks of their marshalls."""

from __future__ import annotations

from typing import Any

from .._native import Shape
from ..bindings.boundvariableruntime import BoundVariableRuntime
from ..bindings.enums import AccessType, CallMode
from ..bindings.marshall import CallContext
from ..plan.records import Placed, Vectorized


class CustomLeaves:
    """The leaves of one plan that have marshalls, by number."""

    def __init__(self, label: str, device: Any, plan: Vectorized, mode: str) -> None:
        self._label, self._device = label, device
        self._mode = CallMode[mode]
        self._leaves = {p.leaf: (p, _runtime(p)) for p in plan.placed if p.binding.kind == "custom"}

    def _context(self, call_shape: Any) -> CallContext:
        return CallContext(self._device, Shape(call_shape), self._mode)

    def shape(self, leaf: int, value: Any) -> tuple[int, ...]:
        """Sizes of the dimensions that the value spreads over the call; -1 takes the call's size."""
        placed, runtime = self._leaves[leaf]
        marshall = runtime.python
        dims = len(placed.map)
        sizes = tuple(int(size) for size in marshall.get_shape(value))
        if marshall.match_call_shape and not sizes:
            sizes = (-1,) * dims
        sizes = sizes[:dims] if len(sizes) >= dims else sizes
        if len(sizes) != dims or any(size < -1 for size in sizes):
            raise ValueError(
                f"{self._label}: argument {placed.path}: {type(marshall).__name__}.get_shape gives {list(sizes)}, but "
                f"resolve_dimensionality said {dims} dimensions; let PYTHON_SIGNATURES tell values of different rank apart"
            )
        return sizes

    def calldata(self, leaf: int, value: Any, call_shape: Any) -> Any:
        runtime = self._leaves[leaf][1]
        return runtime.python.create_calldata(self._context(call_shape), runtime, value)

    def read(self, leaf: int, value: Any, data: Any, call_shape: Any) -> None:
        runtime = self._leaves[leaf][1]
        runtime.python.read_calldata(self._context(call_shape), runtime, value, data)

    def create_output(self, call_shape: Any) -> Any:
        runtime = self._leaves[-1][1]
        return runtime.python.create_output(self._context(call_shape), runtime)

    def read_output(self, value: Any, data: Any, call_shape: Any) -> Any:
        """What the call returns for the object that create_output made (`data`: its stored fields, None: no dispatch)."""
        runtime, context = self._leaves[-1][1], self._context(call_shape)
        if data is not None:
            runtime.python.read_calldata(context, runtime, value, data)
        return runtime.python.read_output(context, runtime, value)


def _runtime(placed: Placed) -> BoundVariableRuntime:
    access = {(True, True): AccessType.readwrite, (False, True): AccessType.write}.get(
        (placed.reads, placed.writes), AccessType.read
    )
    return BoundVariableRuntime(placed.path, placed.binding.marshall, placed.binding.type, access, placed.map)
