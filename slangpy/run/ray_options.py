"""What `FunctionNode.ray_tracing` takes, as part of a call's key."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any

from .. import _native
from ..plan.records import RayTracing

_ADVICE = "use RayQuery in the function, or the Slang module slangpy.rays, whose hits have derivatives"


def refuse_derivative_of_rays(node: Any, what: str) -> None:
    """NotImplementedError where a derivative is asked of a call that runs as a ray generation shader."""
    if node.options.rays is not None:
        raise NotImplementedError(f"{node.label}: {what} of .ray_tracing(...) is not implemented; {_ADVICE}")


def ray_tracing_of(
    node: Any, hit_groups: Sequence[Any], miss: Sequence[str], names: Sequence[str] | None, called: Sequence[str],
    sizes: Sequence[int], flags: Any,
) -> RayTracing:  # fmt: skip
    """The fields of .ray_tracing(...), checked. TypeError and ValueError name the field."""
    call = f"{node.label}.ray_tracing"
    if node.options.bwds or node.options.fwds:
        raise NotImplementedError(f"{call}: derivatives of calls that trace rays are not implemented; {_ADVICE}")
    groups = []
    for given in _items(call, "hit_groups", hit_groups):
        group = given if isinstance(given, _native.HitGroupDesc) else _native.HitGroupDesc(given)
        entries = (group.closest_hit_entry_point, group.any_hit_entry_point, group.intersection_entry_point)
        groups.append((group.hit_group_name, *entries))
    known = [group[0] for group in groups]
    if names is not None:
        names = _names(call, "hit_group_names", names)
        for name in names:
            if name and name not in known:
                raise ValueError(f"{call}: hit_group_names has '{name}', which is none of hit_groups: {known}")
    if not isinstance(flags, _native.RayTracingPipelineFlags):
        raise TypeError(f"{call}: 'flags' must be RayTracingPipelineFlags, got {flags!r}")
    limits = []
    for field, size in zip(("max_recursion", "max_ray_payload_size", "max_attribute_size"), sizes, strict=True):
        try:
            limits.append(index(size))
        except TypeError:
            raise TypeError(f"{call}: '{field}' must be an int, got {size!r}") from None
        if limits[-1] < 0:
            raise ValueError(f"{call}: '{field}' must not be negative, got {size}")
    return RayTracing(
        tuple(groups),
        _names(call, "miss_entry_points", miss),
        tuple(known) if names is None else tuple(names),
        _names(call, "callable_entry_points", called),
        limits[0],
        limits[1],
        limits[2],
        int(flags.value),
    )


def _items(call: str, field: str, given: Any) -> list[Any]:
    if isinstance(given, (str, bytes, dict)) or not hasattr(given, "__iter__"):
        raise TypeError(f"{call}: '{field}' must be a list, got {given!r}")
    return list(given)


def _names(call: str, field: str, given: Any) -> tuple[str, ...]:
    names = _items(call, field, given)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"{call}: '{field}' must be names, got {name!r}")
    return tuple(names)


__all__ = ["ray_tracing_of", "refuse_derivative_of_rays"]
