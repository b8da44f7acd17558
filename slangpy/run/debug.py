"""What a plan decided, for inspection."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .._native import Shape
from ..bindings.enums import AccessType
from ..plan.records import Binding, Placed, Vectorized


@dataclass(frozen=True)
class DebugBinding:
    """One argument, or one field of it: its bound type and where its dimensions go in the call."""

    name: str
    vector_type: Any
    """The Slang type that one invocation receives."""
    vector_mapping: Shape
    """The call dimension of each dimension that is spread over the call; () for structs, whose fields have their own."""
    call_dimensionality: int
    access: AccessType
    children: dict[str, DebugBinding] = field(default_factory=dict)
    allocated: bool = False
    """A result that nobody passed: no input."""

    def get_input_list(self, found: list[Any]) -> list[Any]:
        """Appends all bindings without children to a list."""
        if not self.children:
            found.append(self)
        for child in self.children.values():
            child.get_input_list(found)
        return found


@dataclass(frozen=True)
class DebugBindings:
    """The arguments of a call as they were passed."""

    args: list[DebugBinding]
    kwargs: dict[str, DebugBinding]

    def get_input_list(self, found: list[Any]) -> list[Any]:
        for binding in (*self.args, *self.kwargs.values()):
            if not binding.allocated:
                binding.get_input_list(found)
        return found


def bindings_of(plan: Vectorized) -> DebugBindings:
    """The bindings of a plan's arguments."""
    placed = {p.path: p for p in plan.placed}
    args: list[tuple[int, DebugBinding]] = []
    kwargs: dict[str, DebugBinding] = {}
    for parameter in plan.resolved.parameters:
        argument = parameter.argument
        if argument is None:
            continue
        binding = _of(parameter.name, parameter.name, parameter.binding, placed)
        if argument.name is None:
            args.append((argument.position, binding))
        else:
            kwargs[argument.name] = binding
    if "_result" not in kwargs and plan.result_mode != "none":  # what the call allocates
        mapping, type_ = Shape(range(plan.call_rank)), plan.resolved.return_type
        kwargs["_result"] = DebugBinding("_result", type_, mapping, plan.call_rank, AccessType.write, allocated=True)
    return DebugBindings([binding for _, binding in sorted(args, key=lambda item: item[0])], kwargs)


def _of(name: str, path: str, binding: Binding, placed: dict[str, Placed]) -> DebugBinding:
    if binding.kind != "struct":
        leaf = placed[path]
        return DebugBinding(name, binding.type, Shape(leaf.map), len(leaf.map), _access(leaf.reads, leaf.writes))
    children = {
        child: _of(child, path + (child if child.startswith("[") else f".{child}"), inner, placed)
        for child, inner in binding.fields
    }
    below = list(children.values())
    reads = any(child.access in (AccessType.read, AccessType.readwrite) for child in below)
    writes = any(child.access in (AccessType.write, AccessType.readwrite) for child in below)
    rank = max((child.call_dimensionality for child in below), default=0)
    return DebugBinding(name, binding.type, Shape(()), rank, _access(reads, writes), children)


def _access(reads: bool, writes: bool) -> AccessType:
    return {
        (True, True): AccessType.readwrite,
        (True, False): AccessType.read,
        (False, True): AccessType.write,
        (False, False): AccessType.none,
    }[reads, writes]
