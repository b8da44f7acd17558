"""torch tensors in calls: autograd, and backward calls by hand (docs: torch). The only module that imports torch.

One call with inputs that require grad is one `torch.autograd.Function`: its forward runs the plain call, its backward
the function's `bwds` with the same memory seen as Tensors. Tensors that a call writes behave as `t.copy_(f(...))`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch  # pyright: ignore[reportMissingImports]

from . import _native
from .tensor import Tensor

if TYPE_CHECKING:
    from .function import FunctionNode


class diff_pair(_native.TorchPair):
    """A torch tensor with its gradient, for `bwds`: read for outputs, accumulated into for inputs.

    Either part may be None; shapes must agree.
    """

    def __init__(self, primal: Any = None, grad: Any = None, index: int = -1, is_input: bool = True) -> None:
        if primal is not None and grad is not None:
            if tuple(primal.shape) != tuple(grad.shape):
                raise ValueError(f"diff_pair: primal has shape {tuple(primal.shape)}, grad has {tuple(grad.shape)}")
            if primal.device != grad.device:
                raise ValueError(f"diff_pair: primal is on {primal.device}, grad is on {grad.device}")
            wide = grad.dtype == torch.float32 and primal.dtype in (torch.float16, torch.bfloat16)
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


class _Shared:
    """torch memory seen as Tensors of a device: in place where the device can read it, else copied there and back."""

    def __init__(self, device: Any) -> None:
        self.device = device
        name = device.info.type.name
        self.in_place = name in ("cpu", "cuda", "null")
        self._copies: list[tuple[Tensor, Any]] = []

    def wrap(self, tensor: Any, written: bool = False) -> Tensor:
        tensor = tensor.detach()
        if self.in_place:
            return Tensor.from_dlpack(self.device, tensor)
        copy = Tensor.from_numpy(self.device, tensor.cpu().numpy())
        if written:
            self._copies.append((copy, tensor))
        return copy

    def finish(self) -> None:
        for copy, tensor in self._copies:
            tensor.copy_(torch.from_numpy(copy.to_numpy()))


def _map_values(value: Any, change: Callable[[Any], Any]) -> Any:
    """The value with every torch tensor and pair replaced, in the order of the native walk."""
    if isinstance(value, (torch.Tensor, _native.TorchPair)):
        return change(value)
    if isinstance(value, dict):
        return {key: value[key] if key == "_type" else _map_values(value[key], change) for key in sorted(value)}
    if isinstance(value, (list, tuple)):
        return [_map_values(item, change) for item in value]
    get_this = getattr(value, "get_this", None)
    if get_this is not None and not isinstance(value, type):
        return _map_values(get_this(), change)
    return value


def _map_call(
    node: FunctionNode, args: Any, kwargs: Any, change: Callable[[Any], Any]
) -> tuple[list[Any], dict[str, Any]]:
    if node._bound is not None:
        args = (node._bound, *args)
    elif "_this" in kwargs:
        kwargs = dict(kwargs)
        args = (kwargs.pop("_this"), *args)
    new_args = [_map_values(a, change) for a in args]
    return new_args, {k: _map_values(v, change) for k, v in kwargs.items()}


def call_torch(node: FunctionNode, args: Any, kwargs: Any) -> Any:
    """A call with torch tensors that native code does not run by itself."""
    if node.options.bwds:
        return _backward_by_hand(node, args, kwargs)
    result = kwargs.get("_result")
    wanted = result if result is not None else node.options.return_type
    if wanted is not None and not isinstance(wanted, torch.Tensor) and wanted not in ("torch", torch.Tensor):
        raise RuntimeError(
            f"{node.label}: an input requires grad, but the result is no torch tensor and would leave the graph; "
            "call .detach() on the inputs or use torch.no_grad()"
        )
    call = _Call(node, args, kwargs)
    outputs = _SlangFunction.apply(call, *[call.tensors[i] for i in call.inputs])
    return call.deliver(list(outputs))


def _backward_by_hand(node: FunctionNode, args: Any, kwargs: Any) -> None:
    shared = _Shared(node.module.device)
    stream = 0

    def change(value: Any) -> Any:
        nonlocal stream
        if isinstance(value, torch.Tensor):
            stream = stream or _native._torch_stream(value)
            return shared.wrap(value)
        primal = value.primal if value.primal is not None else value.grad
        if primal is None:
            raise ValueError(f"{node.label}.bwds: a diff_pair without primal and grad cannot be an argument")
        stream = stream or _native._torch_stream(primal)
        tensor = shared.wrap(primal)
        if value.grad is None:
            return tensor
        grad = shared.wrap(value.grad, written=True)
        return tensor.with_grads(grad_in=grad, grad_out=grad, zero=False)

    new_args, new_kwargs = _map_call(node, args, kwargs, change)
    _run(node, new_args, new_kwargs, stream)
    shared.finish()


def _run(node: FunctionNode, args: list[Any], kwargs: dict[str, Any], stream: int) -> Any:
    plain = node.root_of_call()
    if stream and not node._stream:
        plain = plain._with(stream=stream)
    return _native.CallSite.__call__(plain, *args, **kwargs)


class _Call:
    """One differentiable call: where its tensors stand among the arguments, and which are written."""

    def __init__(self, node: FunctionNode, args: Any, kwargs: Any) -> None:
        self.node, self.args, self.kwargs = node, args, kwargs
        self.tensors: list[Any] = []

        def collect(value: Any) -> Any:
            if isinstance(value, _native.TorchPair):
                raise TypeError(f"{node.label}: diff_pair belongs to .bwds(); pass the tensor itself")
            self.tensors.append(value)
            return value

        _map_call(node, args, kwargs, collect)
        with torch.no_grad():
            view = node._plan_of(*args, **kwargs)
        leaves = view.torch_leaves(lambda: node._describe(*args, **kwargs))
        if len(leaves) != len(self.tensors):
            raise NotImplementedError(
                f"{node.label}: torch tensors inside lists of dicts cannot require grad yet; pass a dict of tensors"
            )
        spec = view.spec["leaves"]
        self.written = [i for i, leaf in enumerate(leaves) if spec[leaf]["writes"]]
        self.read = [spec[leaf]["reads"] for leaf in leaves]
        self.whole = [len(spec[leaf]["inner"]) > 0 and spec[leaf].get("tensor", False) for leaf in leaves]
        self.result_index = next((i for i, leaf in enumerate(leaves) if spec[leaf]["name"].startswith("_result")), -1)
        self.inputs = [
            i for i, t in enumerate(self.tensors) if self.read[i] and i != self.result_index and t.is_floating_point()
        ]
        self.returns = False
        self._check_in_place()

    def _check_in_place(self) -> None:
        for i in self.written:
            tensor = self.tensors[i]
            if self.read[i] and tensor.requires_grad and tensor.is_leaf:
                raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")

    def substitute(self, values: list[Any]) -> tuple[list[Any], dict[str, Any]]:
        pending = iter(values)
        return _map_call(self.node, self.args, self.kwargs, lambda _: next(pending))

    def forward(self, inputs: tuple[Any, ...]) -> tuple[list[Any], list[Any]]:
        """Runs the plain call into fresh memory; returns all outputs and what backward must keep."""
        values = list(self.tensors)
        for i, tensor in zip(self.inputs, inputs, strict=False):
            values[i] = tensor.detach()
        saved = [values[i] for i in self.inputs]
        for i in self.written:
            if self.read[i]:
                if i in self.inputs:
                    saved[self.inputs.index(i)] = values[i].clone()
                values[i] = values[i].clone()
            else:
                values[i] = torch.empty_like(values[i].detach())
        values = [v.detach() for v in values]
        args, kwargs = self.substitute(values)
        result = _native.CallSite.__call__(self.node.root_of_call(), *args, **kwargs)
        outputs = [values[i] for i in self.written]
        self.returns = isinstance(result, torch.Tensor) and self.result_index < 0
        if result is not None and not isinstance(result, torch.Tensor):
            raise RuntimeError(
                f"{self.node.label}: the result is a {type(result).__name__}, which cannot carry gradients; "
                "call .detach() on the inputs or use torch.no_grad()"
            )
        return ([result, *outputs] if self.returns else outputs), saved

    def deliver(self, outputs: list[Any]) -> Any:
        """Writes outputs into the tensors that the caller passed, as `t.copy_(...)` would, and gives the result."""
        result = outputs.pop(0) if self.returns else None
        for i, value in zip(self.written, outputs, strict=False):
            target = self.tensors[i]
            if target.is_leaf and target.requires_grad:
                target.requires_grad_(False)  # a write-only output: its old value is not part of the graph
            target.copy_(value)
            if i == self.result_index:
                result = target
        return result

    def backward(self, saved: tuple[Any, ...], needs: tuple[bool, ...], seeds: list[Any]) -> list[Any]:
        """Gradients of the inputs that are asked for; None for the others."""
        node = self.node.bwds
        shared = _Shared(node.module.device)
        result_seed = seeds.pop(0) if self.returns else None
        if result_seed is None and all(seed is None for seed in seeds):
            return [None] * len(self.inputs)
        grads: dict[int, Any] = {}
        values: list[Any] = list(self.tensors)
        for position, i in enumerate(self.inputs):
            values[i] = saved[position]
            if needs[position]:
                grads[i] = torch.zeros(saved[position].shape, dtype=saved[position].dtype, device=saved[position].device)
        by_output = dict(zip(self.written, seeds, strict=False))
        wrapped = [self._wrap(shared, i, values[i], grads.get(i), by_output) for i in range(len(values))]
        args, kwargs = self.substitute(wrapped)
        if self.returns:
            assert result_seed is not None or any(seed is not None for seed in seeds)
            seed = result_seed if result_seed is not None else torch.zeros_like(self.result_like)
            tensor = shared.wrap(seed)
            kwargs["_result"] = tensor.with_grads(grad_in=tensor, zero=False)
        elif isinstance(kwargs.get("_result"), (str, type)):
            del kwargs["_result"]
        stream = _native._torch_stream(self.tensors[0])
        _run(node, args, kwargs, stream)
        shared.finish()
        return [grads.get(i) for i in self.inputs]

    def _wrap(self, shared: _Shared, i: int, value: Any, grad: Any, by_output: dict[int, Any]) -> Tensor:
        if i in by_output:
            seed = by_output[i]
            if not self.read[i]:
                seed = torch.zeros_like(value) if seed is None else seed
                tensor = shared.wrap(seed)
                return tensor.with_grads(grad_in=tensor, zero=False)
            seed = torch.zeros_like(value) if seed is None else seed
            grad = torch.zeros_like(value) if grad is None else grad
            primal = shared.wrap(value.clone())
            return primal.with_grads(grad_in=shared.wrap(seed), grad_out=shared.wrap(grad, written=True), zero=False)
        tensor = shared.wrap(value)
        if grad is None:
            return tensor
        return tensor.with_grads(grad_out=shared.wrap(grad, written=True), zero=False)

    result_like: Any = None


class _SlangFunction(torch.autograd.Function):
    """The node in torch's graph."""

    @staticmethod
    def forward(ctx: Any, call: _Call, *inputs: Any) -> Any:
        outputs, saved = call.forward(inputs)
        ctx.call = call
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*saved)
        if call.returns:
            call.result_like = torch.empty(0).expand(0) if not outputs else _meta_like(outputs[0])
        ctx.mark_non_differentiable(*[o for o in outputs if not o.is_floating_point()])
        return tuple(outputs)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *seeds: Any) -> Any:
        needs = ctx.needs_input_grad[1:]
        return (None, *ctx.call.backward(ctx.saved_tensors, needs, list(seeds)))


def _meta_like(tensor: Any) -> Any:
    """Shape, dtype and device of a tensor without its memory: zeros of it can be made later."""
    return torch.empty((1,), dtype=tensor.dtype, device=tensor.device).expand(tensor.shape) if tensor.dim() else (
        torch.empty((), dtype=tensor.dtype, device=tensor.device)
    )


def create_torch_device(
    type: Any = None,
    torch_device: Any = None,
    enable_debug_layers: bool = False,
    include_paths: Any = (),
    enable_print: bool = False,
    enable_hot_reload: bool = True,
    enable_compilation_reports: bool = False,
    label: str = "",
) -> Any:
    """A device whose memory torch shares: CUDA where torch has it, else the CPU.

    torch_device selects the GPU: int, "cuda:1" or torch.device; None is torch's current one.
    RuntimeError when `type` is CUDA and torch has none.
    """
    from ._native import Device, DeviceType
    from .device import SHADER_PATH

    type = DeviceType.automatic if type is None else type
    if type == DeviceType.automatic:
        type = DeviceType.cuda if torch.cuda.is_available() else DeviceType.cpu
    options = {
        "enable_debug_layers": enable_debug_layers,
        "compiler_options": {"include_paths": [SHADER_PATH, *map(str, include_paths)]},
        "enable_print": enable_print,
        "enable_hot_reload": enable_hot_reload,
        "enable_compilation_reports": enable_compilation_reports,
        "label": label,
    }
    if type != DeviceType.cuda:
        return Device(type=type, **options)
    if not torch.cuda.is_available():
        raise RuntimeError(
            "create_torch_device: CUDA was asked for, but torch has no CUDA device "
            f"(torch {torch.__version__}); use type=DeviceType.cpu"
        )
    index = torch.cuda.current_device() if torch_device is None else torch.device(torch_device).index
    index = 0 if index is None else index
    torch.zeros(1, device=f"cuda:{index}")  # makes torch's context, which the device then shares
    adapters = Device.enumerate_adapters(DeviceType.cuda)
    if index >= len(adapters):
        raise ValueError(f"create_torch_device: there is no cuda:{index}; {len(adapters)} CUDA devices exist")
    return Device(type=type, adapter_luid=adapters[index].luid, **options)


__all__ = ["call_torch", "create_torch_device", "diff_pair"]
