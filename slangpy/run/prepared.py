"""Calls that are prepared once and launched many times."""

from __future__ import annotations

from typing import Any

from .. import _native
from ..base.own_names import own_names


@own_names
class PreparedCall(_native.PreparedLaunch):
    """A call whose arguments were read when it was prepared: calling this object only launches the kernel.

    Made by `f.prepare(*args, **kwargs)`, of any FunctionNode: `f.map(...)`, `f.bwds`, `f.fwds` and the other
    modifiers go before. What holds for all launches is decided then: the kernel, the call's shape, globals given by
    `set` (functions are asked once), whether sums are deterministic.

    `p()` launches and returns what the call returns. Memory for the result is allocated when the call is prepared,
    and each launch overwrites it: the same Tensor, NumPy array or torch tensor comes back each time. Copy what is to
    be kept, or give the memory as `_result=`. A plain number is read back and returned anew.

    `p(x=other, a=3.0)` replaces arguments first, as `p.set(x=other, a=3.0)` does; they stay replaced. Names are those
    of parameters, of fields inside dicts ("params.a", so `p.set(**{"params.a": 3.0})`), `_result`, and "this". A new
    value is checked as in a first call and must be of the same type, dtype, shape and kind of strides; TypeError or
    ValueError tell what was expected, and then nothing is replaced. Numbers are read when they are set.

    The object keeps its arguments alive. Arrays and tensors are used in place: what they hold at a launch counts. A
    torch tensor that was given other memory (`.data =`, `resize_`) is refused with a RuntimeError until it is set again.
    Do not give a NumPy array another size (`resize(refcheck=False)`).

    Refused by name: values that are copied for every launch (NumPy arrays on a GPU, arguments that overlap what is
    written), ValueRef and DiffPair, objects of registered classes, and torch tensors that require grad, as prepared
    calls join no graph. Launches by several threads are safe, but write the same result. `device.check_gradients`
    checks ordinary calls only. RuntimeError when the device is closed.
    """

    @property
    def function(self) -> Any:
        """The FunctionNode that was prepared."""
        return self._node

    @property
    def device(self) -> Any:
        """The Device that it runs on."""
        return self._node.module.device

    @property
    def shape(self) -> tuple[int, ...]:
        """The call's shape: how many invocations a launch makes, by dimension."""
        return self._shape

    def __repr__(self) -> str:
        node = self._node
        kind = "".join(f".{name}" for name in ("bwds", "fwds") if getattr(node.options, name))
        where = self.device.info.type.name
        return f"PreparedCall({node.label}{kind}, device={where}, shape={self.shape}, arguments={self.names})"


__all__ = ["PreparedCall"]
