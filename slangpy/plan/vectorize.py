"""Call rank, and which call dimension each dimension of each value goes to."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ..errors import BoundVariableException, KernelGenException, ResolveException
from .map_entries import too_many_mapped
from .records import Binding, Options, Parameter, Placed, Resolved, Vectorized
from .struct_arrays import indexed


def vectorize(resolved: Resolved, options: Options, strict: bool, result_mode: str, sized: bool) -> Vectorized:
    """Aligns all leaves at the right, unless `map` says otherwise."""
    leaves: list[tuple[Parameter, _Spread]] = []
    for parameter in resolved.parameters:
        entry = _entry(options, parameter)
        leaves.extend((parameter, spread) for spread in _walk(parameter.name, parameter.binding, entry))
    rank = 0
    for _, spread in leaves:
        explicit = spread.explicit
        rank = max(rank, max(explicit, default=-1) + 1 if explicit is not None else spread.dims)
    placed: list[Placed] = []
    for parameter, spread in leaves:
        path, leaf, explicit = spread.path, spread.leaf, spread.explicit
        dims = explicit if explicit is not None else spread.align(rank)
        if strict and explicit is None and spread.dims not in (0, rank):
            raise BoundVariableException(
                f"Strict broadcasting is enabled, but argument {path} has {spread.dims} dimensions and the call has {rank}"
            )
        for part in [child for _, child in leaf.fields] if leaf.kind == "select" else [leaf]:
            _check_call_id(part, rank, path)
        reads, writes = _access(parameter, leaf, options.bwds)
        index = leaf.value.leaf if leaf.value is not None else -1
        ident, element = f"a{len(placed)}", 0
        if leaf.array_type and not path.endswith("[0]"):
            ident, element = placed[-1].ident, placed[-1].element + 1
        held = leaf.kind == "resource" and "[*]" in path
        placed.append(Placed(indexed(path), leaf, dims, reads, writes, parameter.io, index, ident, element, held=held))
    result = next((p for p in placed if p.path == "_result" or p.path.startswith("_result.")), None)
    if result is not None:
        result_mode = "leaf"
    if options.bwds or resolved.return_type_name == "void":
        result_mode = "none"
    elif result_mode == "auto" or (result_mode == "torch" and not resolved.return_type.scalar):
        result_mode = "value" if rank == 0 else "tensor"
    return Vectorized(resolved, rank, tuple(placed), result_mode, result, sized)


def _check_call_id(leaf: Binding, rank: int, path: str) -> None:
    """The position in the call has as many components as the call has dimensions (a vector may have one more)."""
    if leaf.kind != "generator" or leaf.value is None or leaf.value.details["generator"] != "call_id":
        return
    shape = leaf.type.shape
    fits = rank <= 1 if not shape else shape[0] == rank or (leaf.type.kind == "vector" and shape[0] == rank + 1)
    if not fits:
        raise KernelGenException(
            f"Could not find suitable conversion from call_id of a call with {rank} dimensions to {leaf.type_name} "
            f"of argument {path}"
            + ("; spy.grid(shape) in its place gives the call its shape, and so does _result=" if rank == 0 else "")
        )


def _entry(options: Options, parameter: Parameter) -> Any:
    by_name = dict(options.map_kwargs)
    if parameter.name in by_name:
        return by_name[parameter.name]
    argument = parameter.argument
    if argument is not None and argument.name is None and argument.position < len(options.map_args):
        return options.map_args[argument.position]
    return None


@dataclass(frozen=True)
class _Spread:
    """A leaf, and how its dimensions meet those of the call: by `map`, or aligned at the right.

    In a list of dicts the list's dimensions stand in front of those of all fields: the first `lists` dimensions of the
    leaf are the first of the last `dims` dimensions of the call.
    """

    path: str
    leaf: Binding
    explicit: tuple[int, ...] | None
    dims: int
    lists: int = 0

    def align(self, rank: int) -> tuple[int, ...]:
        front = tuple(range(rank - self.dims, rank - self.dims + self.lists))
        return front + tuple(range(rank - self.leaf.dims + self.lists, rank))


def _walk(path: str, binding: Binding, entry: Any) -> list[_Spread]:
    if binding.kind == "struct":
        inner = dict(entry[1]) if entry is not None and entry[0] == "dict" else {}
        found: list[_Spread] = []
        for name, child in binding.fields:
            step = name if name.startswith("[") else f".{name}"
            own = entry if entry is not None and entry[0] == "dims" else inner.get(name)  # of a list: the list's dims
            found.extend(_walk(path + "[*]" * binding.lifted + step, child, own))
        lists = binding.value.details.get("list_depth", 0) - binding.lifted if binding.value is not None else 0
        if lists:
            dims = max((spread.leaf.dims for spread in found), default=0)
            found = [replace(s, dims=dims, lists=lists) if s.leaf.dims >= lists else s for s in found]
        return found
    explicit = entry[1] if entry is not None and entry[0] == "dims" else None
    return [_Spread(path, binding, tuple(explicit) if explicit is not None else None, binding.dims)]


def _access(parameter: Parameter, leaf: Binding, bwds: bool) -> tuple[bool, bool]:
    """Whether the kernel reads and writes the primal of a leaf."""
    value = leaf.value
    has_primal = value is None or not value.details.get("no_primal")
    storable = leaf.kind in ("view", "reference", "custom", "texel") and value is not None and has_primal
    if leaf.rank >= 0:  # whole tensors: by their type
        name = leaf.type_name.split("<")[0]
        writes = name.startswith(("RW", "W", "Atomic", "IRW", "IW")) and has_primal
        reads = not name.startswith(("W", "IW"))
        return reads, writes
    if leaf.kind in ("resource", "pick"):
        return True, leaf.type_name.startswith("RW")
    if bwds:
        return parameter.io in ("in", "inout"), False
    reads = parameter.io in ("in", "inout")
    return reads, parameter.io != "in" and storable


def check_map_count(options: Options, resolved: Resolved, positional: int) -> None:
    if len(options.map_args) > positional:
        raise too_many_mapped(len(options.map_args), positional)
    names = {p.name for p in resolved.parameters} | {"_result"}
    for name, _ in options.map_kwargs:
        if name not in names:
            raise ValueError(f"Unknown keyword argument '{name}' in map; the parameters are {', '.join(sorted(names))}")


__all__ = ["vectorize", "check_map_count", "ResolveException"]
