"""Native plans: what native code is told of each leaf and of the result, without kernels."""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from dataclasses import fields, replace
from typing import Any

import numpy as np

from .. import _native
from ..base.scalars import SCALARS, SIZES
from ..compiler.modules.facts import reached_names, reached_words
from ..compiler.text.tensors_used import Place, address_places, is_tensor, named_parts
from ..reflection.dtypes import numpy_scalar, structured_parts
from .bind.base import enum_storage, fixed_size
from .derive.gradients import NONE, carriers, lost_gradients
from .emit import variants
from .emit.variants import can_flatten, crossing_bytes, picks_elements
from .kernels import can_be_aligned, can_be_near, can_patch, can_privatize, can_space, can_spread, can_widen
from .kinds import KINDS
from .kinds.kind import Specs
from .planner import Planned, Request, warnings_of
from .records import Derivative, Placed, Vectorized
from .slots import Fields, Slots
from .specification import (
    CallOffsets,
    Element,
    LeafSpec,
    LeastInvocations,
    Notes,
    ReferenceSpec,
    ResourceSpec,
    ResultSpec,
    Specification,
    Sums,
    ViewSpec,
)


def _leaf_spec(slots: Slots, placed: Placed, grad: Derivative = NONE, is_classed: bool = False) -> LeafSpec:
    """What native code is told of one leaf."""
    binding = placed.binding
    stored = KINDS[binding.kind].spec(slots, placed, grad)
    if grad.sums is not None and isinstance(stored, (ViewSpec, ReferenceSpec)):
        stored = replace(stored, sums=Sums(grad.sums.ratio, grad.sums.stride))
    return LeafSpec(
        stored, placed.path, binding.type.full_name, placed.map, tuple(binding.inner), placed.reads, placed.writes, is_classed,
        crosses=crossing_bytes(placed),
    )


def _leaf_specs(slots: Slots, placed: Placed, grad: Derivative) -> Specs:
    """What native code is told of a leaf; of lists also of their entries."""
    kind = KINDS[placed.binding.kind]
    if kind.specs is not None:
        return kind.specs(slots, placed, lambda part: _leaf_spec(slots, part))
    return {placed.leaf: _leaf_spec(slots, placed, grad, kind.is_classed)}


def specification(request: Request, planned: Planned, layout: Any, find_layout: Any) -> Specification:
    """The frozen plan of a call. `layout`: of its kernels, which says where arguments lie; `find_layout`: of a type."""
    plan = planned.vectorized
    four_byte_bool = request.module.device.compile_target.format in ("spirv", "hlsl")
    slots = Slots(Fields(layout), find_layout, four_byte_bool)
    leaves: Specs = {}
    for placed in plan.placed:
        if placed.leaf >= 0:
            leaves.update(_leaf_specs(slots, placed, planned.derivatives.get(placed.ident, NONE)))
    result = _result_spec(plan, slots, planned.result_format)
    _mark_whole(plan, leaves)
    if request.call_mode == "prim":
        result = _mark_carriers(plan, leaves, result)
        for placed, lost in lost_gradients(plan, request.module):
            leaves[placed.leaf] = replace(leaves[placed.leaf], lost=lost)
    return Specification(
        leaves=tuple(leaves.get(i, LeafSpec()) for i in range(max(leaves, default=-1) + 1)),
        result=replace(result, keeps=planned.keeps),
        call_rank=plan.call_rank,
        argument_size=slots.fields.size,
        offsets=CallOffsets(**{field.name: slots.fields.offset(f"_{field.name}") for field in fields(CallOffsets)}),
        size_dependent=plan.size_dependent,
        shape_dependent=plan.shape_dependent,
        can_flatten=can_flatten(plan),
        tile=plan.tile,
        label=request.label,
        can_widen=can_widen(request, planned),
        can_space=can_space(request, planned),
        can_be_aligned=can_be_aligned(request, planned),
        can_be_near=can_be_near(request, planned) and not _has_global_tensors(layout),
        can_privatize=can_privatize(request, planned),
        least=LeastInvocations(
            variants.PATCH_LEAST if can_patch(request, planned) else -1,
            variants.PICKS_LEAST if picks_elements(plan) else -1,
        ),
        can_spread=can_spread(request, planned),
        has_loops=request.on_cpu and plan.may_loop,
        notes=_notes(request, planned, layout),
        is_forward_mode=request.options.fwds,
    )


_VALUES = ("scalar", "vector", "matrix", "array", "enum", "struct")


def _notes(request: Request, planned: Planned, layout: Any) -> Notes:
    declared = [(field["name"], field["type"]) for field in (layout.globals.fields if layout.globals else ())]
    if not declared:
        return Notes(warnings_of(request, planned))
    function = planned.resolved.call_name.rpartition(".")[2].partition("<")[0]
    words, names = reached_words(request.module, function), reached_names(request.module, function)
    places = address_places(declared, request.module.device.compile_target.format)
    groups = {name for name, type_ in declared if _told_by_fields(_contents(type_))}

    def is_named(place: Place) -> bool:
        first, *members = [part for part in named_parts(place) if part not in groups]
        return first in names and words.issuperset(members)

    tensors = [place for place, _ in places if is_named(place)]
    return Notes(warnings_of(request, planned), tuple(_read_globals(declared, names)), tuple(tensors))


def _read_globals(
    declared: list[tuple[str, Any]], names: Set[str]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """What `set` can give values to, as far as the function names it."""
    for name, type_ in declared:
        inner = _contents(type_)
        if is_tensor(inner):
            continue
        fields_ = tuple(f["name"] for f in inner.fields if _has_values(f["type"]))
        named = set(fields_) & names if _told_by_fields(inner) else name in names
        if (_has_values(inner) or fields_) and named:
            yield name, fields_


def _contents(type_: Any) -> Any:
    return type_.element if type_.kind.name in ("parameter_block", "constant_buffer") else type_


def _told_by_fields(inner: Any) -> bool:
    return inner.full_name.startswith("SLANG_ParameterGroup")  # cbuffer old { float c; }


def _has_values(type_: Any) -> bool:
    """Whether a type of a global holds anything but textures, buffers, tensors and the like."""
    if type_.kind.name == "struct":
        return not is_tensor(type_) and any(_has_values(field["type"]) for field in type_.fields)
    return type_.kind.name in _VALUES and (type_.kind.name != "array" or _has_values(type_.element))


_PLAIN = r"((vector|matrix)<)?(u?int(8|16|32|64)?|float(16|32|64)?|half|double|bool)(_t)?[\d, x]*>?"
_HOLDS_NO_TENSOR = re.compile(
    rf"(RW)?((Structured)?Buffer|Texture\w*)<{_PLAIN}>|(RW)?ByteAddressBuffer|Sampler(Comparison)?State|{_PLAIN}(\[\d*\])*"
)


def _has_global_tensors(layout: Any) -> bool:
    """Whether kernels may reach tensors in globals, whose strides are not looked at when a variant is chosen."""
    found = layout.globals.fields if layout.globals else ()
    return any(not _HOLDS_NO_TENSOR.fullmatch(field["type"].full_name) for field in found)


def _mark_whole(plan: Vectorized, leaves: Specs) -> None:
    """Tensors that parameters take whole, and which of them as views of torch's kind."""
    for placed in plan.placed:
        if placed.leaf >= 0 and placed.binding.rank >= 0:
            is_view = bool(placed.binding.view)
            leaves[placed.leaf] = replace(leaves[placed.leaf], whole=True, is_view=is_view)


def _mark_carriers(plan: Vectorized, leaves: Specs, result: ResultSpec) -> ResultSpec:
    """What torch's autograd follows gradients through."""
    for leaf in carriers(plan):
        leaves[leaf] = replace(leaves[leaf], carries=True)
    type_ = plan.resolved.return_type
    return replace(result, carries=type_ is not None and bool(type_.differentiable))


def _result_spec(plan: Vectorized, slots: Slots, form: str) -> ResultSpec:
    """What the call returns."""
    fields, mode = slots.fields, plan.result_mode
    if mode == "custom" and plan.result is not None:
        return ResultSpec(mode, _leaf_spec(slots, plan.result))
    if mode == "texture":
        return ResultSpec(mode, LeafSpec(ResourceSpec(fields.slot("_out")), "_result"), format=form)
    if mode not in ("value", "tensor", "numpy", "torch"):
        return ResultSpec(mode)
    type_ = plan.resolved.return_type
    result = _container(ResultSpec(mode), plan, slots, type_, "_out", "_result")
    if fields.offset("_out_tangent") >= 0:
        tangent = _container(ResultSpec(mode), plan, slots, type_.derivative, "_out_tangent", "_result.grad")
        result = replace(result, tangent=tangent)
    return result


def _container(result: ResultSpec, plan: Vectorized, slots: Slots, type_: Any, field: str, name: str) -> ResultSpec:
    """What is written into a new container (or number) of a type; the tangent of a result is one like its primal."""
    element, spread = slots.find_layout(type_), tuple(range(plan.call_rank))
    if result.mode == "value":
        stored = ReferenceSpec(out=(slots.fields.offset(field), element))
        return replace(result, element=element, leaf=LeafSpec(stored, name, map=spread))
    primal = plan.resolved.return_type
    scalar = primal.scalar if result.mode == "torch" else ""
    view = ViewSpec((slots.fields.view(field), None, None), Element(scalar))
    result = replace(result, element=element, leaf=LeafSpec(view, name, map=spread))
    if result.mode == "torch":
        return replace(result, element_shape=tuple(primal.shape))
    if result.mode == "numpy":
        dtype, shape = numpy_result(type_, element)
        return replace(result, dtype=dtype, element_shape=shape)
    return result


def numpy_result(type_: Any, layout: Any) -> tuple[Any, tuple[int, ...]]:
    """dtype and trailing shape of an ndarray result."""
    if type_.scalar:
        return numpy_scalar(type_.scalar), tuple(type_.shape)
    if fixed_size(type_.full_name) in SIZES:
        return np.dtype(SCALARS[fixed_size(type_.full_name)].numpy), ()
    if type_.kind in ("pointer", "enum"):
        stored = "uint64_t" if type_.kind == "pointer" else enum_storage(type_)
        return np.dtype(SCALARS[stored].numpy), ()
    format = _native._element_format(layout)  # arrays of enums and pointers
    return structured_parts(layout) if format is None else (numpy_scalar(format[0]), tuple(format[2]))
