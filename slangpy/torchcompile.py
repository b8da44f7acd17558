"""Slang calls inside torch.compile and torch.export: operators of the namespace `slangpy`.

A traced call is split into tensors, numbers and the rest. The rest (function, structure of dicts and lists, generators)
is a `_Record` under a constant key; tensors and numbers are arguments of one of three operators:

- `slangpy::call` writes nothing: tensors that the Slang function writes come back as new ones, which the traced code
  copies. torch differentiates it; its backward pass is `slangpy::call_backward`.
- `slangpy::call_` writes in place where no gradient is wanted and nothing new is returned, and declares what it writes.

Eager calls do not come here. Imported when torch traces the first call.
"""

from __future__ import annotations

import ctypes
import enum
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch  # pyright: ignore[reportMissingImports]

from . import _native, autograd
from .cache import digest
from .call.plan import decode
from .generators import Deferred, make_deferred

is_compiling = torch.compiler.is_compiling

_DTYPES = {
    "bool": torch.bool, "int8_t": torch.int8, "int16_t": torch.int16, "int": torch.int32, "int64_t": torch.int64,
    "uint8_t": torch.uint8, "uint16_t": torch.uint16, "uint": torch.uint32, "uint64_t": torch.uint64,
    "half": torch.float16, "float": torch.float32, "double": torch.float64, "BFloat16": torch.bfloat16,
    "FloatE4M3": torch.float8_e4m3fn, "FloatE5M2": torch.float8_e5m2,
}  # fmt: skip
_CONSTANTS = (_native.Generator, enum.Enum, range, type)
_records: dict[str, _Record] = {}
_objects: dict[str, Any] = {}
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
    if isinstance(value, (_native.Texture, _native.TextureView, _native.Buffer, _native.Sampler)):
        return f"!a {type(value).__name__} cannot be an argument inside torch.compile; call the function outside"
    math = type(value).__module__.startswith("slangpy") and not hasattr(value, "get_this")
    if not isinstance(value, _CONSTANTS) and not math:
        return (
            f"!an argument of type {type(value).__name__} cannot be traced by torch.compile; call the function outside"
        )
    for key, known in _objects.items():
        if known is value:
            return key
    key = f"o{len(_objects)}"
    _objects[key] = value
    return key


@torch.compiler.assume_constant_result
def _made(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """A key for a generator that is asked for inside the traced code."""
    key = f"{name}{args}{sorted(kwargs.items())}"
    if key not in _objects:
        _objects[key] = make_deferred(name, args, kwargs)
    return key


@torch.compiler.assume_constant_result
def _register(address: int, template: Any, kinds: Any) -> str:
    """Plans a call on stand-ins of its tensors. Gives what the traced code must know, or "!" and a reason."""
    node = _object_at(address)
    if node.options.bwds or node.options.fwds:
        name = "bwds" if node.options.bwds else "fwds"
        return f"!{node.label}.{name} cannot be traced by torch.compile; torch differentiates the traced call itself"
    own = node._globals or node._bound is not None or "'object'" in repr(template)
    stable = node.module.cacheable and not own
    identity = (
        (node.module.content_key, node.core.identity, repr(node.options)) if stable else (_process, str(id(node)))
    )
    number = digest(*identity, repr(template), repr(kinds), str(node.module.device.info.type))[:24]
    key = f"{node.label}:{number}"
    record = _records.get(key)
    if record is None:
        with torch.utils._python_dispatch._disable_current_modes(), torch.no_grad():
            reason, record = _plan(node, template, kinds)
        if record is None:
            return "!" + reason
        _records[key] = record
    recipe = record.recipe
    places = [recipe.written, [i for i in recipe.written if recipe.reads[i] or recipe.whole[i]], recipe.inputs]
    texts = [",".join(map(str, p)) for p in [*places, recipe.written_in_graph]]
    carries = record.view.spec["result"].get("carries", False)
    return ";".join([key, str(int(recipe.returns)), str(recipe.result_at), *texts, str(int(bool(carries)))])


@dataclass
class _Leaf:
    """What one value tells about the call shape: call dimensions of its leading sizes, demanded trailing sizes."""

    name: str
    map: tuple[int, ...]
    inner: tuple[int, ...]
    tensor: int
    """Position among the tensors; -1: `sizes` are known."""
    sizes: tuple[int, ...]


@dataclass
class _Record:
    """All of a traced call that is neither tensor nor number."""

    node: Any
    template: Any
    kinds: Any
    view: Any
    recipe: autograd._Recipe
    leaves: list[_Leaf]

    def call(self, ints: Sequence[int], numbers: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments with slots for tensors."""
        floats = iter([number.item() for number in numbers])
        rest = iter(ints)
        bound, positional, named = self.template
        this = {} if bound is None else {"_this": _fill(bound, rest, floats)}
        args = tuple([_fill(part, rest, floats) for part in positional])
        return args, {**{name: _fill(part, rest, floats) for name, part in named}, **this}


def _fill(template: Any, ints: Iterator[int], floats: Iterator[float]) -> Any:
    kind = template[0]
    if kind == "tensor":
        return autograd._SLOT
    if kind == "int":
        return next(ints)
    if kind == "float":
        return next(floats)
    if kind == "dict":
        filled = {name: _fill(part, ints, floats) for name, part in template[1]}
        return filled if template[2] is None else {**filled, "_type": _fill(template[2], ints, floats)}
    if kind == "list":
        return [_fill(part, ints, floats) for part in template[1]]
    return template[1] if kind == "constant" else _objects[template[1]]


def _plan(node: Any, template: Any, kinds: Any) -> tuple[str, Any]:
    """A record, or why there is none. Errors of the call itself are raised here, at trace time."""
    stand_ins = iter([torch.empty((1,) * dims, dtype=dtype, device=device) for dtype, dims, device in kinds])
    bound, positional, named = template
    plain = node if bound is None else node._unbound()

    def value(part: Any) -> Any:
        if part[0] == "tensor":
            return next(stand_ins)
        if part[0] == "dict":
            return {**{n: value(p) for n, p in part[1]}, **({} if part[2] is None else {"_type": part[2][1]})}
        if part[0] == "list":
            return [value(p) for p in part[1]]
        return {"int": 1, "float": 1.0}[part[0]] if part[0] in ("int", "float") else _fill(part, iter(()), iter(()))

    target = plain if bound is None else plain.bind(value(bound))
    args = [value(part) for part in positional]
    kwargs = {name: value(part) for name, part in named}
    if "_append_to" in kwargs:
        return f"{node.label}: append_to cannot be traced by torch.compile; call it outside", None
    view = target._plan_of(*args, **kwargs)
    if view.spec["result"]["mode"] not in ("torch", "none", "leaf"):
        return (
            f"{node.label}: the result of this call is no torch tensor, which torch.compile cannot trace; leave out "
            "_result for a torch tensor, or call the function outside"
        ), None
    leaves = _leaves(view, decode(target._describe(*args, **kwargs)), len(kinds))
    if leaves is None:
        return f"{node.label}: an argument of this call cannot be traced by torch.compile; call it outside", None
    return "", _Record(node, template, kinds, view, autograd._recipe_of(view), leaves)


def _leaves(view: Any, arguments: Any, count: int) -> list[_Leaf] | None:
    """The parts of a call that decide its shape; None where they are not those that the template holds."""
    values: list[Any] = []

    def collect(value: Any) -> None:
        if value.leaf >= 0:
            values.append(value)
        for _, child in value.fields:
            collect(child)

    for argument in arguments:
        collect(argument.value)
    values.sort(key=lambda v: v.leaf)
    found, tensors = [], 0
    for value in values:
        spec: Any = view.spec["leaves"][value.leaf] if value.leaf < len(view.spec["leaves"]) else {"kind": "skip"}
        is_torch = bool(value.details.get("torch"))
        place = tensors if is_torch else -1
        tensors += is_torch
        if spec["kind"] in ("custom", "table") or "list_leaf" in value.details:
            return None
        if spec["kind"] not in ("view", "packed", "generator"):
            continue
        found.append(_Leaf(spec["name"], tuple(spec["map"]), tuple(spec["inner"]), place, _sizes(value)))
    return found if tensors == count else None


def _sizes(value: Any) -> tuple[int, ...]:
    """Sizes of a value without tensors, with the components of vectors and matrices behind them."""
    details = value.details
    rows, cols = details.get("rows", 0), details.get("cols", 0)
    if not cols:
        return value.shape
    return (*value.shape, rows, cols) if rows > 1 or value.kind == "matrix" else (*value.shape, cols)


# --- shapes, for tracing with stand-ins


def _call_shape(record: _Record, shapes: Sequence[Any]) -> list[Any]:
    call: list[Any] = [1] * record.view.spec["call_rank"]
    for leaf in record.leaves:
        sizes = shapes[leaf.tensor] if leaf.tensor >= 0 else leaf.sizes
        for size, expected in zip(sizes[len(leaf.map) :], leaf.inner, strict=False):
            if expected >= 0 and size != expected:
                raise ValueError(
                    f"{record.view.label}: {leaf.name}: size {size} of a trailing dimension does not match the expected "
                    f"shape: the parameter takes {expected} there"
                )
        for dim, size in zip(leaf.map, sizes, strict=False):
            if isinstance(size, int) and size in (-1, 1):
                continue
            if isinstance(call[dim], int) and call[dim] == 1:
                call[dim] = size
            elif size != 1 and size != call[dim]:
                raise ValueError(
                    f"{record.view.label}: Shape mismatch for {leaf.name} between value ({size}) and call ({call[dim]}) "
                    f"in call dimension {dim}"
                )
    return call


def _fake_result(record: _Record, tensors: Sequence[Any]) -> list[Any]:
    shape = _call_shape(record, [t.shape for t in tensors])
    if not record.recipe.returns:
        return []
    result = record.view.spec["result"]
    like = next((t for t in tensors if t.device.type != "cpu"), tensors[0])
    dtype = _DTYPES[result["leaf"]["scalar"]]
    return [torch.empty([*shape, *result["element_shape"]], dtype=dtype, device=like.device)]


# --- operators


@torch.library.custom_op(
    "slangpy::call", mutates_args=(), schema="(str key, Tensor[] tensors, SymInt[] ints, Tensor[] numbers) -> Tensor[]"
)
def _call(key: str, tensors: Sequence[Any], ints: Sequence[int], numbers: Sequence[Any]) -> list[Any]:
    record = _find(key)
    recipe = record.recipe
    with torch.no_grad():
        values = [t.detach() for t in tensors]
        for i in recipe.written:
            kept = recipe.reads[i] or recipe.whole[i]
            values[i] = values[i].clone(memory_format=torch.contiguous_format) if kept else _like(values[i])
        result = _native._call_with(record.node, *record.call(ints, numbers), values)
    return [*([result] if recipe.returns else []), *[values[i] for i in recipe.written]]


@torch.library.register_fake("slangpy::call")
def _(key: str, tensors: Sequence[Any], ints: Sequence[int], numbers: Sequence[Any]) -> list[Any]:
    record = _find(key)
    return [*_fake_result(record, tensors), *[_like(tensors[i]) for i in record.recipe.written]]


@torch.library.custom_op(
    "slangpy::call_",
    mutates_args=("written",),
    schema="(str key, Tensor[] tensors, Tensor(a!)[] written, SymInt[] ints, Tensor[] numbers) -> ()",
)
def _call_in_place(
    key: str, tensors: Sequence[Any], written: Sequence[Any], ints: Sequence[int], numbers: Sequence[Any]
) -> None:
    record = _find(key)
    with torch.no_grad():
        _native._call_with(record.node, *record.call(ints, numbers), _merged(record, tensors, written))


@torch.library.register_fake("slangpy::call_")
def _(key: str, tensors: Sequence[Any], written: Sequence[Any], ints: Sequence[int], numbers: Sequence[Any]) -> None:
    record = _find(key)
    _call_shape(record, [t.shape for t in _merged(record, tensors, written)])


@torch.library.custom_op(
    "slangpy::call_backward",
    mutates_args=(),
    schema="(str key, Tensor[] saved, Tensor?[] seeds, int[] wanted, SymInt[] sizes, SymInt[] ints, Tensor[] numbers) "
    "-> Tensor[]",
)
def _call_backward(
    key: str,
    saved: Sequence[Any],
    seeds: Sequence[Any],
    wanted: Sequence[int],
    sizes: Sequence[int],
    ints: Sequence[int],
    numbers: Sequence[Any],
) -> list[Any]:
    record = _find(key)
    call = autograd._Call()
    call.node, call.recipe = record.node, record.recipe
    call.args, call.kwargs = record.call(ints, numbers)
    if record.recipe.returns:
        call.kwargs["_result"] = autograd._SLOT
    tensors = _spread(record, saved)
    device = next((t.device for t in saved if t.device.type != "cpu"), saved[0].device)
    rest = iter(sizes)
    call.shapes = []
    for tensor, (dtype, dims, _) in zip(tensors, record.kinds, strict=True):
        shape = [next(rest) for _ in range(dims)] if tensor is None else tensor.shape
        call.shapes.append((shape, dtype, device if tensor is None else tensor.device))
    if record.recipe.returns:
        result = record.view.spec["result"]
        shape = [*_call_shape(record, [s for s, _, _ in call.shapes]), *result["element_shape"]]
        call.shapes.append((shape, _DTYPES[result["leaf"]["scalar"]], device))
    if all(seed is None for seed in seeds):
        return [torch.zeros_like(tensors[i], memory_format=torch.contiguous_format) for i in wanted]
    with torch.no_grad():
        grads = autograd.gradients(call, tensors, seeds, wanted)
    return [grads[i].contiguous() for i in wanted]


@torch.library.register_fake("slangpy::call_backward")
def _(
    key: str,
    saved: Sequence[Any],
    seeds: Sequence[Any],
    wanted: Sequence[int],
    sizes: Sequence[int],
    ints: Sequence[int],
    numbers: Sequence[Any],
) -> list[Any]:
    tensors = _spread(_find(key), saved)
    return [_like(tensors[i]) for i in wanted]


def _setup_context(ctx: Any, inputs: Any, output: Any) -> None:
    key, tensors, ints, numbers = inputs
    recipe = _find(key).recipe
    unread = [i for i in recipe.written if not recipe.reads[i]]
    kept = [t for i, t in enumerate(tensors) if i not in unread]
    ctx.save_for_backward(*kept, *numbers)
    ctx.key, ctx.ints, ctx.kept = key, list(ints), len(kept)
    ctx.sizes = [size for i in unread for size in tensors[i].shape]
    ctx.counts = (len(tensors), len(ints), len(numbers))


def _backward(ctx: Any, seeds: Any) -> Any:
    saved = ctx.saved_tensors
    inputs = _find(ctx.key).recipe.inputs
    wanted = [i for i, needed in enumerate(ctx.needs_input_grad[1]) if needed and i in inputs]
    tensors, ints, numbers = ctx.counts
    given = (list(saved[: ctx.kept]), list(seeds), wanted, ctx.sizes, ctx.ints, list(saved[ctx.kept :]))
    grads = dict(zip(wanted, torch.ops.slangpy.call_backward(ctx.key, *given), strict=True))
    return None, [grads.get(i) for i in range(tensors)], None if ints else [], [None] * numbers


torch.library.register_autograd("slangpy::call", _backward, setup_context=_setup_context)


def _find(key: str) -> _Record:
    record = _records.get(key)
    if record is None:
        raise RuntimeError(
            f"slangpy: the traced call {key} is not known to this process; a graph with Slang calls runs in the process "
            "that traced it"
        )
    return record


def _like(tensor: Any) -> Any:
    return torch.empty(tensor.shape, dtype=tensor.dtype, device=tensor.device)


def _merged(record: _Record, tensors: Sequence[Any], written: Sequence[Any]) -> list[Any]:
    rest, own = iter(tensors), iter(written)
    return [next(own) if i in record.recipe.written else next(rest) for i in range(len(record.kinds))]


def _spread(record: _Record, saved: Sequence[Any]) -> list[Any]:
    """The saved tensors at their places; None for those that are only written."""
    recipe, rest = record.recipe, iter(saved)
    unread = [i for i in recipe.written if not recipe.reads[i]]
    return [None if i in unread else next(rest) for i in range(len(record.kinds))]
