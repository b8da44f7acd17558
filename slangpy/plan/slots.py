"""Where each stored argument lies in the bytes of a kernel's parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..base.scalars import SIZES
from .paths import steps_of
from .records import Binding, Placed
from .specification import Element, Slot, View
from .struct_arrays import holder


class Fields:
    """Offsets of the fields of the call structure inside the entry point's parameters."""

    def __init__(self, layout: Any) -> None:
        entry = layout.entry_point
        call = next(field for field in entry.fields if field["name"] == "_call")
        base = call["offset"]
        self._fields = {f["name"]: (base + f["offset"], f["type"]) for f in call["type"].fields}
        self._slots = {f["name"]: layout.entry_point_slot + f["slot"] for f in entry.fields if f["name"] != "_call"}
        self._types = {f["name"]: f["type"] for f in entry.fields}
        self._parameters = {f["name"]: (f["offset"], f["type"]) for f in entry.fields}
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
        for step in steps_of(placed.path[len(placed.parameter) :]):
            if step.startswith("["):
                layout = layout.element
                slot += int(step[1:-1]) * layout.slot_count
            else:
                field = next(f for f in layout.fields if f["name"] == step)
                slot, layout = slot + field["slot"], field["type"]
        return slot

    def has_slot(self, name: str) -> bool:
        return name in self._slots

    def view(self, name: str) -> View | None:
        if name not in self._fields:
            return None
        return (
            self.offset(name),
            self.offset(name + "_lead"),
            self.offset(name + "_inner"),
            self.offset(name + "_shape"),
            self.offset(name + "_first"),
        )

    def parameter(self, name: str) -> Slot | None:
        """A value that is a parameter of its own, beside the call structure."""
        return self._parameters.get(name)

    def value(self, name: str) -> Slot | None:
        return (self.offset(name), self.layout(name)) if name in self._fields else None


@dataclass(frozen=True)
class Slots:
    """What native plans of leaves are made from. `find_layout`: native layout of a Slang type."""

    fields: Fields
    find_layout: Any
    four_byte_bool: bool

    def stored(self, stored: str) -> Element:
        """The scalar that memory holds; nothing for other elements."""
        if stored not in SIZES:
            return Element()
        return Element(stored, 4 if stored == "bool" and self.four_byte_bool else SIZES[stored])

    def packed(self, binding: Binding) -> Any:
        """The layout of what a list is written as."""
        return self.find_layout(binding.type.program.require_type_by_name(binding.stored))
