"""Where each stored argument lies in the bytes of a kernel's parameters, as native plans want it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from ..marshall.base import INTEGERS, NARROW_SIZES, SIZES, structured_element
from .gradients import NONE
from .ir import Binding, Derivative, Placed, Vectorized
from .struct_arrays import holder
from .tables import select_specs, table_specs
from .variants import can_flatten, classed

_GENERATOR_FIELDS = ("offset", "stride", "seed", "min", "max")
_CALL_FIELDS = ("total", "block", "flags", "period", "redirects", "bounds", "shape")


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


@dataclass(frozen=True)
class _LeafSpecs:
    """Makes the native plans of leaves."""

    fields: Fields
    find_layout: Any
    four_byte_bool: bool

    def of(self, placed: Placed, grad: Derivative = NONE, is_classed: bool = False) -> dict[str, Any]:
        binding, ident, fields = placed.binding, placed.ident, self.fields
        kind = binding.kind
        spec: dict[str, Any] = {
            "kind": kind, "name": placed.path, "type": binding.type.full_name, "map": placed.map,
            "inner": binding.inner, "reads": placed.reads, "writes": placed.writes, "classed": is_classed,
        }  # fmt: skip
        if kind == "table":
            spec.update(self._stored(binding.stored))
        elif kind in ("view", "packed"):
            spec["views"] = [fields.view(ident), fields.view(ident + "_gi"), fields.view(ident + "_go")]
            spec.update(self._stored(binding.stored))
            spec["vectors"] = binding.vectors
            if binding.stored in NARROW_SIZES and binding.stored not in SIZES:
                spec["element_size"] = NARROW_SIZES[binding.stored]
            elif kind == "packed" and binding.stored not in SIZES:
                spec["value"] = self._packed(binding)
        elif kind in ("value", "pointer"):
            spec["value"] = fields.value(ident)
        elif kind == "reference":
            spec.update(self._reference(placed, grad))
        elif kind == "generator":
            spec.update({f"{name}_offset": fields.offset(f"{ident}_{name}") for name in _GENERATOR_FIELDS})
            if binding.stored in INTEGERS:
                spec["scalar"] = binding.stored
        elif kind == "custom":
            spec["value"] = fields.value(ident)
            spec["stride_offset"] = fields.offset(ident + "_stride")
        elif kind == "texel":
            spec.update(self._texel(ident))
        elif kind == "resource":
            spec.update(self._resource(placed))
        elif kind == "literal":
            spec["kind"] = "skip"
        if grad.sums is not None:
            spec["sum_ratio"], spec["sum_item"] = grad.sums.ratio, grad.sums.stride
        return spec

    def _stored(self, stored: str) -> dict[str, Any]:
        """The scalar that memory holds; nothing for other elements."""
        if stored not in SIZES:
            return {}
        return {"scalar": stored, "element_size": 4 if stored == "bool" and self.four_byte_bool else SIZES[stored]}

    def _reference(self, placed: Placed, grad: Derivative) -> dict[str, Any]:
        binding, ident, fields = placed.binding, placed.ident, self.fields
        spec: dict[str, Any] = {
            "value": fields.value(ident) if placed.reads else None,
            "seed": fields.value(ident + "_seed"),
        }
        if fields.offset(ident + "_tangent") >= 0:
            spec["tangent"] = (fields.offset(ident + "_tangent"), self.find_layout(binding.type.derivative))
        if fields.offset(ident + "_out") >= 0:
            is_grad = grad.target == "reference"
            type_ = binding.type.derivative if is_grad else binding.type
            if binding.pair:
                type_ = binding.type.program.require_type_by_name(f"_spy_PairParts<{binding.stored}>")
                spec["out_is_pair"] = True
            spec["out"] = (fields.offset(ident + "_out"), self.find_layout(type_))
            spec["out_is_grad"] = is_grad
        return spec

    def _packed(self, binding: Binding) -> tuple[int, Any]:
        """The layout of what a list is written as; it has no field of its own."""
        return -1, self.find_layout(binding.type.program.require_type_by_name(binding.stored))

    def _resource(self, placed: Placed) -> dict[str, Any]:
        binding = placed.binding
        kind = binding.value.kind if binding.value is not None else ""
        spec: dict[str, Any] = {"slot": self.fields.slot_of(placed)}
        if kind == "buffer" and structured_element(binding.type_name):
            spec["element_size"] = self.find_layout(binding.type.element_type).stride
        if binding.stored in SIZES:
            spec.update(self._stored(binding.stored))
        elif kind in ("list", "dict"):
            spec["value"] = self._packed(binding)
        return spec

    def _texel(self, ident: str) -> dict[str, Any]:
        spec: dict[str, Any] = {"kind": "resource", "slot": self.fields.slot(ident)}
        if self.fields.has_slot(ident + "_in"):
            spec["read_slot"] = self.fields.slot(ident + "_in")
        spec["views"] = [(-1, self.fields.offset(ident + "_lead"), -1, -1, -1), None, None]
        return spec


def plan_spec(
    plan: Vectorized, grads: dict[str, Derivative], fields: Fields, find_layout: Any, four_byte_bool: bool
) -> dict[str, Any]:
    """Everything of the native plan but its kernels: plain data (and layouts)."""
    specs = _LeafSpecs(fields, find_layout, four_byte_bool)
    leaves: dict[int, dict[str, Any]] = {}
    for placed in plan.placed:
        if placed.leaf < 0:
            continue
        if placed.binding.kind in ("select", "pick"):
            leaves.update(select_specs(placed, specs.of))
        elif placed.binding.kind == "table":
            leaves.update(table_specs(placed, fields, specs.of(placed)))
        else:
            leaves[placed.leaf] = specs.of(placed, grads.get(placed.ident, NONE), classed(placed))
    count = max(leaves, default=-1) + 1
    skip = {"kind": "skip", "name": ""}
    return {
        "leaves": [leaves.get(i, skip) for i in range(count)],
        "result": _result_spec(plan, specs),
        "call_rank": plan.call_rank,
        "argument_size": fields.size,
        **{f"{name}_offset": fields.offset(f"_{name}") for name in _CALL_FIELDS},
        "size_dependent": plan.size_dependent,
        "shape_dependent": plan.shape_dependent,
        "can_flatten": can_flatten(plan),
        "tile": plan.tile,
    }


def _result_spec(plan: Vectorized, specs: _LeafSpecs) -> dict[str, Any]:
    """The plan of what the call returns."""
    fields, mode = specs.fields, plan.result_mode
    result: dict[str, Any] = {"mode": mode}
    if mode == "custom" and plan.result is not None:
        result["leaf"] = specs.of(plan.result)
    if mode in ("value", "tensor", "numpy", "torch"):
        result["element"] = specs.find_layout(plan.resolved.return_type)
        leaf: dict[str, Any] = {"kind": "view", "name": "_result", "map": tuple(range(plan.call_rank))}
        if mode == "value":
            leaf["kind"] = "reference"
            leaf["out"] = (fields.offset("_out"), result["element"])
        else:
            leaf["views"] = [fields.view("_out"), None, None]
            if mode == "torch":
                leaf["scalar"] = plan.resolved.return_type.scalar
                result["element_shape"] = plan.resolved.return_type.shape
        result["leaf"] = leaf
        if fields.offset("_out_tangent") >= 0:
            result["tangent"] = _tangent_result(result, plan, fields, specs.find_layout)
    elif mode == "texture":
        result["leaf"] = {"kind": "resource", "name": "_result", "slot": fields.slot("_out")}
    return result


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
