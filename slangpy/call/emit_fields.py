"""Fields of the call structure: the stored arguments of a kernel."""

from __future__ import annotations

from .emit_state import KernelState
from .gradients import NONE
from .ir import Placed
from .text import slang_name, stored_name


class FieldWriter(KernelState):
    """Declares what is stored for a leaf, and the names of its types."""

    def _declare_view(self, name: str, element: str, lead: int, inner: int, rank: int) -> None:
        self.fields.append(f"_spy_Storage<{stored_name(element)}> {name}")
        if lead:
            self.fields.append(f"int {name}_lead[{lead}]")
        if inner or rank >= 0:
            self.fields.append(f"int {name}_inner[{max(inner, 1)}]")
        if rank >= 0:
            self.fields.append(f"uint {name}_shape[{max(rank, 1)}]")
            self.fields.append(f"int64_t {name}_first")

    def _declare_views(self, placed: Placed) -> None:
        """The view of a container, and those of its gradients."""
        binding, ident = placed.binding, placed.ident
        grad = self.grads.get(ident, NONE)
        stored = {ident: binding.stored, **{f"{ident}_{view}": grad.view_type(view) for view in grad.views}}
        for name, element in stored.items():
            self._declare_view(name, element, len(placed.map), len(binding.inner), binding.rank)

    def _declare_reference(self, placed: Placed) -> None:
        """A ValueRef or DiffPair: its value, and memory for what is written back."""
        ident, grad = placed.ident, self.grads.get(placed.ident, NONE)
        if placed.reads:
            self.fields.append(f"_spy_T_{ident} {ident}")
        if grad.seed == "value":
            self.fields.append(f"_spy_T_{ident}.Differential {ident}_seed")
        if placed.writes or grad.target == "reference":
            kind = f"_spy_T_{ident}.Differential" if grad.target == "reference" else f"_spy_T_{ident}"
            self.fields.append(f"_spy_Storage<{kind}> {ident}_out")
        if grad.target == "pair":
            self.fields.append(f"_spy_Storage<_spy_T_{ident}.Differential> {ident}_tangent")

    def _declare_pair(self, placed: Placed) -> None:
        """A DiffPair for a DifferentialPair: both halves stored, and written back together."""
        ident = placed.ident
        self.aliases.append(f"typealias _spy_H_{ident} = {slang_name(placed.binding.stored)};")
        if placed.reads:
            self.fields += [f"_spy_H_{ident} {ident}", f"_spy_H_{ident}.Differential {ident}_seed"]
        if placed.writes and not self.options.bwds:
            self.fields.append(f"_spy_Storage<_spy_PairParts<_spy_H_{ident}>> {ident}_out")

    def _declare_generator(self, placed: Placed) -> None:
        ident, value = placed.ident, placed.binding.value
        assert value is not None
        kind = value.details["generator"]
        if kind in ("range", "grid"):
            self.fields += [f"int64_t {ident}_offset[{len(placed.map)}]", f"int64_t {ident}_stride[{len(placed.map)}]"]
        elif kind in ("wang_hash", "rand_float"):
            self.fields += [f"uint {ident}_seed", f"uint {ident}_warmup"]
            if kind == "rand_float":
                self.fields += [f"float {ident}_min", f"float {ident}_max"]
