"""Slang calls as nodes of torch's autograd graph, and `diff_pair` for backward calls by hand. The only module that
imports torch when it is loaded.

Native code runs calls without gradients by itself. A call with a tensor that requires grad comes here once it is
launched, or before that when it writes torch tensors: what such a call does to `t` is `t.copy_(f(...))`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import torch  # pyright: ignore[reportMissingImports]

from .. import _native
from .second import differentiable_once, gradients_in_graph
from .snapshot import SLOT as _SLOT, Arguments

if TYPE_CHECKING:
    from ..run.callbacks import Callbacks
    from ..run.plans import PlanView

_NARROW = (torch.float16, torch.bfloat16)
_TWICE = (
    "trying to differentiate twice a function that was marked with @once_differentiable: second derivatives do not reach "
    "into Slang functions that write torch tensors"
)
_LEAF_IN_PLACE = "a leaf Variable that requires grad is being used in an in-place operation."
_VIEW_ADVICE = (
    " A TensorView or DiffTensorView may be written: where the function only reads, declare ITensor<T, D> or IDiffTensor<T, D>, "
    "or pass tensor.clone()."
)

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
        for name, value in (("primal", primal), ("grad", grad)):
            if value is not None and not isinstance(value, torch.Tensor):
                raise TypeError(
                    f"diff_pair: {name} is a torch.Tensor or None, got {type(value).__name__}; for other values use "
                    "spy.diffPair, for a slangpy.Tensor with_grads()"
                )
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


class _Node(Protocol):
    """A FunctionNode, as messages name it."""

    @property
    def label(self) -> str: ...


class _Recipe:
    """What the graph has to know of all calls of one plan. Positions count the call's torch tensors in walk order."""

    __slots__ = ("inputs", "is_view", "names", "reads", "result_at", "returns", "whole", "written", "written_in_graph")

    def __init__(self, view: PlanView) -> None:
        leaves = view.torch_leaves()
        carries = [leaf.carries for leaf in leaves]
        self.reads = [leaf.reads for leaf in leaves]
        self.inputs = [i for i, leaf in enumerate(leaves) if carries[i] and leaf.reads]
        self.written = [i for i, leaf in enumerate(leaves) if leaf.writes]
        self.written_in_graph = [i for i in self.written if carries[i]]
        self.whole = [leaf.whole for leaf in leaves]
        self.names = [leaf.name for leaf in leaves]
        self.is_view = [leaf.is_view for leaf in leaves]
        self.result_at = next((i for i, leaf in enumerate(leaves) if leaf.name.startswith("_result")), -1)
        self.returns = view.spec.result.mode == "torch"


class _Call:
    """One call in the graph: its arguments with slots for the tensors, which torch keeps itself, and copies of what
    may change before the backward pass."""

    __slots__ = (
        "args",
        "dirty",
        "given",
        "kept",
        "kwargs",
        "made",
        "node",
        "outputs",
        "pairs",
        "places",
        "recipe",
        "saved",
        "shapes",
    )

    node: _Node
    recipe: _Recipe
    given: Arguments
    pairs: Sequence[tuple[Any, Any]]
    """DiffPairs of the caller, and the copies that stand for them."""
    places: list[int]
    """Positions of the inputs of the graph's node."""
    saved: Sequence[Any] | None
    outputs: Any
    dirty: tuple[Any, ...]
    shapes: list[Any]
    kept: Any
    """What the saved tensors were, and `made` the outputs in the graph: what comes back is compared with it."""
    made: Any

    def remember(self) -> None:
        """Notes what `saved` and `outputs` are, and lets go of them: the result would keep its own node alive."""
        outputs = self.outputs if isinstance(self.outputs, list) else [self.outputs]
        self.kept = _native.SavedTensors(self.node.label, self.saved)
        self.made = _native.SavedTensors(self.node.label, outputs)
        self.saved = self.outputs = None

    def checked(self, saved: Sequence[Any]) -> list[Any]:
        return self.kept.check(saved)

    def checked_seed(self, seed: Any) -> Any:
        return self.made.check([seed], "the gradient")[0]


def begin(
    node: _Node,
    callbacks: Callbacks,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    tensors: list[Any],
    changed: list[Any],
) -> _Call:
    """A call that is to be a node of torch's graph, before its launch; called by native code.

    args, kwargs: with slots for tensors; tensors: those in walk order; changed: slangpy Tensors that the call reads and
    writes.
    """
    call = _Call()
    call.node, call.recipe, call.saved = node, _recipe_of(callbacks.plan), tensors
    call.given = Arguments(args, kwargs)
    call.args, call.kwargs = call.given.copies(changed)
    call.pairs = call.given.pairs
    call.places = [i for i in call.recipe.inputs if tensors[i].requires_grad]
    return call


def join(call: _Call, result: Any) -> Any:
    """Makes a launched call that writes no torch tensor a node of torch's graph; called by native code."""
    tensors: Any = call.saved
    del call.given
    call.kwargs["_result"] = _SLOT
    call.outputs = result
    return StructuredSlangFunction.apply(call, *[tensors[i] for i in call.places])


class SlangFunction(torch.autograd.Function):
    """A launched call of numbers and tensors that gives a new tensor: the graph's node is native (src/native/call/torch/graph.cpp)."""

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
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*call.saved)
        call.remember()
        ctx.call = call
        return result

    @staticmethod
    def backward(ctx: Any, seed: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        return _replay_in_python(ctx, seed)


def _replay_in_python(ctx: Any, seed: Any) -> Any:
    call, needs = ctx.call, ctx.needs_input_grad[1:]
    saved = ctx.saved_tensors  # once: checkpoints refuse to unpack twice
    if seed is None:
        return (None,) * (len(needs) + 1)
    if torch.is_grad_enabled():  # create_graph
        return None, *gradients_in_graph(_replay, call, saved, needs, seed)
    return None, *_replay(call, saved, needs, seed)


def _gradient_of(tensor: Any) -> Any:
    """Memory for a gradient, not set: sums of 16-bit values are kept in float32 and rounded once."""
    if tensor.dtype in _NARROW:
        return torch.empty_like(tensor, dtype=torch.float32)
    return torch.empty_like(tensor)


def _recipe_of(view: PlanView) -> _Recipe:
    if view.graph is None:
        view.graph = _Recipe(view)
    return view.graph


def _replay(call: Any, saved: Sequence[Any], needs: Sequence[bool], seed: Any) -> list[Any]:
    """The gradients of the inputs, None where not needed. torch takes each to the type and the device of its input."""
    saved, seed = call.checked(saved), call.checked_seed(seed)
    values: list[Any] = list(saved)
    grads: list[Any] = [None] * len(needs)
    for number, place in enumerate(call.places):
        if needs[number]:
            tensor = values[place]
            if tensor.dim() == 0 and tensor.device != seed.device:  # a CPU number beside CUDA tensors
                tensor = tensor.to(seed.device)
            grads[number] = grad = _gradient_of(tensor)
            values[place] = _native.TorchPair(tensor, grad, fresh=True)
    values.append(_native.TorchPair(None, None, seed))
    _run_backward(call, call.kwargs, values)
    return grads


def _run_backward(call: Any, kwargs: dict[str, Any], values: list[Any]) -> None:
    """The backward call, with a tensor or pair for each slot."""
    for original, copy in call.pairs:
        copy.grad = original.grad
    _native._call_with(call.node.bwds, call.args, kwargs, values)
    for original, copy in call.pairs:
        original.grad = copy.grad


# --- calls that write torch tensors


def _aliased(tensors: list[Any], index: int) -> bool:
    """Whether another argument has memory of this one. Those without elements share none: CUDA's lie at address 0."""
    own = tensors[index].untyped_storage().data_ptr()
    others = (t for i, t in enumerate(tensors) if i != index and t.numel())
    return tensors[index].numel() > 0 and any(t.untyped_storage().data_ptr() == own for t in others)


def join_written(call: _Call, told: Sequence[tuple[Any, Any]]) -> Any:
    """Runs a call that writes torch tensors, in place where torch can follow that, else into copies.

    told: (object, what its get_this() gave) for objects with update_this().
    """
    node, recipe, tensors = call.node, call.recipe, list(call.saved or ())
    for i in recipe.written:
        if recipe.reads[i] and tensors[i].requires_grad and tensors[i].is_leaf:
            advice = _VIEW_ADVICE if recipe.is_view[i] else ""
            raise RuntimeError(f"{node.label}: argument {recipe.names[i]}: {_LEAF_IN_PLACE}{advice}")
        if tensors[i].is_inference() and not torch.is_inference_mode_enabled():
            raise RuntimeError(f"{node.label}: {_INFERENCE_IN_PLACE}")
    values, saved = [t.detach() for t in tensors], list(tensors)
    copied: list[int] = []
    for i in recipe.written:
        target = tensors[i]
        in_place = i not in recipe.written_in_graph or not (target._is_view() or _aliased(tensors, i))
        if not call.places and target.requires_grad and not target.is_leaf:
            in_place = False  # torch's own copy_ cuts the gradient of the old value
        saved[i] = target.clone() if recipe.reads[i] else None  # in the graph: second derivatives are told of there
        if not in_place:
            keeps = recipe.reads[i] or recipe.whole[i]
            values[i] = values[i].clone() if keeps else torch.empty_like(values[i])
            copied.append(i)
        elif recipe.reads[i] and i not in call.places and i in recipe.written_in_graph:
            call.places.append(i)
    result = _native._call_with(node, call.given.args, call.given.kwargs, values)
    del call.given
    if call.places:
        result = _attach(call, saved, tensors, values, copied, result)
    for i in copied:
        target = tensors[i]
        if target.is_leaf and target.requires_grad:
            target.requires_grad_(False)  # a write-only output: its old value is not part of the graph
        target.copy_(values[i])
    for owner, held in told:
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
        call.remember()
        call.dirty = ()
        ctx.call = call
        return outputs

    @staticmethod
    def backward(ctx: Any, *seeds: Any) -> Any:
        call, needs, saved = ctx.call, ctx.needs_input_grad, ctx.saved_tensors
        if all(seed is None for seed in seeds):
            return (None,) * len(needs)
        wanted = [i for number, i in enumerate(call.places, 1) if needs[number]]
        with torch.no_grad():
            checked = call.made.check(seeds, "a gradient")
            found = gradients(call, call.checked(saved), checked, wanted)
        grads = (None, *[found.get(i) for i in call.places])
        return tuple(differentiable_once(grads, (*seeds, *saved), _TWICE)) if torch.is_grad_enabled() else grads


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
    _run_backward(call, _without_type(call.kwargs), values)
    return {i: grad.to(saved[i]) for i, grad in grads.items()}


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


__all__ = ["begin", "diff_pair", "join", "join_written"]
