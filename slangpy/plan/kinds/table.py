"""Lists with an entry for each invocation: of containers and addresses, through a table in memory that says where each
lies; of generators, by a choice in the kernel; of resources, as an array of parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..bind.table import entries, list_dims
from ..records import Derivative, Placed
from ..slang_text import indent
from ..slots import Slots
from ..specification import NO_VIEW, LeafSpec, PointerSpec, SkipSpec, TableSpec, ViewSpec
from ..trampoline import Kernel
from ..trampoline.elements import load_element
from ..trampoline.views import declare_view, tensor_value
from .generator import declare_generator, generator_value
from .kind import LeafKind, Specs, never
from .resource import whole_format

_PARTS = ("", "_lead", "_inner", "_shape", "_first")


def _declare_table(kernel: Kernel, placed: Placed) -> None:
    binding, ident = placed.binding, placed.ident
    lists = list_dims(binding)
    fields, kernel.fields = kernel.fields, []
    if _holds_addresses(placed):
        kernel.fields.append(f"_spy_T_{ident} {ident}")
    else:
        declare_view(kernel, ident, binding.stored, binding.dims - lists, len(binding.inner), binding.rank)
    row, kernel.fields = kernel.fields, fields
    kernel.aliases += [f"struct _spy_Row_{ident}", "{", *(f"    {field};" for field in row), "}"]
    kernel.fields += [
        f"_spy_Storage<_spy_Row_{ident}> {ident}_rows", f"int {ident}_list[{lists}]",
        f"_spy_Row_{ident} {ident}_layout",  # never read: it tells where the fields of a row are
    ]  # fmt: skip


def _declare_select(kernel: Kernel, placed: Placed) -> None:
    for part in _entries_of(placed):
        kernel.aliases.append(f"typealias _spy_T_{part.ident} = {part.binding.type_name};")
        declare_generator(kernel, part)


def _declare_pick(kernel: Kernel, placed: Placed) -> None:
    """Resources of a list, as an array of parameters."""
    parts = _entries_of(placed)
    alias = f"_spy_T_{placed.ident}"
    kernel.extra.append(f"{whole_format(kernel, parts)}uniform {alias} {placed.ident}[{len(parts)}]")


def _pick(kernel: Kernel, placed: Placed) -> str:
    """The resource of this invocation's place in the list.

    Few Vulkan devices take an index that differs among the threads of a group, so there all threads go through the
    list and each does its work at its place.
    """
    place = _place(placed)
    if place == "0" or "spirv" not in kernel.facts.capabilities:
        return f"{placed.ident}[{place}]"
    index, _ = kernel.places.setdefault(place, (f"_w{len(kernel.places)}", len(placed.binding.fields)))
    return f"{placed.ident}[{index}]"


def over_places(kernel: Kernel, body: list[str]) -> list[str]:
    """The body inside of loops over the lists of resources that it picks from."""
    for place, (index, count) in kernel.places.items():
        head = f"[loop] for (int {index} = 0; {index} < {count}; {index}++)"
        body = [head, "{", *indent([f"if ({index} != {place}) continue;", *body]), "}"]
    return body


def _select(kernel: Kernel, placed: Placed) -> str:
    """One of several generators, by the place in the list."""
    ident = placed.ident
    kernel.body += [f"_spy_T_{ident} _v_{ident};", f"int _at_{ident} = {_place(placed)};"]
    for index, part in enumerate(_entries_of(placed)):
        branch = "if" if index == 0 else "else if"
        last = index == len(placed.binding.fields) - 1
        head = "else" if last and index else f"{branch} (_at_{ident} == {index})"
        kernel.body.append(
            f"{head if not (last and index == 0) else ''} _v_{ident} = {generator_value(kernel, part)};".strip()
        )
    return f"_v_{ident}"


def _table(kernel: Kernel, placed: Placed) -> str:
    """The part of this invocation's entry: its row is read, then the entry is a view like any other."""
    binding, ident = placed.binding, placed.ident
    lists = list_dims(binding)
    at = " + ".join(f"int64_t(_c{dim}) * _call.{ident}_list[{k}]" for k, dim in enumerate(placed.map[:lists]))
    kernel.body.append(f"_spy_Row_{ident} _row_{ident} = _call.{ident}_rows.read({at});")
    if _holds_addresses(placed):
        return f"_row_{ident}.{ident}"
    kernel.bases[ident] = f"_row_{ident}"
    entry = replace(placed, map=placed.map[lists:], binding=binding.fields[0][1])
    if binding.rank >= 0:
        return tensor_value(kernel, entry)
    load_element(kernel, entry, ident, binding.stored, f"_v_{ident}", kernel.body, binding.type)
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


def _entries_of(placed: Placed) -> list[Placed]:
    """The generators of a list, each with fields of its own; or its resources, which share one parameter."""
    parts = []
    for index, (path, child) in enumerate(placed.binding.fields):
        assert child.value is not None
        part = replace(placed, path=placed.path + path, binding=child, map=(), leaf=child.value.leaf)
        shared = placed.binding.kind == "pick"
        parts.append(replace(part, element=index) if shared else replace(part, ident=f"{placed.ident}_{index}"))
    return parts


def _list_specs(slots: Slots, placed: Placed, spec_of: Callable[[Placed], LeafSpec]) -> Specs:
    """The specifications of a list of generators or resources: its sizes, and what each of them stores."""
    del slots
    assert placed.binding.value is not None
    shape, _ = entries(placed.binding.value)
    own = LeafSpec(TableSpec(NO_VIEW, shape, 0), placed.path, map=placed.map)
    return {placed.leaf: own, **{part.leaf: spec_of(part) for part in _entries_of(placed)}}


def _table_specs(slots: Slots, placed: Placed, spec_of: Callable[[Placed], LeafSpec]) -> Specs:
    """The specifications of a list and of its entries, which are written into the rows of its table."""
    fields, entry_spec = slots.fields, spec_of(placed)
    binding, ident, leaf = placed.binding, placed.ident, placed.leaf
    lists = list_dims(binding)
    assert binding.value is not None
    shape, _ = entries(binding.value)
    row = fields.layout(ident + "_layout")
    offsets = {field["name"]: field["offset"] for field in row.fields}
    stride = -(-row.size // 8) * 8
    view = (fields.offset(ident + "_rows"), fields.offset(ident + "_list"), -1, -1, -1)
    table = TableSpec(view, shape, stride * len(binding.fields))
    found = {leaf: LeafSpec(table, placed.path, map=placed.map[:lists])}
    for index, (path, entry) in enumerate(binding.fields):
        assert entry.value is not None
        if _holds_addresses(placed):
            pointer = PointerSpec((offsets[ident] + index * stride, row.fields[0]["type"]), leaf)
            found[entry.value.leaf] = LeafSpec(pointer, placed.path + path)
            continue
        at, lead, inner, sizes, first = (
            offsets[ident + part] + index * stride if ident + part in offsets else -1 for part in _PARTS
        )
        kind = ViewSpec(((at, lead, inner, sizes, first), None, None), slots.stored(binding.stored), table=leaf)
        found[entry.value.leaf] = replace(
            entry_spec, kind=kind, name=placed.path + path, map=placed.map[lists:], classed=False, whole=binding.rank >= 0
        )
    return found


def _spec(slots: Slots, placed: Placed, grad: Derivative) -> SkipSpec:
    """Its entries say what they are."""
    del slots, placed, grad
    return SkipSpec()


TABLE = LeafKind("table", _declare_table, _table, _spec, specs=_table_specs, is_movable=False, flattens=never)
SELECT = LeafKind("select", _declare_select, _select, _spec, specs=_list_specs, is_movable=False, flattens=never)
PICK = LeafKind("pick", _declare_pick, _pick, _spec, specs=_list_specs, is_movable=False, flattens=never)
