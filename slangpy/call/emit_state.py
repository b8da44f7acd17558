"""What all writers of a kernel share: the plan, the variant, and the lines written so far."""

from __future__ import annotations

from .groups import TileLoops
from .ir import Derivative, Options, Placed, Vectorized
from .variants import GENERAL, UNIFORM, Shape


class KernelState:
    """The base of the writers. A kernel is made of the lists of lines here, which `emit` puts together."""

    def __init__(
        self, plan: Vectorized, grads: dict[str, Derivative], options: Options, shape: Shape, imports: list[str],
        capabilities: frozenset[str], result_format: str,
    ) -> None:  # fmt: skip
        self.capabilities, self.result_format = capabilities, result_format
        self.plan, self.grads, self.options, self.shape, self.imports = plan, grads, options, shape, imports
        self.rank = plan.call_rank
        self.fields: list[str] = []
        self.aliases: list[str] = []
        self.extra: list[str] = []  # entry point parameters besides the call structure
        self.hoisted: list[str] = []
        self.row: list[str] = []
        self.body: list[str] = []
        self.after: list[str] = []
        self.places: dict[
            str, tuple[str, int]
        ] = {}  # lists of resources: the loop over the places in each, and its end
        self.wide_loads: list[str] = []
        self.wide_stores: list[str] = []
        self.wide_body: list[str] = []
        self.in_wide = False
        self.index = "int64_t" if shape.wide or shape.cpu else "int"
        self.tiles = TileLoops(plan.tile, self.index) if plan.tile else None
        self.thread = "_d" if plan.tile else "_i"  # counts invocations as they are dispatched
        self.bases: dict[str, str] = {}  # the structure with the fields of a leaf, where it is not the call's
        self.leaves: dict[str, list[Placed]] = {}
        for placed in plan.placed:
            self.leaves.setdefault(placed.parameter, []).append(placed)

    def _checks_bounds(self) -> bool:
        return self.options.check_bounds and any(p.binding.rank >= 0 for p in self.plan.placed)

    def _base(self, name: str) -> str:
        return self.bases.get(name, "_call")

    def _class(self, placed: Placed) -> int:
        if placed.ident in self.bases:
            return GENERAL
        return self.shape.classes.get(placed.ident, UNIFORM)
