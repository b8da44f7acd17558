"""Gradients that torch asks for with `create_graph=True`: a node of the graph whose backward pass is a second-order call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch  # pyright: ignore[reportMissingImports]

from .. import _native

_NARROW = (torch.float16, torch.bfloat16)
_THIRD = "trying to differentiate a Slang function three times: third derivatives do not reach into Slang functions"
Replay = Callable[[Any, Sequence[Any], Sequence[bool], Any], Sequence[Any]]


def gradients_in_graph(replay: Replay, call: Any, saved: Sequence[Any], needs: Sequence[bool], seed: Any) -> Any:
    """The gradients that `replay(call, saved, needs, seed)` gives, by the places of the call's inputs, as part of torch's
    graph. needs: which of them are wanted."""
    inputs = [saved[place] for place in call.places]
    return Gradients.apply(replay, call, tuple(saved), tuple(needs), seed, *inputs)


class Gradients(torch.autograd.Function):
    """The gradients of a call's inputs as functions of those inputs, and of the gradient of the call's result."""

    @staticmethod
    def forward(  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx: Any, replay: Replay, call: Any, saved: Sequence[Any], needs: Sequence[bool], seed: Any, *inputs: Any
    ) -> Any:
        del inputs
        grads = tuple(replay(call, saved, needs, seed))
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(seed, *saved)
        ctx.call = call
        return grads

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        given = ctx.saved_tensors
        with torch.no_grad():
            found = _second(ctx.call, given, cotangents, ctx.needs_input_grad[4:])
        if torch.is_grad_enabled():
            found = differentiable_once(found, (*cotangents, *given), _THIRD)
        return None, None, None, None, *found


def _second(call: Any, given: Sequence[Any], cotangents: Sequence[Any], needs: Sequence[bool]) -> list[Any]:
    """What `needs` asks for of the gradients by the seed and by the call's inputs. given: the seed and the tensors."""
    seed, *originals = given
    _refuse_gradients(call, (call.args, call.kwargs))
    tangents = {
        place: _beside(tangent, seed)
        for place, tangent in zip(call.places, cotangents, strict=True)
        if tangent is not None
    }
    if not tangents:
        return [None] * len(needs)
    seed, saved = call.checked_seed(seed), [_beside(tensor, seed) for tensor in call.checked(tuple(originals))]
    wanted = [place for place, need in zip(call.places, needs[1:], strict=True) if need]
    by_seed = _along(call, saved, tangents, seed) if needs[0] else None
    found = _by_inputs(call, saved, tangents, seed, wanted) if wanted else {}
    return [by_seed, *(found[i].to(originals[i]) if i in found else None for i in call.places)]


def _refuse_gradients(call: Any, value: Any) -> None:
    """Forward mode would take what slangpy's own objects keep as gradients for tangents."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for item in value:
            _refuse_gradients(call, item)
    elif isinstance(value, (_native.DiffPair, _native.PackedArg)) or (
        getattr(value, "grad_in", None) is not None or getattr(value, "grad_out", None) is not None
    ):
        raise NotImplementedError(
            f"{call.node.label}: second derivatives (create_graph=True) do not reach through a {type(value).__name__} that "
            "may keep a gradient of its own; pass its value, or tensor.detach()"
        )


class _Refusal(torch.autograd.Function):
    """Gradients whose own derivative is refused. Their sources are inputs, so that no way back goes around it."""

    @staticmethod
    def forward(ctx: Any, text: str, count: int, *tensors: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx.text = text
        return tuple([tensor.detach() for tensor in tensors[:count]])

    @staticmethod
    def backward(ctx: Any, *seeds: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        raise RuntimeError(ctx.text)


def differentiable_once(grads: Sequence[Any], sources: Sequence[Any], text: str) -> Sequence[Any]:
    """The gradients, as tensors that require grad where one of their sources does; their derivative is the error `text`."""
    wanted = [grad for grad in grads if grad is not None]
    anchors = [source for source in sources if source is not None and source.requires_grad]
    if not wanted or not anchors:
        return grads
    marked = iter(_Refusal.apply(text, len(wanted), *wanted, *anchors))  # pyright: ignore[reportArgumentType]
    return [None if grad is None else next(marked) for grad in grads]


def _beside(tensor: Any, seed: Any) -> Any:
    """A CPU number beside CUDA tensors goes to their device."""
    return tensor.to(seed.device) if tensor.dim() == 0 and tensor.device != seed.device else tensor


def _along(call: Any, saved: Sequence[Any], tangents: dict[int, Any], seed: Any) -> Any:
    """How the call's result changes along the tangents: a forward-mode call."""
    values: list[Any] = list(saved)
    for place, tangent in tangents.items():
        values[place] = _native.TorchPair(values[place], tangent)
    result = torch.empty_like(seed)
    values.append(_native.TorchPair(None, result))
    _native._call_with(call.node.fwds, call.args, call.kwargs, values)
    return result


def _by_inputs(
    call: Any, saved: Sequence[Any], tangents: dict[int, Any], seed: Any, wanted: Sequence[int]
) -> dict[int, Any]:
    """The derivatives, by the inputs at the places `wanted`, of the gradients along the tangents."""
    values: list[Any] = list(saved)
    grads: dict[int, Any] = {}
    for place in wanted:
        tensor = values[place]
        dtype = torch.float32 if tensor.dtype in _NARROW else tensor.dtype
        grads[place] = torch.empty_like(tensor, dtype=dtype)
    for place in call.places:
        grad, tangent = grads.get(place), tangents.get(place)
        if grad is not None or tangent is not None:
            values[place] = _native.TorchPair(values[place], grad, tangent, fresh=grad is not None)
    values.append(_native.TorchPair(None, None, seed))
    _native._call_with(call.node._bwds_twice, call.args, call.kwargs, values)
    return grads


__all__ = ["gradients_in_graph"]
