"""Slang calls inside torch.compile and torch.export: operators of the namespace `slangpy`.

A traced call is split into tensors, numbers and the rest. The rest (function, structure of dicts and lists, generators)
is a `Record` under a constant key (traced_calls); tensors and numbers are arguments of one of three operators
(operators):

- `slangpy::call` writes nothing: tensors that the Slang function writes come back as new ones, which the traced code
  copies. torch differentiates it; its backward pass is `slangpy::call_backward`.
- `slangpy::call_` writes in place where no gradient is wanted and nothing new is returned, and declares what it writes.

Eager calls do not come here. Imported when torch traces the first call.
"""

from __future__ import annotations

import ctypes
import enum
import secrets
from typing import Any

import numpy as np
import torch  # pyright: ignore[reportMissingImports]

from ... import _native
from ...compiler.cache import digest
from ...generators import Deferred, make_deferred
from . import operators as _operators  # noqa: F401  (importing them registers them)
from .traced_calls import content_of, contents, objects, plan_record, records

is_compiling = torch.compiler.is_compiling

_CONSTANTS = (_native.Generator, enum.Enum, range, type)
_process = secrets.token_hex(8)
"""Keys of what lives in this process only: compiled graphs are kept on disk, and a key must not mean two things."""


# --- tracing: this part is read by torch.compile, so it stays with what that follows


def traced_call(node: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """A call as the tracer sees it: an operator, and copies into the tensors that it writes."""
    parts: tuple[list[Any], list[Any], list[Any]] = ([], [], [])
    bound = None if node._bound is None else _template(node._bound, parts)
    positional = tuple([_template(value, parts) for value in args])
    named = tuple([(name, _template(kwargs[name], parts)) for name in kwargs])
    tensors, ints, floats = parts
    kinds = tuple([(t.dtype, t.dim(), t.device) for t in tensors])
    facts = _register(id(node), (bound, positional, named), kinds)
    if facts.startswith("!"):
        _refuse(facts[1:])
    # a number that changes is a tensor: a float argument would be taken for a constant
    numbers = [torch.ones((), dtype=torch.float64) * value for value in floats]
    return _record_call(facts, tensors, ints, numbers)


def _template(value: Any, parts: tuple[list[Any], list[Any], list[Any]]) -> Any:
    """The structure of a value; its tensors and numbers go to `parts`, in the order of the native walk."""
    if value is None or isinstance(value, (bool, str)):
        return ("constant", value)
    if isinstance(value, torch.Tensor):
        parts[0].append(value)
        return ("tensor",)
    if isinstance(value, (int, torch.SymInt)):
        parts[1].append(value)
        return ("int",)
    if isinstance(value, (float, torch.SymFloat)):
        parts[2].append(value)
        return ("float",)
    if isinstance(value, dict):
        names = sorted([name for name in value if name != "_type"])
        fields = tuple([(name, _template(value[name], parts)) for name in names])
        own = _template(value["_type"], parts) if "_type" in value else None
        return ("dict", fields, own)
    if isinstance(value, (list, tuple)):
        return ("list", tuple([_template(item, parts) for item in value]))
    if isinstance(value, np.ndarray):
        return _refuse("a NumPy array cannot be an argument inside torch.compile; pass torch.from_numpy(array)")
    if hasattr(value, "get_this") and not isinstance(value, type):
        return _template(value.get_this(), parts)
    if isinstance(value, Deferred):
        key = _made(value.name, value.args, value.kwargs)
    elif isinstance(value, (enum.Enum, range, type)):
        key = _constant(value)
    else:
        key = _constant_at(id(value))
    if key.startswith("!"):
        _refuse(key[1:])
    return ("object", key)


def _refuse(reason: str) -> Any:
    torch._dynamo.graph_break(msg=reason)
    raise RuntimeError(reason)


def _record_call(facts: str, tensors: list[Any], ints: list[Any], numbers: list[Any]) -> Any:
    key, returns, result_at, written_text, keeps_text, inputs_text, outputs_text, result_carries = facts.split(";")
    written, keeps, inputs, outputs = [
        [int(i) for i in text.split(",") if i] for text in (written_text, keeps_text, inputs_text, outputs_text)
    ]
    grad = torch.is_grad_enabled()
    wanted = grad and any(tensors[i].requires_grad for i in inputs) and (outputs or result_carries == "1")
    in_graph = grad and any(tensors[i].requires_grad for i in written)
    if written and returns == "0" and not wanted and not in_graph:
        own = [tensors[i] for i in written]
        torch.ops.slangpy.call_(key, [t for i, t in enumerate(tensors) if i not in written], own, ints, numbers)
        return tensors[int(result_at)] if int(result_at) >= 0 else None
    given = []
    for i, tensor in enumerate(tensors):
        if i in keeps:  # its content is replaced while the graph may still need the old one
            tensor = tensor.clone()
        given.append(tensor if wanted and i in inputs else tensor.detach())
    made = torch.ops.slangpy.call(key, given, ints, numbers)
    first = 1 if returns == "1" else 0
    for place, i in enumerate(written):
        new = made[first + place]
        tensors[i].copy_(new if i in outputs else new.detach())
    if int(result_at) >= 0:
        return tensors[int(result_at)]
    if not first:
        return None
    return made[0] if result_carries == "1" else made[0].detach()


# --- what runs while tracing, on real objects. Not every torch hands objects to functions of this kind, but all hand
# over an id, and guard it; the traced code holds the object.


def _object_at(address: int) -> Any:
    return ctypes.cast(address, ctypes.py_object).value


@torch.compiler.assume_constant_result
def _constant_at(address: int) -> str:
    return _key_of(_object_at(address))


@torch.compiler.assume_constant_result
def _constant(value: Any) -> str:
    return _key_of(value)


def _key_of(value: Any) -> str:
    """A key for an object that belongs to the structure of a call; "!" and a reason where it cannot."""
    if isinstance(value, _native.TensorBase):
        return "!a slangpy.Tensor cannot be an argument inside torch.compile; pass tensor.to_torch()"
    if isinstance(value, (_native.Texture, _native.TextureView, _native.Buffer, _native.Sampler, _native.AccelerationStructure)):
        return f"!a {type(value).__name__} cannot be an argument inside torch.compile; call the function outside"
    math = type(value).__module__.startswith("slangpy") and not hasattr(value, "get_this")
    if not isinstance(value, _CONSTANTS) and not math:
        return (
            f"!an argument of type {type(value).__name__} cannot be traced by torch.compile; call the function outside"
        )
    for key, known in objects.items():
        if known is value and contents.get(key) == content_of(value):
            return key
    key = f"o{len(objects)}"
    objects[key] = value
    content = content_of(value)
    if content is not None:
        contents[key] = content
    return key


@torch.compiler.assume_constant_result
def _made(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """A key for a generator that is asked for inside the traced code."""
    key = f"{name}{args}{sorted(kwargs.items())}"
    if key not in objects:
        objects[key] = make_deferred(name, args, kwargs)
    return key


@torch.compiler.assume_constant_result
def _register(address: int, template: Any, kinds: Any) -> str:
    """Plans a call on stand-ins of its tensors. Gives what the traced code must know, or "!" and a reason."""
    node = _object_at(address)
    if node.options.bwds or node.options.fwds:
        name = "bwds" if node.options.bwds else "fwds"
        return f"!{node.label}.{name} cannot be traced by torch.compile; torch differentiates the traced call itself"
    own = node._globals or node._bound is not None or "'object'" in repr(template)
    stable = node.module._cacheable and not own
    identity = (
        (node.module._content_key, node.core.identity, repr(node.options)) if stable else (_process, str(id(node)))
    )
    number = digest(*identity, repr(template), repr(kinds), str(node.module.device.info.type))[:24]
    key = f"{node.label}:{number}"
    record = records.get(key)
    if record is None:
        modes = torch.utils._python_dispatch  # pyright: ignore[reportAttributeAccessIssue]
        with modes._disable_current_modes(), torch.no_grad():
            reason, record = plan_record(node, template, kinds)
        if record is None:
            return "!" + reason
        records[key] = record
    recipe = record.recipe
    places = [recipe.written, [i for i in recipe.written if recipe.reads[i] or recipe.whole[i]], recipe.inputs]
    texts = [",".join(map(str, p)) for p in [*places, recipe.written_in_graph]]
    carries = record.view.spec.result.carries
    return ";".join([key, str(int(recipe.returns)), str(recipe.result_at), *texts, str(int(carries))])
