"""What a variant of a kernel is: the bits of its key, as the writers of kernels read them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

GENERAL, LINEAR, UNIFORM, PERIODIC = 0, 1, 2, 3
"""How a leaf is reached at run time: by its strides, at the flat index, always in one place, by a remainder."""
CROSSED = 3
"""In kernels over patches: its neighbours lie along the other dimension of the patch, so a group loads it together."""
MAX_PERIOD = 1024
"""As in src/native/call/plan/plan.h."""


@dataclass(frozen=True)
class Patch:
    """Part of two dimensions of the call that one group covers: neighbouring threads differ in `x`, their warps in `y`.

    A thread has `EACH` elements: side by side in `x` of whole warps, or below each other in `y` where views are crossed.
    """

    x: int
    y: int
    crossed: bool

    EACH: ClassVar[int] = 4
    LANES: ClassVar[int] = 32
    WARPS: ClassVar[int] = 8

    @property
    def size(self) -> tuple[int, int]:
        """Invocations along x and y; as `patch_size` in src/native/call/stages/select/patch.cpp."""
        return (self.LANES, self.WARPS * self.EACH) if self.crossed else (self.LANES * self.EACH, self.WARPS)


@dataclass(frozen=True)
class VariantTraits:
    """What a variant key says: see VariantKey in src/native/call/plan/plan.h."""

    flat: bool
    wide: bool
    classes: dict[str, int]
    cpu: bool
    group_size: int = 256
    width: int = 1  # consecutive elements of one thread, moved by one wide access
    privatized: bool = False  # adds to copies of small gradients
    aligned: bool = False  # rows of whole tensors begin at multiples of 16 bytes
    patch: Patch | None = None  # groups cover part of two dimensions of the call
    near: bool = False  # offsets fit 32 bits, and whole tensors have a stride of 1 in their last dimension
