"""Where the addresses of tensors lie in the parameters of a program, and which of them a kernel uses.

A tensor is a struct of our Slang library with an address in it (slang/tensor.slang): to compilers plain data, to users a
resource, so that one that was never set is refused as an unset buffer is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

from .globals_used import mentioned_globals, mentions_parameter

Place: TypeAlias = tuple[str | int, ...]
"""What a cursor is indexed by, part by part."""

_INSIDE = ("_primal", "_data", "_ptr", "_address")


def is_tensor(type_: Any) -> bool:
    """Whether a layout is of one of the tensor types of our Slang library."""
    fields = {field["name"]: field["type"] for field in type_.fields}
    if "_primal" in fields:
        return is_tensor(fields["_primal"])
    return "_shape" in fields and "_data" in fields and any(f["name"] == "_ptr" for f in fields["_data"].fields)


def tensor_places(fields: list[tuple[str, Any]], format: str) -> Iterator[Place]:
    """The addresses of the tensors in parameters, given by names and layouts, and in what those hold."""
    for name, type_ in fields:
        yield from _places(name, type_, ("_data", "_ptr", "_address") if format == "hlsl" else ("_data", "_ptr"))


def _places(name: str | int, type_: Any, address: tuple[str, ...]) -> Iterator[Place]:
    inner = type_.element if type_.kind.name in ("parameter_block", "constant_buffer") else type_
    inside: list[tuple[str | int, Any]] = [(field["name"], field["type"]) for field in inner.fields]
    if is_tensor(inner):
        inside = [(field, of) for field, of in inside if field == "_primal"]
        if not inside:
            yield (name, *address)
    elif inner.kind.name == "array":
        inside = [(i, inner.element) for i in range(inner.element_count)]
    for field, of in inside:
        yield from ((name, *rest) for rest in _places(field, of, address))


def named_parts(place: Place) -> list[str]:
    """The names in a place that a source would write."""
    return [part for part in place if isinstance(part, str) and part not in _INSIDE]


def path_of(place: Place) -> str:
    """The tensor at a place as a source would write it: `scene.parts[1]`."""
    parts = [part for part in place if part not in _INSIDE]
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)[1:]


def is_unset(cursor: Any, place: Place) -> bool:
    """Whether the address at a place is null."""
    for part in place:
        cursor = cursor[part]
    return cursor._is_zero()


def used_tensors(code: bytes, format: str, layout: Any) -> tuple[tuple[Place, ...], tuple[Place, ...]]:
    """The tensors in globals and in parameters that a kernel uses. SPIR-V tells nothing of names: there its parameters
    count, which belong to it alone, and no global does."""
    declared = layout.globals.fields if layout.globals else ()
    globals_ = [*tensor_places([(f["name"], f["type"]) for f in declared], format)]
    entry = layout.entry_point.fields if layout.entry_point else ()
    parameters = [*tensor_places([(f["name"], f["type"]) for f in entry], format)]
    if not globals_ and not parameters:
        return (), ()
    if format.startswith("spirv"):
        return (), tuple(place for place in parameters if len(named_parts(place)) == 1)
    text = code.decode("utf-8", "replace")
    used = mentioned_globals(text, [path_of(place) for place in globals_])
    return (
        tuple(place for place, is_used in zip(globals_, used, strict=True) if is_used),
        tuple(place for place in parameters if mentions_parameter(text, path_of(place))),
    )
