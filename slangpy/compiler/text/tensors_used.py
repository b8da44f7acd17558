"""Where the addresses of tensors and pointers lie in the parameters of a program, and which of them a kernel uses.

A tensor is a struct of our Slang library with an address in it (slang/tensor.slang): to compilers plain data, to users a
resource, so that one that was never set is refused as an unset buffer is. The same goes for pointers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from ... import _native
from .globals_used import all_used_slots, mentioned_globals, mentions_parameter
from .spirv_reads import Range, bytes_read

Place: TypeAlias = tuple[str | int, ...]
"""What a cursor is indexed by, part by part."""

_INSIDE = ("_primal", "_data", "_ptr", "_address")


def is_tensor(type_: Any) -> bool:
    """Whether a layout is of one of the tensor types of our Slang library."""
    fields = {field["name"]: field["type"] for field in type_.fields}
    if "_primal" in fields:
        return is_tensor(fields["_primal"])
    return "_shape" in fields and "_data" in fields and any(f["name"] == "_ptr" for f in fields["_data"].fields)


def address_places(fields: list[tuple[str, Any]], format: str) -> Iterator[tuple[Place, str]]:
    """The addresses of the tensors, and the pointers, in parameters, given by names and layouts, and in what those hold; each
    with what users assign."""
    for name, type_ in fields:
        yield from _places(name, type_, ("_data", "_ptr", "_address") if format == "hlsl" else ("_data", "_ptr"))


def _places(name: str | int, type_: Any, address: tuple[str, ...]) -> Iterator[tuple[Place, str]]:
    inner = type_.element if type_.kind.name in ("parameter_block", "constant_buffer") else type_
    inside: list[tuple[str | int, Any]] = [(field["name"], field["type"]) for field in inner.fields]
    if is_tensor(inner):
        inside = [(field, of) for field, of in inside if field == "_primal"]
        if not inside:
            yield (name, *address), "tensor"
    elif inner.kind.name == "array":
        inside = [(i, inner.element) for i in range(inner.element_count)]
    elif inner.kind.name == "pointer":
        yield (name,), "buffer, or None for nothing"
    for field, of in inside:
        yield from (((name, *rest), what) for rest, what in _places(field, of, address))


def named_parts(place: Place) -> list[str]:
    """The names in a place that a source would write."""
    return [part for part in place if isinstance(part, str) and part not in _INSIDE]


def path_of(place: Place) -> str:
    """The tensor at a place as a source would write it: `scene.parts[1]`."""
    parts = [part for part in place if part not in _INSIDE]
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)[1:]


def is_unset(cursor: Any, place: Place) -> bool:
    """Whether the address at a place is null and nobody said so."""
    for part in place:
        cursor = cursor[part]
    return cursor._is_unset()


def used_parameters(device: Any, codes: list[bytes], layout: Any, label: str) -> _native.UsedParameters:
    """What the entry points of a layout use, of each of which `codes` holds the target code: resources, and tensors and
    pointers, whose addresses must not be null. label: for messages."""
    format = device.compile_target.format
    slots = [all_used_slots(code, format, layout) for code in codes]
    known = [used for used in slots if used is not None]
    joined = sorted(set().union(*known)) if len(known) == len(slots) else None
    if device.info.type.name == "null":  # its addresses are null, and nothing reads them
        return _native.UsedParameters(label, joined)
    root = _native.ShaderCursor(_native.ShaderObject(device, layout))
    addresses: dict[str, _Address] = {}
    for index, code in enumerate(codes):
        addresses.update((found.path, found) for found in _used_addresses(code, format, layout, index, root))
    found = [(a.path, a.what, a.scope, a.begin, a.size) for a in addresses.values()]
    return _native.UsedParameters(label, joined, found)


@dataclass(frozen=True)
class _Address:
    """What must not be null when a kernel runs, and where its bytes lie in the values of the parameters."""

    path: str
    what: str
    scope: int
    begin: int
    size: int


def _used_addresses(code: bytes, format: str, layout: Any, index: int, root: Any) -> list[_Address]:
    """Those that one entry point uses, of the globals and of its own parameters."""
    entry = layout.entry_points[index]
    own = entry["parameters"].fields if entry["parameters"] else ()
    declared = layout.globals.fields if layout.globals else ()
    globals_ = _addresses(declared, format, root)
    parameters = _addresses(own, format, root.find_entry_point(index))
    if not globals_ and not parameters:
        return []
    if format.startswith("spirv"):
        read = bytes_read(code)
        return [address for address in (*globals_, *parameters) if _is_read(address, read, layout, entry["scope"])]
    text = code.decode("utf-8", "replace")
    used = mentioned_globals(text, [address.path for address in globals_])
    return [address for address, is_used in zip(globals_, used, strict=True) if is_used] + [
        address for address in parameters if mentions_parameter(text, address.path)
    ]


def _addresses(fields: Any, format: str, cursor: Any) -> list[_Address]:
    found: list[_Address] = []
    for place, what in address_places([(field["name"], field["type"]) for field in fields], format):
        at = cursor
        for part in place:
            at = at[part]
        begin, size = at._offset.uniform_offset, at._type_layout.size
        found.append(_Address(path_of(place), what, at._scope, begin, size))
    return found


def _is_read(address: _Address, read: set[Range], layout: Any, own_scope: int) -> bool:
    scope = layout.scopes[address.scope]
    block = None if address.scope == own_scope else (scope["set"], scope["binding"])
    end = address.begin + address.size
    return any(of == block and begin < end and address.begin < after for of, begin, after in read)
