"""The torch.autograd.Function that programs with kernels write by hand: `slangpy.autograd_function`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch  # pyright: ignore[reportMissingImports]

from slangpy.pytorch.raw.kernel import Kernel

_BLOCKS = {1: (256, 1, 1), 2: (16, 16, 1), 3: (8, 8, 4)}


def autograd_function(
    forward: Kernel, backward: Kernel | None = None, *, grid: Any = None, block: Any = None, outputs: Any = None
) -> Callable[..., Any]:
    """A function of tensors that runs a differentiable kernel and joins torch's autograd.

    forward: a kernel, or its `.fwd`, which means the same here. backward: its `.bwd`, which is also what is taken when it is
    left out. outputs: the parameters that the kernel writes: a name, several, or a dict of names and shapes (or functions
    of the arguments that give them); left out: the last DiffTensorView, of the shape of the first tensor. block: threads of
    a block. grid: blocks, three ints or a function of the arguments; left out: one thread for each element of the first
    output, along its first three dimensions.

    The function takes the other parameters, by position or by name, and gives the outputs. Gradients reach the arguments
    of DiffTensorView parameters.
    """
    return AutogradFunction(forward, backward, grid, block, outputs)


class AutogradFunction:
    """What autograd_function returns."""

    def __init__(self, forward: Any, backward: Any, grid: Any, block: Any, outputs: Any) -> None:
        if not isinstance(forward, Kernel) or forward._derivative == "bwd":
            raise TypeError(f"autograd_function: 'forward' must be a kernel of loadModule, got {forward!r}")
        record = forward._record
        self._kernel = Kernel(record, forward._programs)
        self._backward = self._kernel.bwd if backward is None else backward
        if (
            not isinstance(self._backward, Kernel)
            or self._backward._derivative != "bwd"
            or self._backward._record != record
        ):
            raise TypeError(f"autograd_function: 'backward' must be {record.name}.bwd, got {backward!r}")
        self._pairs = [p.name for p in record.parameters if p.type.kind == "diff_view"]
        if not self._pairs:
            raise TypeError(f"autograd_function: {record.name} has no DiffTensorView parameter")
        self._outputs = self._output_shapes(outputs)
        self._inputs = [p.name for p in record.parameters if p.name not in self._outputs]
        self._grid, self._block = grid, block
        self.__name__ = record.name
        self.__doc__ = record.signature

    def _output_shapes(self, outputs: Any) -> dict[str, Any]:
        """Output -> its shape, a function that gives it, or None for that of the first tensor."""
        if outputs is None:
            outputs = self._pairs[-1]
        if isinstance(outputs, str):
            outputs = [outputs]
        found = dict(outputs) if isinstance(outputs, Mapping) else dict.fromkeys(outputs)
        for name in found:
            if name not in self._pairs:
                raise ValueError(
                    f"autograd_function: '{name}' is not a DiffTensorView parameter of {self._kernel._label}; there are: "
                    f"{', '.join(self._pairs)}"
                )
        return found

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        label = self._kernel._label
        if len(args) > len(self._inputs):
            raise ValueError(
                f"{label}: takes {len(self._inputs)} arguments ({', '.join(self._inputs)}), got {len(args)}"
            )
        values = dict(zip(self._inputs, args, strict=False))
        for name, value in kwargs.items():
            if name not in self._inputs or name in values:
                what = "is given twice" if name in values else f"is no argument; they are {', '.join(self._inputs)}"
                raise ValueError(f"{label}: '{name}' {what}")
            values[name] = value
        names = [name for name in self._pairs if name in values]
        tensors = [values[name] for name in names]
        for name, tensor in zip(names, tensors, strict=True):
            if not isinstance(tensor, torch.Tensor):
                raise TypeError(f"{label}: '{name}' must be a torch tensor, got {type(tensor).__name__}")
        if not tensors:
            raise ValueError(f"{label}: no tensor is given for any of {', '.join(self._pairs)}")
        results = _Apply.apply(self, names, values, *tensors)
        return results[0] if len(results) == 1 else results

    def _new_outputs(self, values: Mapping[str, Any], first: Any) -> dict[str, Any]:
        made = {}
        for name, shape in self._outputs.items():
            sizes: Any = first.shape if shape is None else shape(values) if callable(shape) else shape
            made[name] = torch.zeros(tuple(sizes), dtype=first.dtype, device=first.device)
        return made

    def _launch(self, launchable: Any, values: Mapping[str, Any], output: Any) -> None:
        sizes: Sequence[int] = tuple(output.shape[:3]) or (1,)
        block = self._block or _BLOCKS[len(sizes)]
        if self._grid is None:
            launchable.launch(sizes, block)
        else:
            launchable.launchRaw(block, self._grid(values) if callable(self._grid) else self._grid)


class _Apply(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, function: AutogradFunction, names: list[str], values: dict[str, Any], *tensors: Any) -> Any:
        outputs = function._new_outputs(values, tensors[0])
        function._launch(function._kernel(**values, **outputs), values, next(iter(outputs.values())))
        ctx.save_for_backward(*tensors, *outputs.values())
        ctx.spy_call = (function, names, {n: v for n, v in values.items() if n not in names}, list(outputs))
        return tuple(outputs.values())

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        function, names, values, output_names = ctx.spy_call
        saved = ctx.saved_tensors
        tensors, outputs = saved[: len(names)], saved[len(names) :]
        wanted = ctx.needs_input_grad[3:]
        zeros = [
            torch.zeros(t.shape, dtype=torch.float32, device=t.device) if w else None
            for t, w in zip(tensors, wanted, strict=True)
        ]
        call = {**values, **{n: (t, g) for n, t, g in zip(names, tensors, zeros, strict=True)}}
        for name, output, gradient in zip(output_names, outputs, gradients, strict=True):
            # The kernel writes its outputs again and consumes their gradients.
            call[name] = (output.clone(), gradient.to(torch.float32, memory_format=torch.contiguous_format, copy=True))
        arguments = {**values, **dict(zip(names, tensors, strict=True))}
        function._launch(function._backward(**call), arguments, outputs[0])
        typed = [g if g is None else g.to(t.dtype) for g, t in zip(zeros, tensors, strict=True)]
        return (None, None, None, *typed)
