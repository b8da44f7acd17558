"""The operators of traced calls: `slangpy::call`, `slangpy::call_` and `slangpy::call_backward`, with their shapes and gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch  # pyright: ignore[reportMissingImports]

from ... import _native
from .. import autograd
from .traced_calls import DTYPES, Record, call_shape, fake_result, find


@torch.library.custom_op(
    "slangpy::call", mutates_args=(), schema="(str key, Tensor[] tensors, SymInt[] ints, Tensor[] numbers) -> Tensor[]"
)
def _call(key: str, tensors: Sequence[Any], ints: Sequence[int], numbers: Sequence[Any]) -> list[Any]:
    record = find(key)
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
    record = find(key)
    return [*fake_result(record, tensors), *[_like(tensors[i]) for i in record.recipe.written]]


@torch.library.custom_op(
    "slangpy::call_",
    mutates_args=("written",),
    schema="(str key, Tensor[] tensors, Tensor(a!)[] written, SymInt[] ints, Tensor[] numbers) -> ()",
)
def _call_in_place(
    key: str, tensors: Sequence[Any], written: Sequence[Any], ints: Sequence[int], numbers: Sequence[Any]
) -> None:
    record = find(key)
    with torch.no_grad():
        _native._call_with(record.node, *record.call(ints, numbers), _merged(record, tensors, written))


@torch.library.register_fake("slangpy::call_")
def _(key: str, tensors: Sequence[Any], written: Sequence[Any], ints: Sequence[int], numbers: Sequence[Any]) -> None:
    record = find(key)
    call_shape(record, [t.shape for t in _merged(record, tensors, written)])


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
    record = find(key)
    call = autograd._Call()
    call.node, call.recipe, call.pairs = record.node, record.recipe, ()
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
        result = record.view.spec.result
        shape = [*call_shape(record, [s for s, _, _ in call.shapes]), *result.element_shape]
        call.shapes.append((shape, DTYPES[result.leaf.kind.element.scalar], device))
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
    tensors = _spread(find(key), saved)
    return [_like(tensors[i]) for i in wanted]


def _setup_context(ctx: Any, inputs: Any, output: Any) -> None:
    key, tensors, ints, numbers = inputs
    recipe = find(key).recipe
    unread = [i for i in recipe.written if not recipe.reads[i]]
    kept = [t for i, t in enumerate(tensors) if i not in unread]
    ctx.save_for_backward(*kept, *numbers)
    ctx.key, ctx.ints, ctx.kept = key, list(ints), len(kept)
    ctx.facts = [(tuple(t.shape), t.dtype, t.device) for t in (*kept, *numbers)]
    ctx.sizes = [size for i in unread for size in tensors[i].shape]
    ctx.counts = (len(tensors), len(ints), len(numbers))


def _backward(ctx: Any, seeds: Any) -> Any:
    saved = ctx.saved_tensors
    for tensor, facts in zip(saved, ctx.facts, strict=True):
        _check_saved(ctx.key, (tuple(tensor.shape), tensor.dtype, tensor.device), facts)
    inputs = find(ctx.key).recipe.inputs
    wanted = [i for i, needed in enumerate(ctx.needs_input_grad[1]) if needed and i in inputs]
    tensors, ints, numbers = ctx.counts
    given = (list(saved[: ctx.kept]), list(seeds), wanted, ctx.sizes, ctx.ints, list(saved[ctx.kept :]))
    grads = dict(zip(wanted, torch.ops.slangpy.call_backward(ctx.key, *given), strict=True))
    return None, [grads.get(i) for i in range(tensors)], None if ints else [], [None] * numbers


def _check_saved(key: str, found: Any, facts: Any) -> None:
    """Hooks on saved tensors may give back anything."""
    if found != facts:
        (sizes, *now), (expected, *was) = found, facts
        raise RuntimeError(
            f"slangpy: {key}: a saved tensor is {now[0]} {list(sizes)} on {now[1]}, but the forward pass had {was[0]} "
            f"{list(expected)} on {was[1]}; what a hook gives back must have the dtype, shape and device of what it was given"
        )


torch.library.register_autograd("slangpy::call", _backward, setup_context=_setup_context)


def _like(tensor: Any) -> Any:
    return torch.empty(tensor.shape, dtype=tensor.dtype, device=tensor.device)


def _merged(record: Record, tensors: Sequence[Any], written: Sequence[Any]) -> list[Any]:
    rest, own = iter(tensors), iter(written)
    return [next(own) if i in record.recipe.written else next(rest) for i in range(len(record.kinds))]


def _spread(record: Record, saved: Sequence[Any]) -> list[Any]:
    """The saved tensors at their places; None for those that are only written."""
    recipe, rest = record.recipe, iter(saved)
    unread = [i for i in recipe.written if not recipe.reads[i]]
    return [None if i in unread else next(rest) for i in range(len(record.kinds))]
