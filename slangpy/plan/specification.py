"""What native code is told of a plan, without its kernels: plain records that disk keeps.

Each has a counterpart of nearly the same name in src/native/call/plan/plan.h, which `read_plan.cpp` fills from it: the names
of fields are the contract. Offsets count bytes from the start of a kernel's arguments; -1 is what a kernel does not store.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar

Slot = tuple[int, Any]
"""A value: its offset, and its native layout."""
View = tuple[int, int, int, int, int]
"""Offsets of a view: data, lead strides, inner strides, inner shape, first element."""
NO_VIEW: View = (-1, -1, -1, -1, -1)


@dataclass(frozen=True)
class Element:
    """What memory holds of one element: a scalar of `size` bytes, or a type with a layout."""

    scalar: str = ""
    size: int = 0
    layout: Any = None


@dataclass(frozen=True)
class Sums:
    """A gradient that kernels add to beside its memory: bytes of sums for each byte, and bytes of one element."""

    ratio: int = 0
    item: int = 0


@dataclass(frozen=True)
class SkipSpec:
    """Nothing is stored."""

    word: ClassVar[str] = "skip"


@dataclass(frozen=True)
class ValueSpec:
    word: ClassVar[str] = "value"
    value: Slot | None


@dataclass(frozen=True)
class ViewSpec:
    """Memory that is reached through an address and strides, with its gradients."""

    word: ClassVar[str] = "view"
    views: tuple[View | None, View | None, View | None]
    """Of the container, of the gradient that is read, and of the one that is added to."""
    element: Element = Element()
    vectors: int = 0
    packs: int = 0
    sums: Sums = Sums()
    table: int = -1
    """Entry of a list: the leaf of the list."""


@dataclass(frozen=True)
class PackedSpec:
    word: ClassVar[str] = "packed"
    view: View
    element: Element
    vectors: int = 0


@dataclass(frozen=True)
class GeneratorSpec:
    word: ClassVar[str] = "generator"
    offset: int
    stride: int
    seed: int
    min: int
    max: int
    scalar: str = ""


@dataclass(frozen=True)
class PointerSpec:
    word: ClassVar[str] = "pointer"
    value: Slot | None
    table: int = -1


@dataclass(frozen=True)
class ResourceSpec:
    word: ClassVar[str] = "resource"
    slot: int
    read_slot: int = -1
    """Textures that are read through a second parameter."""
    steps: int = -1
    element: Element = Element()


@dataclass(frozen=True)
class ReferenceSpec:
    word: ClassVar[str] = "reference"
    value: Slot | None = None
    seed: Slot | None = None
    out: Slot | None = None
    tangent: Slot | None = None
    out_is_grad: bool = False
    out_is_pair: bool = False
    sums: Sums = Sums()


@dataclass(frozen=True)
class CustomSpec:
    word: ClassVar[str] = "custom"
    value: Slot | None
    steps: int


@dataclass(frozen=True)
class TableSpec:
    """A list with a row for each entry."""

    word: ClassVar[str] = "table"
    view: View
    shape: tuple[int, ...]
    bytes: int


KindSpec = (
    SkipSpec | ValueSpec | ViewSpec | PackedSpec | GeneratorSpec | PointerSpec | ResourceSpec | ReferenceSpec | CustomSpec
    | TableSpec
)  # fmt: skip


@dataclass(frozen=True)
class LeafSpec:
    """One leaf: what all have, and what its kind stores."""

    kind: KindSpec = SkipSpec()
    name: str = ""
    type: str = ""
    map: tuple[int, ...] = ()
    inner: tuple[int, ...] = ()
    reads: bool = True
    writes: bool = False
    classed: bool = False
    """Its access class takes part in the variant."""
    carries: bool = False
    """torch: autograd may send a gradient through it."""
    lost: str = ""
    """torch: the struct that it is in, where that alone has no derivative."""
    whole: bool = False
    """The function picks the elements of the tensor itself."""
    is_view: bool = False
    """The function takes it as a TensorView or DiffTensorView."""
    crosses: int = 0
    """Bytes that an element takes in memory of a group; 0 where it cannot lie there."""


@dataclass(frozen=True)
class ResultSpec:
    """What a call returns, and how that is written."""

    mode: str
    leaf: LeafSpec | None = None
    element: Any = None
    """Native layout of one element."""
    dtype: Any = None
    element_shape: tuple[int, ...] = ()
    carries: bool = False
    tangent: ResultSpec | None = None
    format: str = ""
    """Of texels."""
    keeps: tuple[int, ...] = ()
    """-1 where the result holds addresses, and leaves that some are written to: they keep alive what those point to."""


@dataclass(frozen=True)
class CallOffsets:
    """The fields that all kernels have."""

    total: int = -1
    block: int = -1
    flags: int = -1
    shape: int = -1
    divisor: int = -1
    period: int = -1
    sum_table: int = -1
    bounds: int = -1


@dataclass(frozen=True)
class LeastInvocations:
    """Fewest invocations of calls whose threads handle several; -1: none do."""

    patches: int = -1
    """By patches, where views lie along different dimensions."""
    picks: int = -1
    """Where the function picks elements."""


@dataclass(frozen=True)
class Notes:
    """What is told at each process's first call with a plan."""

    warnings: tuple[str, ...] = ()
    globals: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """The globals with values that the function reads, and the fields of those that are structs."""
    tensors: tuple[tuple[str | int, ...], ...] = ()
    """Where cursors find the addresses of the tensors that the function names in globals."""


@dataclass(frozen=True)
class Specification:
    """A frozen plan."""

    leaves: tuple[LeafSpec, ...]
    result: ResultSpec
    call_rank: int
    argument_size: int
    offsets: CallOffsets
    size_dependent: bool
    shape_dependent: bool
    can_flatten: bool
    tile: tuple[int, ...]
    label: str = ""
    can_widen: bool = False
    can_space: bool = False
    can_be_near: bool = False
    can_be_aligned: bool = False
    can_privatize: bool = False
    least: LeastInvocations = LeastInvocations()
    can_spread: bool = False
    has_loops: bool = False
    """On the CPU: invocations may take long, so that few of them are enough for a block."""
    notes: Notes = Notes()
    is_forward_mode: bool = False


@dataclass(frozen=True)
class NativePlan:
    """A plan as native code takes it: with what is of this process."""

    specification: Specification
    device: Any
    view: Any
    """What native code asks of the plan later."""
    is_unchecked: bool


RECORDS = {
    cls.__name__: cls
    for cls in (
        Element, Sums, SkipSpec, ValueSpec, ViewSpec, PackedSpec, GeneratorSpec, PointerSpec, ResourceSpec, ReferenceSpec,
        CustomSpec, TableSpec, LeafSpec, ResultSpec, CallOffsets, LeastInvocations, Notes, Specification,
    )
}  # fmt: skip
"""The records that disk keeps, by name."""
_FIELDS = {cls: tuple(field.name for field in fields(cls)) for cls in RECORDS.values()}


def values_of(record: Any) -> tuple[Any, ...]:
    """The values of a record's fields, in their order."""
    return tuple([getattr(record, name) for name in _FIELDS[type(record)]])
