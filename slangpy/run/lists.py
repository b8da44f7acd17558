"""Lists of dicts and of instances become one dict of lists, so that their fields vectorise one by one."""

from __future__ import annotations

from typing import Any


def _plain(item: Any) -> Any:
    get_this = getattr(item, "get_this", None)
    return _plain(get_this()) if get_this is not None else item


def _type_name(type_: Any) -> str:
    return type_ if isinstance(type_, str) else str(getattr(type_, "full_name", type(type_).__name__))


def merge_items(items: list[Any]) -> dict[str, Any] | None:
    """One dict of lists for a list of dicts with equal fields (nested lists of dicts too).

    Returns None when the elements are no dicts (resources, tensors). Raises ValueError when only some
    are dicts or their fields differ.
    """
    plain = [_plain(item) for item in items]
    nested = [merge_items(list(item)) if isinstance(item, (list, tuple)) else item for item in plain]
    dicts = [item for item in nested if isinstance(item, dict)]
    if not dicts:
        return None
    if len(dicts) != len(nested):
        raise ValueError("all elements of a list must be of one kind: found dicts and other values")
    keys = set(dicts[0])
    for index, item in enumerate(dicts):
        if set(item) != keys:
            raise ValueError(
                f"all dicts of a list must have equal fields: element 0 has {sorted(keys)}, "
                f"element {index} has {sorted(item)}"
            )
    types = {_type_name(item.get("_type")) for item in dicts}
    if len(types) > 1:
        raise ValueError(f"all dicts of a list must have one _type, found {sorted(types)}")
    merged: dict[str, Any] = {}
    for key in dicts[0]:
        merged[key] = dicts[0][key] if key == "_type" else [item[key] for item in dicts]
    return merged
