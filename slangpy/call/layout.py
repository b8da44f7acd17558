"""Where each stored argument lies in the bytes of a kernel's parameters, as native plans want it."""

from __future__ import annotations

import re
from typing import Any

from ..marshall.base import INTEGERS, NARROW_SIZES, SIZES, structured_element
from .gradients import NONE
from .ir import Derivative, Placed, Vectorized
from .struct_arrays import holder
from .tables import select_specs, table_specs
from .variants import can_flatten, classed


class Fields:
    """Offsets of the fields of the call structure inside the entry point's parameters."""

    def __init__(self, layout: Any) -> None:
        entry = layout.entry_point
        call = next(field for field in entry.fields if field["name"] == "_call")
        base = call["offset"]
        self._fields = {f["name"]: (base + f["offset"], f["type"]) for f in call["type"].fields}
        self._slots = {f["name"]: layout.entry_point_slot + f["slot"] for f in entry.fields if f["name"] != "_call"}
        self._types = {f["name"]: f["type"] for f in entry.fields}
        self.size: int = entry.size

    def offset(self, name: str) -> int:
        return self._fields[name][0] if name in self._fields else -1

    def layout(self, name: str) -> Any:
        return self._fields[name][1]

    def slot(self, name: str) -> int:
        return self._slots[name]

    def slot_of(self, placed: Placed) -> int:
        """The slot of a resource, or of an element of an array of them."""
        if not placed.held:
            return self.slot(placed.ident) + placed.element
        name = holder(placed.parameter)
        slot, layout = self._slots[name], self._types[name]
        for step in re.findall(r"\w+", placed.path[len(placed.parameter) :]):
            if step.isdigit():
                layout = layout.element
                slot += int(step) * layout.slot_count
            else:
                field = next(f for f in layout.fields if f["name"] == step)
                slot, layout = slot + field["slot"], field["type"]
        return slot

    def has_slot(self, name: str) -> bool:
        return name in self._slots

    def view(self, name: str) -> tuple[int, ...] | None:
        if name not in self._fields:
            return None
        return (
            self.offset(name),
            self.offset(name + "_lead"),
            self.offset(name + "_inner"),
            self.offset(name + "_shape"),
            self.offset(name + "_first"),
        )

    def value(self, name: str) -> tuple[int, Any] | None:
        return (self.offset(name), self.layout(name)) if name in self._fields else None


def leaf_spec(
    placed: Placed, grad: Derivative, fields: Fields, find_layout: Any, is_classed: bool, four_byte_bool: bool
) -> dict[str, Any]:
    """The native plan of one leaf."""
    binding, ident = placed.binding, placed.ident
    kind = binding.kind
    spec: dict[str, Any] = {
        "kind": kind, "name": placed.path, "type": binding.type.full_name, "map": placed.map, "inner": binding.inner, "reads": placed.reads,
        "writes": placed.writes, "classed": is_classed,
    }  # fmt: skip
    if kind == "table" and binding.stored in SIZES:
        spec["scalar"] = binding.stored
        spec["element_size"] = 4 if binding.stored == "bool" and four_byte_bool else SIZES[binding.stored]
    elif kind in ("view", "packed"):
        spec["views"] = [fields.view(ident), fields.view(ident + "_gi"), fields.view(ident + "_go")]
        if binding.stored in SIZES:
            spec["scalar"] = binding.stored
            spec["element_size"] = 4 if binding.stored == "bool" and four_byte_bool else SIZES[binding.stored]
        elif binding.stored in NARROW_SIZES:
            spec["element_size"] = NARROW_SIZES[binding.stored]
        elif kind == "packed":
            spec["value"] = (-1, find_layout(binding.type.program.require_type_by_name(binding.stored)))
    elif kind == "value":
        spec["value"] = fields.value(ident)
    elif kind == "reference":
        spec["value"] = fields.value(ident) if placed.reads else None
        spec["seed"] = fields.value(ident + "_seed")
        if fields.offset(ident + "_tangent") >= 0:
            spec["tangent"] = (fields.offset(ident + "_tangent"), find_layout(binding.type.derivative))
        if fields.offset(ident + "_out") >= 0:
            is_grad = grad.target == "reference"
            type_ = binding.type.derivative if is_grad else binding.type
            if binding.pair:
                type_ = binding.type.program.require_type_by_name(f"_PairParts<{binding.stored}>")
                spec["out_is_pair"] = True
            spec["out"] = (fields.offset(ident + "_out"), find_layout(type_))
            spec["out_is_grad"] = is_grad
    elif kind == "generator":
        spec["offset_offset"] = fields.offset(ident + "_offset")
        spec["stride_offset"] = fields.offset(ident + "_stride")
        spec["seed_offset"] = fields.offset(ident + "_seed")
        spec["min_offset"] = fields.offset(ident + "_min")
        spec["max_offset"] = fields.offset(ident + "_max")
        spec["map"] = placed.map
        if binding.stored in INTEGERS:
            spec["scalar"] = binding.stored
    elif kind == "pointer":
        spec["value"] = fields.value(ident)
    elif kind == "custom":
        spec["value"] = fields.value(ident)
        spec["stride_offset"] = fields.offset(ident + "_stride")
    elif kind == "texel":
        spec["kind"] = "resource"
        spec["slot"] = fields.slot(ident)
        if fields.has_slot(ident + "_in"):
            spec["read_slot"] = fields.slot(ident + "_in")
        spec["views"] = [(-1, fields.offset(ident + "_lead"), -1, -1, -1), None, None]
    elif kind == "resource":
        spec["slot"] = fields.slot_of(placed)
        if binding.value is not None and binding.value.kind == "buffer" and structured_element(binding.type_name):
            spec["element_size"] = find_layout(binding.type.element_type).stride
        if binding.stored in SIZES:
            spec["scalar"] = binding.stored
            spec["element_size"] = 4 if binding.stored == "bool" and four_byte_bool else SIZES[binding.stored]
        elif binding.value is not None and binding.value.kind in ("list", "dict"):
            spec["value"] = (-1, find_layout(binding.type.program.require_type_by_name(binding.stored)))
    elif kind == "literal":
        spec["kind"] = "skip"
    if grad.sums is not None:
        spec["sum_ratio"], spec["sum_item"] = grad.sums.ratio, grad.sums.stride
    return spec


def plan_spec(
    plan: Vectorized, grads: dict[str, Derivative], fields: Fields, find_layout: Any, four_byte_bool: bool
) -> dict[str, Any]:
    """Everything of the native plan but its kernels: plain data (and layouts)."""
    leaves: dict[int, dict[str, Any]] = {}
    for placed in plan.placed:
        if placed.leaf < 0:
            continue
        if placed.binding.kind in ("select", "pick"):
            leaves.update(
                select_specs(placed, lambda part: leaf_spec(part, NONE, fields, find_layout, False, four_byte_bool))
            )
            continue
        if placed.binding.kind == "table":
            entry = leaf_spec(placed, NONE, fields, find_layout, False, four_byte_bool)
            leaves.update(table_specs(placed, fields, entry))
            continue
        leaves[placed.leaf] = leaf_spec(
            placed, grads.get(placed.ident, NONE), fields, find_layout, classed(placed), four_byte_bool
        )
    count = max(leaves, default=-1) + 1
    skip = {"kind": "skip", "name": ""}
    result: dict[str, Any] = {"mode": plan.result_mode}
    if plan.result_mode == "custom" and plan.result is not None:
        result["leaf"] = leaf_spec(plan.result, NONE, fields, find_layout, False, four_byte_bool)
    if plan.result_mode in ("value", "tensor", "numpy", "torch"):
        result["element"] = find_layout(plan.resolved.return_type)
        leaf: dict[str, Any] = {"kind": "view", "name": "_result", "map": tuple(range(plan.call_rank))}
        if plan.result_mode == "value":
            leaf["kind"] = "reference"
            leaf["out"] = (fields.offset("_out"), result["element"])
        else:
            leaf["views"] = [fields.view("_out"), None, None]
            if plan.result_mode == "torch":
                leaf["scalar"] = plan.resolved.return_type.scalar
                result["element_shape"] = plan.resolved.return_type.shape
        result["leaf"] = leaf
        if fields.offset("_out_tangent") >= 0:
            result["tangent"] = _tangent_result(result, plan, fields, find_layout)
    elif plan.result_mode == "texture":
        result["leaf"] = {"kind": "resource", "name": "_result", "slot": fields.slot("_out")}
    return {
        "leaves": [leaves.get(i, skip) for i in range(count)],
        "result": result,
        "call_rank": plan.call_rank,
        "argument_size": fields.size,
        "total_offset": fields.offset("_total"),
        "block_offset": fields.offset("_block"),
        "flags_offset": fields.offset("_flags"),
        "period_offset": fields.offset("_period"),
        "redirects_offset": fields.offset("_redirects"),
        "bounds_offset": fields.offset("_bounds"),
        "shape_offset": fields.offset("_shape"),
        "size_dependent": plan.size_dependent,
        "shape_dependent": plan.shape_dependent,
        "can_flatten": can_flatten(plan),
        "tile": plan.tile,
    }


def _tangent_result(primal: dict[str, Any], plan: Vectorized, fields: Fields, find_layout: Any) -> dict[str, Any]:
    """The container for the tangent of a new result: like that of the primal."""
    derivative = plan.resolved.return_type.derivative
    element = find_layout(derivative)
    leaf = {**primal["leaf"], "name": "_result.grad"}
    if primal["mode"] == "value":
        leaf["out"] = (fields.offset("_out_tangent"), element)
    else:
        leaf["views"] = [fields.view("_out_tangent"), None, None]
    return {**primal, "element": element, "leaf": leaf}
