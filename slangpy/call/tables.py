"""Kernels and plans of lists: a table in memory says where each entry lies; resources are an array of parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ..marshall.table import entries, list_dims
from .emit_fields import FieldWriter
from .emit_textures import TextureWriter
from .emit_values import ValueWriter
from .ir import Placed
from .text import indent

_PARTS = ("", "_lead", "_inner", "_shape", "_first")


class TableWriter(FieldWriter, ValueWriter, TextureWriter):
    """Fields and values of lists, by their tables."""

    def _declare_table(self, placed: Placed) -> None:
        binding, ident = placed.binding, placed.ident
        lists = list_dims(binding)
        fields, self.fields = self.fields, []
        if _holds_addresses(placed):
            self.fields.append(f"_spy_T_{ident} {ident}")
        else:
            self._declare_view(ident, binding.stored, binding.dims - lists, len(binding.inner), binding.rank)
        row, self.fields = self.fields, fields
        self.aliases += [f"struct _spy_Row_{ident}", "{", *(f"    {field};" for field in row), "}"]
        self.fields += [
            f"_spy_Storage<_spy_Row_{ident}> {ident}_rows", f"int {ident}_list[{lists}]",
            f"_spy_Row_{ident} {ident}_layout",  # never read: it tells where the fields of a row are
        ]  # fmt: skip

    def _declare_select(self, placed: Placed) -> None:
        for part in select_parts(placed):
            self.aliases.append(f"typealias _spy_T_{part.ident} = {part.binding.type_name};")
            self._declare_generator(part)

    def _declare_pick(self, placed: Placed) -> None:
        """Resources of a list, as an array of parameters."""
        parts = select_parts(placed)
        alias = f"_spy_T_{placed.ident}"
        self.extra.append(f"{self._whole_format(parts)}uniform {alias} {placed.ident}[{len(parts)}]")

    def _pick(self, placed: Placed) -> str:
        """The resource of this invocation's place in the list.

        Few Vulkan devices take an index that differs among the threads of a group, so there all threads go through the
        list and each does its work at its place.
        """
        place = _place(placed)
        if place == "0" or "spirv" not in self.capabilities:
            return f"{placed.ident}[{place}]"
        index, _ = self.places.setdefault(place, (f"_w{len(self.places)}", len(placed.binding.fields)))
        return f"{placed.ident}[{index}]"

    def _over_places(self, body: list[str]) -> list[str]:
        """The body inside of loops over the lists of resources that it picks from."""
        for place, (index, count) in self.places.items():
            head = f"[loop] for (int {index} = 0; {index} < {count}; {index}++)"
            body = [head, "{", *indent([f"if ({index} != {place}) continue;", *body]), "}"]
        return body

    def _select(self, placed: Placed) -> str:
        """One of several generators, by the place in the list."""
        ident = placed.ident
        self.body += [f"_spy_T_{ident} _v_{ident};", f"int _at_{ident} = {_place(placed)};"]
        for index, part in enumerate(select_parts(placed)):
            branch = "if" if index == 0 else "else if"
            last = index == len(placed.binding.fields) - 1
            head = "else" if last and index else f"{branch} (_at_{ident} == {index})"
            self.body.append(
                f"{head if not (last and index == 0) else ''} _v_{ident} = {self._generator(part)};".strip()
            )
        return f"_v_{ident}"

    def _table(self, placed: Placed) -> str:
        """The part of this invocation's entry: its row is read, then the entry is a view like any other."""
        binding, ident = placed.binding, placed.ident
        lists = list_dims(binding)
        at = " + ".join(f"int64_t(_c{dim}) * _call.{ident}_list[{k}]" for k, dim in enumerate(placed.map[:lists]))
        self.body.append(f"_spy_Row_{ident} _row_{ident} = _call.{ident}_rows.read({at});")
        if _holds_addresses(placed):
            return f"_row_{ident}.{ident}"
        self.bases[ident] = f"_row_{ident}"
        entry = replace(placed, map=placed.map[lists:], binding=binding.fields[0][1])
        if binding.rank >= 0:
            return self._tensor(entry)
        self._load(entry, ident, binding.stored, f"_v_{ident}", self.body, binding.type)
        return f"_v_{ident}"


def _place(placed: Placed) -> str:
    """Expression of this invocation's place in a list."""
    assert placed.binding.value is not None
    shape, _ = entries(placed.binding.value)
    at = ""
    for size, dim in zip(shape, placed.map, strict=True):
        step = "0" if size == 1 else f"int(_c{dim})"
        at = f"({at}) * {size} + {step}" if at else step
    return at or "0"


def _holds_addresses(placed: Placed) -> bool:
    return placed.binding.fields[0][1].kind == "pointer"


def select_parts(placed: Placed) -> list[Placed]:
    """The generators of a list, each with fields of its own; or its resources, which share one parameter."""
    parts = []
    for index, (path, child) in enumerate(placed.binding.fields):
        assert child.value is not None
        part = replace(placed, path=placed.path + path, binding=child, map=(), leaf=child.value.leaf)
        shared = placed.binding.kind == "pick"
        parts.append(replace(part, element=index) if shared else replace(part, ident=f"{placed.ident}_{index}"))
    return parts


def select_specs(placed: Placed, spec_of: Callable[[Placed], dict[str, Any]]) -> dict[int, dict[str, Any]]:
    """The native plans of a list of generators or resources: its sizes, and what each of them stores."""
    assert placed.binding.value is not None
    shape, _ = entries(placed.binding.value)
    view = (-1, -1, -1, -1, -1)
    own: dict[str, Any] = {
        "kind": "table",
        "name": placed.path,
        "map": placed.map,
        "table_shape": shape,
        "table_bytes": 0,
    }
    return {
        placed.leaf: {**own, "views": [view, None, None]},
        **{part.leaf: spec_of(part) for part in select_parts(placed)},
    }


def table_specs(placed: Placed, fields: Any, entry_spec: dict[str, Any]) -> dict[int, dict[str, Any]]:
    """The native plans of a list and of its entries, which are written into the rows of its table."""
    binding, ident, leaf = placed.binding, placed.ident, placed.leaf
    lists = list_dims(binding)
    assert binding.value is not None
    shape, _ = entries(binding.value)
    row = fields.layout(ident + "_layout")
    offsets = {field["name"]: field["offset"] for field in row.fields}
    stride = -(-row.size // 8) * 8
    found: dict[int, dict[str, Any]] = {
        leaf: {
            "kind": "table", "name": placed.path, "map": placed.map[:lists], "table_shape": shape,
            "table_bytes": stride * len(binding.fields),
            "views": [(fields.offset(ident + "_rows"), fields.offset(ident + "_list"), -1, -1, -1), None, None],
        }
    }  # fmt: skip
    for index, (path, entry) in enumerate(binding.fields):
        assert entry.value is not None
        if _holds_addresses(placed):
            place = (offsets[ident] + index * stride, row.fields[0]["type"])
            found[entry.value.leaf] = {"kind": "pointer", "name": placed.path + path, "value": place, "table": leaf}
            continue
        view = tuple(offsets[ident + part] + index * stride if ident + part in offsets else -1 for part in _PARTS)
        found[entry.value.leaf] = {
            **entry_spec, "kind": "view", "name": placed.path + path, "map": placed.map[lists:], "classed": False,
            "views": [view, None, None], "table": leaf, "whole": binding.rank >= 0,
        }  # fmt: skip
    return found
