"""Slang calls as nodes of torch's autograd graph, and `diff_pair` for backward calls by hand. The only module that
imports torch when it is loaded.

Native code runs calls without gradients by itself. A call with a tensor that requires grad comes here once it is
launched, or before that when it writes torch tensors: what such a call does to `t` is `t.copy_(f(...))`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch  # pyright: ignore[reportMissingImports]
from torch.autograd.function import once_differentiable  # pyright: ignore[reportMissingImports]

from . import _native

if TYPE_CHECKING:
    from .call.plan import PlanView
    from .function import FunctionNode

_SLOT = _native.TorchSlot()
_CONSTANTS = frozenset((int, float, bool, str, type(None)))
_NARROW = (torch.float16, torch.bfloat16)
_LEAF_IN_PLACE = "a leaf Variable that requires grad is being used in an in-place operation."

_INFERENCE_IN_PLACE = (
    "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone to get a normal tensor "
    "before doing inplace update."
)


class diff_pair(_native.TorchPair):
    """A torch tensor with its gradient, for `bwds`: read for outputs, accumulated into for inputs.

    primal, grad: tensors of one shape, or None. float32 gradients are allowed for 16-bit primals.
    ValueError when shapes, dtypes or devices differ.
    """

    def __init__(self, primal: Any = None, grad: Any = None, index: int = -1, is_input: bool = True) -> None:
        if primal is not None and grad is not None:
            if tuple(primal.shape) != tuple(grad.shape):
                raise ValueError(f"diff_pair: primal has shape {tuple(primal.shape)}, grad has {tuple(grad.shape)}")
            if primal.device != grad.device:
                raise ValueError(f"diff_pair: primal is on {primal.device}, grad is on {grad.device}")
            wide = grad.dtype == torch.float32 and primal.dtype in _NARROW
            if primal.dtype != grad.dtype and not wide:
                raise ValueError(f"diff_pair: primal has dtype {primal.dtype}, grad has {grad.dtype}")
        super().__init__(primal, grad)
        self.index = index
        self.is_input = is_input

    def clear_tensors(self) -> None:
        """Drops both tensors."""
        self.primal = None
        self.grad = None

    def __repr__(self) -> str:
        names = ["None" if part is None else type(part).__name__ for part in (self.primal, self.grad)]
        return f"diff_pair(primal={names[0]}, grad={names[1]}, index={self.index}, is_input={self.is_input})"


class _Recipe:
    """What the graph has to know of all calls of one plan. Positions count the call's torch tensors in walk order."""

    __slots__ = ("inputs", "reads", "result_at", "returns", "whole", "written", "written_in_graph")

    def __init__(self, view: PlanView) -> None:
        leaves = view.torch_leaves()
        carries = [bool(leaf.get("carries")) for leaf in leaves]
        self.reads = [leaf["reads"] for leaf in leaves]
        self.inputs = [i for i, leaf in enumerate(leaves) if carries[i] and leaf["reads"]]
        self.written = [i for i, leaf in enumerate(leaves) if leaf["writes"]]
        self.written_in_graph = [i for i in self.written if carries[i]]
        self.whole = [bool(leaf.get("whole")) for leaf in leaves]
        self.result_at = next((i for i, leaf in enumerate(leaves) if leaf["name"].startswith("_result")), -1)
        self.returns = view.spec["result"]["mode"] == "torch"


class _Call:
    """One call in the graph: its arguments with slots for the tensors, which torch keeps itself."""

    __slots__ = ("args", "dirty", "kwargs", "node", "outputs", "places", "recipe", "saved", "shapes")

    node: FunctionNode
    recipe: _Recipe
    places: list[int]
    """Positions of the inputs of the graph's node."""
    saved: Sequence[Any] | None
    outputs: Any
    dirty: tuple[Any, ...]
    shapes: list[Any]


def _strip(value: Any, updates: list[Any] | None) -> Any:
    """The value with slots for torch tensors, and copies of what may change before the backward pass."""
    if type(value) in _CONSTANTS:
        return value
    if isinstance(value, torch.Tensor):
        return _SLOT
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, dict):
        return {key: _strip(item, updates) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_strip(item, updates) for item in value]
    get_this = getattr(value, "get_this", None)
    if get_this is not None and not isinstance(value, type):
        held = get_this()
        if updates is not None and hasattr(value, "update_this"):
            updates.append((value, held))
        return _strip(held, updates)
    return value


def _strip_call(
    node: FunctionNode, args: Any, kwargs: dict[str, Any], updates: list[Any] | None = None
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    bound = {} if node._bound is None or "_this" in kwargs else {"_this": _strip(node._bound, updates)}
    stripped = {key: _strip(value, updates) for key, value in kwargs.items()}
    return tuple([_strip(value, updates) for value in args]), {**stripped, **bound}


def join(node: FunctionNode, view: PlanView, args: Any, kwargs: dict[str, Any], tensors: list[Any], result: Any) -> Any:
    """Makes a call a node of torch's graph; called by native code. `result`: of the launch, None: not launched yet."""
    recipe = _recipe_of(view)
    if result is None:
        return _join_written(node, recipe, args, kwargs, tensors)
    call = _Call()
    call.node, call.recipe = node, recipe
    call.args, call.kwargs = _strip_call(node, args, kwargs)
    call.kwargs["_result"] = _SLOT
    call.places = places = [i for i in recipe.inputs if tensors[i].requires_grad]
    call.saved, call.outputs = tensors, result
    return StructuredSlangFunction.apply(call, *[tensors[i] for i in places])


class SlangFunction(torch.autograd.Function):
    """A launched call of numbers and tensors that gives a new tensor: the graph's node is native (call_graph.cpp)."""

    forward = staticmethod(_native._graph_forward)
    backward = staticmethod(_native._graph_backward)  # pyright: ignore[reportAssignmentType]


_full_apply = SlangFunction.apply
_apply = super(torch.autograd.Function, SlangFunction).apply  # pyright: ignore[reportAttributeAccessIssue]
"""`apply` without its checks for the transforms of torch.func, which native code makes itself."""
_has_transforms = getattr(torch._C, "_are_functorch_transforms_active", lambda: False)


class StructuredSlangFunction(torch.autograd.Function):
    """A call that writes no torch tensor but its result, already launched."""

    @staticmethod
    def forward(ctx: Any, call: _Call, *inputs: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        del inputs
        result = call.outputs
        assert call.saved is not None
        ctx.save_for_backward(*call.saved)
        call.saved = call.outputs = None  # the result would keep its own node alive
        ctx.call = call
        return result

    @staticmethod
    def backward(ctx: Any, seed: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        return _replay_in_python(ctx, seed)


def _replay_in_python(ctx: Any, seed: Any) -> Any:
    if torch.is_grad_enabled():  # create_graph: torch's wrapper costs more than the rest of this pass
        return _replay_once(ctx, seed, *ctx.saved_tensors)  # pyright: ignore[reportCallIssue]
    return _replay(ctx, seed)


def _gradient_of(tensor: Any) -> Any:
    """Memory for a gradient, not set: sums of 16-bit values are kept in float32 and rounded once."""
    if tensor.dtype in _NARROW:
        return torch.empty_like(tensor, dtype=torch.float32)
    return torch.empty_like(tensor)


def _recipe_of(view: PlanView) -> _Recipe:
    if view.graph is None:
        view.graph = _Recipe(view)
    return view.graph


def _replay(ctx: Any, seed: Any, *saved_tensors: Any) -> Any:
    del saved_tensors  # torch refuses a second derivative where one of the arguments requires grad
    call, needs = ctx.call, ctx.needs_input_grad
    if seed is None:
        return (None,) * len(needs)
    saved = ctx.saved_tensors
    values: list[Any] = list(saved)
    grads: list[Any] = [None] * len(needs)
    rounded: list[int] = []
    for number, place in enumerate(call.places, 1):
        if needs[number]:
            tensor = values[place]
            if tensor.dim() == 0 and tensor.device != seed.device:  # a CPU number beside CUDA tensors
                tensor = tensor.to(seed.device)
                rounded.append(number)
            elif tensor.dtype in _NARROW:
                rounded.append(number)
            grads[number] = grad = _gradient_of(tensor)
            values[place] = _native.TorchPair(tensor, grad, fresh=True)
    values.append(_native.TorchPair(None, None, seed))
    _native._call_with(call.node.bwds, call.args, call.kwargs, values)
    for number in rounded:
        grads[number] = grads[number].to(saved[call.places[number - 1]])
    return tuple(grads)


_replay_once = once_differentiable(_replay)


# --- calls that write torch tensors


def _aliased(tensors: list[Any], index: int) -> bool:
    own = tensors[index].untyped_storage().data_ptr()
    return any(i != index and t.untyped_storage().data_ptr() == own for i, t in enumerate(tensors))


def _join_written(node: FunctionNode, recipe: _Recipe, args: Any, kwargs: dict[str, Any], tensors: list[Any]) -> Any:
    """Runs a call that writes torch tensors, in place where torch can follow that, else into copies."""
    for i in recipe.written:
        if recipe.reads[i] and tensors[i].requires_grad and tensors[i].is_leaf:
            raise RuntimeError(f"{node.label}: {_LEAF_IN_PLACE}")
        if tensors[i].is_inference() and not torch.is_inference_mode_enabled():
            raise RuntimeError(f"{node.label}: {_INFERENCE_IN_PLACE}")
    call, updates = _Call(), []
    call.node, call.recipe = node, recipe
    call.args, call.kwargs = _strip_call(node, args, kwargs, updates)
    call.places = [i for i in recipe.inputs if tensors[i].requires_grad]
    values, saved = [t.detach() for t in tensors], list(tensors)
    copied: list[int] = []
    for i in recipe.written:
        target = tensors[i]
        in_place = i not in recipe.written_in_graph or not (target._is_view() or _aliased(tensors, i))
        if not call.places and target.requires_grad and not target.is_leaf:
            in_place = False  # torch's own copy_ cuts the gradient of the old value
        saved[i] = values[i].clone() if recipe.reads[i] else None
        if not in_place:
            keeps = recipe.reads[i] or recipe.whole[i]
            values[i] = values[i].clone() if keeps else torch.empty_like(values[i])
            copied.append(i)
        elif recipe.reads[i] and i not in call.places and i in recipe.written_in_graph:
            call.places.append(i)
    result = _native._call_with(node, call.args, call.kwargs, values)
    if call.places:
        result = _attach(call, saved, tensors, values, copied, result)
    for i in copied:
        target = tensors[i]
        if target.is_leaf and target.requires_grad:
            target.requires_grad_(False)  # a write-only output: its old value is not part of the graph
        target.copy_(values[i])
    for owner, held in updates:
        owner.update_this(held)
    return tensors[recipe.result_at] if recipe.result_at >= 0 else result


def _attach(
    call: _Call, saved: list[Any], tensors: list[Any], values: list[Any], copied: list[int], result: Any
) -> Any:
    """Gives the outputs of a launched call its node; those in `copied` are replaced in `values`."""
    recipe = call.recipe
    outputs: list[Any] = [result] if recipe.returns else []
    dirty: list[Any] = []
    for i in recipe.written_in_graph:
        if i in copied:
            outputs.append(values[i])
            continue
        outputs.append(tensors[i])
        if recipe.reads[i]:
            dirty.append(tensors[i])
        elif tensors[i].is_leaf and tensors[i].requires_grad:
            tensors[i].requires_grad_(False)
    call.saved, call.outputs, call.dirty = saved, outputs, tuple(dirty)
    call.shapes = [(t.shape, t.dtype, t.device) for t in tensors]
    given = WritingSlangFunction.apply(call, *[tensors[i] for i in call.places])
    assert isinstance(given, tuple)
    if recipe.returns:
        result, given = given[0], given[1:]
        call.shapes.append((result.shape, result.dtype, result.device))
        call.kwargs["_result"] = _SLOT
    for i, output in zip(recipe.written_in_graph, given, strict=True):
        if i in copied:
            values[i] = output
    return result


class WritingSlangFunction(torch.autograd.Function):
    """A launched call with outputs that the caller passed."""

    @staticmethod
    def forward(ctx: Any, call: _Call, *inputs: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        del inputs
        assert call.saved is not None
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*call.saved)
        ctx.mark_dirty(*call.dirty)
        outputs = tuple(call.outputs)
        ctx.mark_non_differentiable(*[o for o in outputs if not o.is_floating_point()])
        call.saved, call.outputs, call.dirty = None, None, ()
        ctx.call = call
        return outputs

    @staticmethod
    def backward(ctx: Any, *seeds: Any) -> Any:
        return _replay_written_once(ctx, seeds, *ctx.saved_tensors)  # pyright: ignore[reportCallIssue]

    @staticmethod
    def replay(ctx: Any, seeds: tuple[Any, ...]) -> Any:
        call, needs = ctx.call, ctx.needs_input_grad
        if all(seed is None for seed in seeds):
            return (None,) * len(needs)
        wanted = [i for number, i in enumerate(call.places, 1) if needs[number]]
        grads = gradients(call, ctx.saved_tensors, seeds, wanted)
        return (None, *[grads.get(i) for i in call.places])


def gradients(call: _Call, saved: Sequence[Any], seeds: Sequence[Any], wanted: Sequence[int]) -> dict[int, Any]:
    """Gradients of the tensors at the places `wanted`. saved: the call's tensors, None where they are only written.

    seeds: gradients of the result, if the call returns one, and of what it wrote in the graph; None counts as zero.
    """
    recipe: _Recipe = call.recipe
    values: list[Any] = list(saved)
    device = next(seed.device for seed in seeds if seed is not None)
    for i in wanted:
        if values[i].device != device:  # a CPU number beside CUDA tensors
            values[i] = values[i].to(device)
    grads = {i: _gradient_of(values[i]) for i in wanted}
    for i, grad in grads.items():
        values[i] = _native.TorchPair(values[i], grad, fresh=True)
    if recipe.returns:
        values.append(_native.TorchPair(None, None, _seed(seeds[0], call.shapes[-1], False)))
        seeds = seeds[1:]
    by_place = dict(zip(recipe.written_in_graph, seeds, strict=True))
    for i in recipe.written:
        if recipe.whole[i] and saved[i] is not None and i in by_place:
            values[i] = pair = _in_place(call, i, saved[i], by_place[i])
            if i in grads:
                grads[i] = pair.grad
        else:
            values[i] = _output(call, i, saved[i], by_place, grads.get(i))
    _native._call_with(call.node.bwds, call.args, _without_type(call.kwargs), values)
    return {i: grad.to(saved[i]) for i, grad in grads.items()}


def _replay_written(ctx: Any, seeds: tuple[Any, ...], *saved_tensors: Any) -> Any:
    del saved_tensors
    return WritingSlangFunction.replay(ctx, seeds)


_replay_written_once = once_differentiable(_replay_written)


def _seed(seed: Any, shape: Any, whole: bool) -> Any:
    """The gradient of an output; one zero seen as many where torch has none."""
    if seed is not None:
        return seed
    sizes, dtype, device = shape
    return torch.zeros(sizes if whole else (), dtype=dtype, device=device).expand(sizes)


def _output(call: _Call, i: int, old: Any, by_place: dict[int, Any], grad: Any) -> Any:
    """What the backward call is passed for a tensor that the call wrote."""
    sizes, dtype, device = call.shapes[i]
    if i not in by_place:  # without gradient; a replay may write it again
        return torch.empty(sizes, dtype=dtype, device=device) if old is None else old.clone()
    whole = call.recipe.whole[i]
    seed = _seed(by_place[i], call.shapes[i], whole)
    if old is None:
        return _native.TorchPair(torch.empty_like(seed) if whole else None, None, seed)
    if dtype in _NARROW:
        seed = seed.float()
    return _native.TorchPair(old, grad, seed, fresh=grad is not None)


def _in_place(call: _Call, i: int, old: Any, seed: Any) -> Any:
    """A tensor that the function reads and writes: one gradient, which stores consume and loads add to. What the
    function never stores passes it on."""
    gradient = _seed(seed, call.shapes[i], whole=True)
    dtype = torch.float32 if gradient.dtype in _NARROW else gradient.dtype
    gradient = gradient.to(dtype, copy=True, memory_format=torch.contiguous_format)
    return _native.TorchPair(old.clone(), gradient, gradient)


def _without_type(kwargs: dict[str, Any]) -> dict[str, Any]:
    """A backward call has no result type."""
    if isinstance(kwargs.get("_result"), (str, type)):
        return {name: value for name, value in kwargs.items() if name != "_result"}
    return kwargs


__all__ = ["diff_pair", "join"]
