"""Entries of `map`, as parts of the key of a call."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable
from typing import Any

from .. import _native


def plain_entry(entry: Any, depth: int = 0) -> Any:
    """A map entry as part of a key: ('dims', ...), ('type', name), ('dict', ...) or None."""
    if entry is None:
        return None
    if isinstance(entry, (tuple, _native.Shape)):
        dims = tuple(entry)
        if not all(isinstance(i, int) for i in dims):
            raise ValueError(f"map: Invalid explicit type {entry!r}: a map tuple holds call dimensions (ints), such as (0, 1)")
        return ("dims", dims)
    if isinstance(entry, str):
        return ("type", entry)
    if isinstance(entry, dict):
        if depth > 64 or not all(isinstance(k, str) for k in entry):
            raise ValueError("map: Invalid explicit type: a map dict has field names as keys, and at most 64 levels")
        return ("dict", tuple(sorted((k, plain_entry(v, depth + 1)) for k, v in entry.items())))
    name = getattr(entry, "full_name", None)
    if isinstance(name, str):
        return ("type", name)
    if isinstance(entry, type):
        return ("type", {_native.math.quatf: "float4"}.get(entry, entry.__name__))
    given = reprlib.repr(entry) if isinstance(entry, (int, float, list)) else f"{type(entry).__name__} object"
    meant = f"; write map(({entry},))" if isinstance(entry, int) and not isinstance(entry, bool) else ""
    raise ValueError(f"map: Invalid explicit type {given}: map takes a tuple of call dimensions, a type or a dict{meant}")


def holds_only_dims(entries: Iterable[Any]) -> bool:
    """Whether all map entries are tuples of ints: then equal ones mean the same."""
    for entry in entries:
        if type(entry) is not tuple:
            return False
        for dim in entry:
            if type(dim) is not int:
                return False
    return True


def too_many_mapped(given: int, positional: int) -> ValueError:
    """The error for a map with more entries than the call has arguments."""
    return ValueError(
        f"Too many arguments supplied for explicit vectorization: map has {given} entries, the call {positional} "
        f"positional argument{'s' * (positional != 1)}; give one entry for each, or name them, as in map(x=(0,))"
    )
