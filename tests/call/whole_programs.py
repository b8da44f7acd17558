"""Whole small programs, each with what it computes in torch: values and gradients are compared in float64."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

import slangpy as spy

FOLDER = Path(__file__).parent / "gradient"


@dataclass(frozen=True)
class Program:
    """A program of a Slang file.

    run: the module's functions on float32 tensors, which gives one tensor or several. reference: the same in torch on
    float64. shapes and ranges: of the inputs, random numbers that all have gradients.

    With `elements` (Slang types of the inputs' elements) the inputs are Tensors with gradients, and `run` gives the
    function and its arguments for a call and then a backward call. `out` is the shape and the element type of a tensor
    that is written, the last argument; without it the function returns a value.
    """

    run: Callable[..., Any]
    reference: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]
    ranges: tuple[tuple[float, float], ...] = ()
    error: float = 2e-5
    """Of values and gradients, relative to the largest of each."""
    elements: tuple[str, ...] = ()
    out: tuple[tuple[int, ...], str] | None = None


def tensors(value: Any) -> list[torch.Tensor]:
    return [value] if isinstance(value, torch.Tensor) else list(value)


def inputs_of(name: str, program: Program) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(sum(name.encode()))
    ranges = program.ranges or ((-1.0, 1.0),) * len(program.shapes)
    return [
        lo + (hi - lo) * torch.rand(shape, generator=generator)
        for shape, (lo, hi) in zip(program.shapes, ranges, strict=True)
    ]


def seeds(value: torch.Tensor) -> torch.Tensor:
    """Weights of a result that differ from element to element."""
    return (torch.arange(value.numel(), device=value.device).reshape(value.shape) % 7 - 2.5).to(value.dtype)


def with_torch(function: Callable[..., Any], inputs: list[torch.Tensor]) -> list[torch.Tensor]:
    """The values, then the gradient of each input."""
    leaves = [value.clone().requires_grad_(True) for value in inputs]
    outputs = tensors(function(*leaves))
    torch.autograd.backward(outputs, [seeds(value) for value in outputs])
    return [value.detach() for value in outputs] + [leaf.grad for leaf in leaves if leaf.grad is not None]


def with_tensors(device: Any, module: Any, program: Program, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
    """The same for Tensors, by a backward call."""
    given = [
        spy.Tensor.from_numpy(device, value.numpy(), target_slang_dtype=element).with_grads()
        for value, element in zip(inputs, program.elements, strict=True)
    ]
    function, arguments = program.run(module, *given)
    if program.out is None:
        result = function(*arguments, _result="tensor").with_grads()
        named = {"_result": result}
    else:
        result, named = spy.Tensor.zeros(device, *program.out), {}
        function(*arguments, result)
        result = result.with_grads()
        arguments = [*arguments, result]
    value = torch.from_numpy(result.to_numpy())
    result.grad.copy_from_numpy(seeds(value).numpy())
    function.bwds(*arguments, **named)
    return [value, *(torch.from_numpy(tensor.grad.to_numpy()) for tensor in given)]


def module_of(device: Any, file: str) -> Any:
    return spy.Module.load_from_file(device, str(FOLDER / file))


def check(device: Any, file: str, name: str, program: Program) -> None:
    """Runs a program on a device, and compares."""
    module = module_of(device, file)
    inputs = inputs_of(name, program)
    if program.elements:
        found = with_tensors(device, module, program, inputs)
    else:
        place = device.torch_device or torch.device("cpu")
        found = with_torch(lambda *values: program.run(module, *values), [value.to(place) for value in inputs])
    expected = with_torch(program.reference, [value.double() for value in inputs])
    assert len(found) == len(expected)
    for i, (value, right) in enumerate(zip(found, expected, strict=True)):
        assert value.shape == right.shape, (i, value.shape, right.shape)
        scale = max(1.0, float(right.abs().max())) if right.numel() else 1.0
        error = float((value.cpu().double() - right).abs().max()) / scale if right.numel() else 0.0
        assert error <= program.error, f"{name}: result {i} is off by {error}:\n{value.cpu()}\n{right}"
