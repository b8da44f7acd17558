"""What a variant of a kernel is: the bits of its key, as the writers of kernels read them."""

from __future__ import annotations

from dataclasses import dataclass

GENERAL, LINEAR, UNIFORM, PERIODIC = 0, 1, 2, 3
"""How a leaf is reached at run time: by its strides, at the flat index, always in one place, by a remainder."""
MAX_PERIOD = 1024
"""As in src/native/call/plan.h."""


@dataclass(frozen=True)
class VariantTraits:
    """What a variant key says: see VariantKey in src/native/call/plan.h."""

    flat: bool
    wide: bool
    classes: dict[str, int]
    cpu: bool
    group_size: int = 256
    width: int = 1  # consecutive elements of one thread, moved by one wide access
    privatized: bool = False  # adds to copies of small gradients
    aligned: bool = False  # rows of whole tensors begin at multiples of 16 bytes
    near: bool = False  # offsets fit 32 bits, and whole tensors have a stride of 1 in their last dimension
