"""What the planner knows of a kind of leaf: its fields in the kernel, its load and store, and its native slot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..records import Derivative, Placed
from ..slots import Slots
from ..specification import KindSpec, LeafSpec
from ..trampoline import Kernel

Specs = dict[int, LeafSpec]
"""Native plans by the number of the leaf."""


def _always(placed: Placed, rank: int) -> bool:
    del placed, rank
    return True


def up_to_one(placed: Placed, rank: int) -> bool:
    """Flat kernels have one call index."""
    del placed
    return rank <= 1


def never(placed: Placed, rank: int) -> bool:
    del placed, rank
    return False


@dataclass(frozen=True)
class LeafKind:
    """One way for a leaf to reach a kernel. The name is that of `Binding.kind`."""

    name: str
    declare: Callable[[Kernel, Placed], None]
    """Adds what is stored for it."""
    value: Callable[[Kernel, Placed], str]
    """Expression of its value; statements go where they are cheapest."""
    spec: Callable[[Slots, Placed, Derivative], KindSpec]
    """What native code is told of it besides what all leaves have."""
    store: Callable[[Kernel, Placed, str], None] | None = None
    """Statements that store a variable in it; None where the body of a call never does."""
    specs: Callable[[Slots, Placed, Callable[[Placed], LeafSpec]], Specs] | None = None
    """Of lists: the plans of the list and of its entries, made with the function for one leaf."""
    is_classed: bool = False
    """Whether its access class at run time decides its code."""
    is_movable: bool = True
    """Whether a thread may move several neighbours of it together."""
    flattens: Callable[[Placed, int], bool] = _always
    """Whether kernels over the flat index can serve it in calls of a rank."""
