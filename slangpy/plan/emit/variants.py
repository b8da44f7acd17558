"""Variants of a kernel: which a plan allows, and which the values at hand most likely need."""

from __future__ import annotations

from ...base.scalars import SIZES
from ..kinds import KINDS
from ..records import Placed, Vectorized
from ..slang_text import product
from ..trampoline.variant import GENERAL, LINEAR, UNIFORM, Patch, VariantTraits
from ..trampoline.views import has_rows

PRIVATE = 62
"""The bit of variants that add to copies of small gradients; with SUMS, of the kernel that adds the copies up."""
NEAR = 61
"""The bit of variants whose views all lie near: see VariantKey in src/native/call/plan/plan.h."""
ALIGNED = 60
"""The bit of those whose rows are aligned."""
CROSSED_PATCH = 59
"""The bit of variants over patches that a group loads views of together."""
PATCH = 55
"""The lowest of four bits: the dimensions of patches, counted from the last; 0 without patches."""
PATCH_LEAST = 1 << 18
"""Fewest invocations that go by patches because the rows of a view lie along another dimension than the last."""
PICKS_LEAST = 1 << 20
"""Fewest invocations of a function that picks elements of tensors, of which a thread handles several: threads are fewer
then, and the whole device must be busy."""
_SPREAD = 4
"""Elements of one thread where a function picks elements of many tensors."""
_MANY_TENSORS = 4
"""From how many on that is done outside of patches. Those of 16 tensors take 0.74 of the time then on an H200, those of one
as long as before."""
_MOST_CLASSED = 26
_NEAR_KINDS = {"view", "value", "literal", "pointer", "generator", "reference", "texel"}


def classed(placed: Placed) -> bool:
    """Whether the run-time access class of a leaf decides its code."""
    return KINDS[placed.binding.kind].is_classed


def decode_variant(key: int, plan: Vectorized, cpu: bool, group_size: int) -> VariantTraits:
    classes: dict[str, int] = {}
    position = 0
    for placed in sorted(plan.placed, key=lambda p: p.leaf):
        if classed(placed):
            bits = key >> (3 + 2 * position) & 3 if position < _MOST_CLASSED else GENERAL
            classes[placed.ident] = bits
            position += 1
    width = max(vector_width(plan), _SPREAD if spreads(plan) else 1) if key & 4 else 1
    if cpu and key & 1 and streams(plan, classes):
        width = 64 // SIZES[plan.resolved.return_type_name]
    patch = _decode_patch(key, plan.call_rank)
    return VariantTraits(
        bool(key & 1), bool(key & 2), classes, cpu, group_size, patch.EACH if patch else width,
        bool(key >> PRIVATE & 1), bool(key >> ALIGNED & 1), patch, bool(key >> NEAR & 1),
    )  # fmt: skip


def _decode_patch(key: int, rank: int) -> Patch | None:
    code = key >> PATCH & 15
    return Patch(rank - 1 - (code & 3), rank - 1 - (code >> 2), bool(key >> CROSSED_PATCH & 1)) if code else None


def guess_variant(
    plan: Vectorized, can_widen: bool, can_be_near: bool, can_be_aligned: bool, can_patch: bool, can_spread: bool
) -> int:
    """The variant of contiguous arguments of full size, broadcast where they have no dimensions."""
    shapes = {p.ident: p.binding.value.shape for p in plan.placed if p.binding.value is not None}
    flat = can_flatten(plan) and plan.call_rank >= 1
    key = 1 if flat else 0
    sizes = [1] * plan.call_rank
    for placed in plan.placed:
        for dim, size in zip(placed.map, shapes.get(placed.ident, ()), strict=False):
            sizes[dim] = size if sizes[dim] == 1 else sizes[dim]
    position = 0
    for placed in sorted(plan.placed, key=lambda p: p.leaf):
        if not classed(placed):
            continue
        lead = shapes.get(placed.ident, ())[: len(placed.map)]
        uniform = all(size == 1 != sizes[dim] for dim, size in zip(placed.map, lead, strict=False))
        if position < _MOST_CLASSED:
            key |= (UNIFORM if uniform else LINEAR) << (3 + 2 * position)
        if not uniform and (len(placed.map) != plan.call_rank or (placed.binding.rank > 0 and placed.map)):
            key &= ~1
        position += 1
    picks = picks_elements(plan) and product(tuple(sizes)) >= PICKS_LEAST
    if can_patch and picks and not key & 1:
        key |= _guess_patch(plan.call_rank, sizes)
    if can_be_near and (any(p.binding.rank >= 0 for p in plan.placed) or (not key & 1 and plan.call_rank)):
        key |= 1 << NEAR | (can_be_aligned and _guess_aligned(plan)) << ALIGNED
    several = (can_spread and picks) or (can_widen and (key & 1 or loads_elements(plan)))
    return key | 4 if several and not key >> PATCH & 15 else key


def _guess_patch(rank: int, sizes: list[int]) -> int:
    """Patches of the last two dimensions, for functions that pick elements of contiguous tensors."""
    sides = Patch(rank - 1, rank - 2, False).size
    used = [size / (-(-size // side) * side) for size, side in zip(reversed(sizes), sides, strict=False)]
    return 1 << 2 + PATCH if used[0] * used[1] >= 0.5 else 0


def _guess_aligned(plan: Vectorized) -> bool:
    """Whether rows are, in contiguous tensors that are aligned as a whole."""
    rows = [p for p in plan.placed if has_rows(p)]
    lengths = [p.binding.value.shape[-1] * SIZES[p.binding.stored] for p in rows if p.binding.value and p.binding.value.shape]
    return bool(rows) and all(length % 16 == 0 for length in lengths)


def may_be_near(plan: Vectorized) -> bool:
    """Whether native code sees the strides of all tensors among the arguments of a kernel."""
    return all(p.binding.kind in _NEAR_KINDS and not p.path.endswith("._data") for p in plan.placed)


def loads_elements(plan: Vectorized) -> bool:
    """Whether invocations load elements of their own, which several of a thread then wait for together."""
    return any(p.reads and p.map and classed(p) for p in plan.placed)


def _is_free(plan: Vectorized) -> bool:
    """Whether a thread may have any invocations, and keep what they give until all have run."""
    if plan.tile or plan.whole or plan.positions or plan.result_mode == "texture" or plan.call_rank == 0:
        return False
    if plan.sees_threads or plan.statics:
        return False
    movable = all(KINDS[p.binding.kind].is_movable for p in plan.placed)
    return movable and not any(p.writes and (p.binding.rank >= 0 or not p.map) for p in plan.placed)


def has_patches(plan: Vectorized) -> bool:
    """Whether groups may cover part of two dimensions of the call."""
    return _is_free(plan) and 2 <= plan.call_rank <= 4


def picks_elements(plan: Vectorized) -> bool:
    """Whether the function picks elements of tensors at once. A loop keeps a thread busy for itself: four times as many
    invocations of a thread cost up to a fifth there (benchmarks/forms.py, "product" and "escape")."""
    return not plan.may_loop and any(p.binding.rank >= 0 for p in plan.placed)


def spreads(plan: Vectorized) -> bool:
    """Whether threads may handle several invocations of a function that picks elements of many tensors."""
    return _is_free(plan) and not plan.may_loop and sum(p.binding.rank >= 0 for p in plan.placed) >= _MANY_TENSORS


def crossing_bytes(placed: Placed) -> int:
    """Memory of a group that an element takes which invocations read; 0 where it cannot lie there."""
    type_ = placed.binding.type
    if placed.binding.kind != "view" or placed.binding.rank >= 0 or placed.writes or not placed.map:
        return 0
    size = 4 if type_.scalar == "bool" else SIZES.get(type_.scalar, 0)
    return size * product(tuple(type_.shape)) if type_.kind in ("scalar", "vector") else 0


def can_flatten(plan: Vectorized) -> bool:
    """Whether a kernel over the flat index alone can serve this call when all its containers are contiguous."""
    if plan.tile or ((plan.positions or plan.result_mode == "texture") and plan.call_rank > 1):
        return False
    return all(KINDS[p.binding.kind].flattens(p, plan.call_rank) for p in plan.placed)


def streams(plan: Vectorized, classes: dict[str, int]) -> bool:
    """Whether a flat CPU kernel has one scalar result that may be written around the caches."""
    if plan.resolved.return_type_name not in SIZES or vector_width(plan) == 1:
        return False
    if any(p.writes and p is not plan.result for p in plan.placed):
        return False
    if plan.result_mode in ("tensor", "numpy", "torch"):
        return True
    result = plan.result
    if result is None or not result.writes or result.path != "_result" or result.binding.kind != "view":
        return False
    return classes.get(result.ident) == LINEAR and result.binding.stored == plan.resolved.return_type_name


def vector_width(plan: Vectorized) -> int:
    """Elements that one thread of a GPU kernel handles; 1 where the arguments do not allow more."""
    sizes: set[int] = set()
    if plan.tile or plan.whole or plan.positions:
        return 1
    for placed in plan.placed:
        binding = placed.binding
        kind = KINDS[binding.kind]
        if not kind.is_movable or binding.rank >= 0:
            return 1
        if placed.writes and not placed.map:  # one element for all invocations
            return 1
        if kind.is_classed:
            if placed.map and (binding.inner or binding.stored not in SIZES or binding.stored == "bool"):
                return 1
            sizes.add(SIZES.get(binding.stored, 0))
    if plan.result_mode == "texture":
        return 1
    if plan.result_mode in ("tensor", "numpy", "torch"):
        name = plan.resolved.return_type_name
        if name not in SIZES or name == "bool":
            return 1
        sizes.add(SIZES[name])
    return {1: 4, 2: 4, 4: 4, 8: 2}.get(max(sizes, default=0), 1)
