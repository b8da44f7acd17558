"""A kernel while it is written: what is known of its call, and its lines by where they will stand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from ..derive.sums import adds_anywhere
from ..records import Derivative, Options, Placed, Vectorized
from .variant import GENERAL, UNIFORM, VariantTraits


@dataclass(frozen=True)
class Facts:
    """What decides a kernel. `result_format`: of a texture result."""

    plan: Vectorized
    grads: Mapping[str, Derivative]
    options: Options
    variant: VariantTraits
    imports: tuple[str, ...]
    capabilities: frozenset[str] = frozenset()
    result_format: str = ""

    @property
    def rank(self) -> int:
        return self.plan.call_rank

    @property
    def index(self) -> str:
        """The type of call indices."""
        return "int64_t" if self.variant.wide or self.variant.cpu else "int"

    @property
    def divides_by_products(self) -> bool:
        """Whether native code writes the divisors that split a flat index into call indices."""
        return not self.variant.cpu and self.rank > 1 and not self.plan.tile

    @property
    def thread(self) -> str:
        """The variable that counts invocations as they are dispatched."""
        return "_d" if self.plan.tile else "_i"

    @property
    def on_cuda(self) -> bool:
        return "cuda" in self.capabilities

    @property
    def on_d3d12(self) -> bool:
        return "hlsl" in self.capabilities

    @property
    def resets_statics(self) -> bool:
        """Whether each invocation must be given the variables of its thread as they began: a thread has many."""
        return self.plan.statics and self.variant.cpu

    @property
    def can_privatize(self) -> bool:
        """Whether there is a form of this kernel that adds to copies of small gradients."""
        return not (self.variant.cpu or self.on_d3d12) and self.options.bwds and adds_anywhere(self.plan, self.grads)

    @property
    def takes_tensors(self) -> bool:
        """Whether the function picks elements itself."""
        return any(p.binding.rank >= 0 for p in self.plan.placed)

    @property
    def moves_together(self) -> bool:
        """Whether the elements of a thread, if it has several, are neighbours that are loaded and stored together."""
        return self.variant.flat and not self.takes_tensors

    @property
    def checks_bounds(self) -> bool:
        return self.options.check_bounds and self.takes_tensors

    @cached_property
    def leaves(self) -> dict[str, list[Placed]]:
        """The leaves of each parameter."""
        found: dict[str, list[Placed]] = {}
        for placed in self.plan.placed:
            found.setdefault(placed.parameter, []).append(placed)
        return found


@dataclass
class Wide:
    """Lines for several elements of one thread: before and after the loop over them, and inside. Flat kernels load and
    store neighbours together; others keep what they store until all is loaded."""

    loads: list[str] = field(default_factory=list)
    stores: list[str] = field(default_factory=list)
    body: list[str] = field(default_factory=list)


@dataclass
class Kernel:
    """The lines of one kernel; only `emit` changes it, and lays it out at the end."""

    facts: Facts
    aliases: list[str] = field(default_factory=list)
    """Type aliases and structures in front of the call structure."""
    fields: list[str] = field(default_factory=list)
    """Of the call structure: the stored arguments."""
    extra: list[str] = field(default_factory=list)
    """Parameters of the entry point besides the call structure."""
    hoisted: list[str] = field(default_factory=list)
    """What is the same for all invocations of a thread or block."""
    row: list[str] = field(default_factory=list)
    """What is the same for all invocations that differ in the last call index alone."""
    body: list[str] = field(default_factory=list)
    called: int = 0
    """The line of the body after the call."""
    after: list[str] = field(default_factory=list)
    """Lines after the loop over invocations."""
    shared: list[str] = field(default_factory=list)
    """Memory of a group, declared beside the call structure."""
    fetch: list[str] = field(default_factory=list)
    """What fills it, for the element at the indices `_s0`, ..."""
    wide: Wide | None = None
    """While the body for neighbours is written."""
    bases: dict[str, str] = field(default_factory=dict)
    """The structure with the fields of a leaf, where it is not the call's: the row of a table."""
    places: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Lists of resources: the index of the loop over the places in each, and its end."""

    def base_of(self, name: str) -> str:
        return self.bases.get(name, "_call")

    def access_of(self, placed: Placed) -> int:
        """How a leaf is reached, see shape."""
        if placed.ident in self.bases:
            return GENERAL
        return self.facts.variant.classes.get(placed.ident, UNIFORM)
