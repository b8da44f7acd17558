"""What tensors are made of: checked arguments, storage, gradients that fit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import _native
from ..base.optional import torch_for
from ..reflection import SlangType
from ..reflection.dtypes import resolve_dtype
from .index import check_shape

if TYPE_CHECKING:
    from . import Tensor


def check_device(name: str, device: Any) -> None:
    if not isinstance(device, _native.Device):
        order = "; the order is (device, array)" if type(device).__name__ == "ndarray" else ""
        raise TypeError(f"{name}: 'device' must be a Device, got {type(device).__name__}{order}")


def new_arguments(
    name: str, device: Any, shape: Any, dtype: Any, program_layout: Any = None
) -> tuple[SlangType, tuple[int, ...]]:
    check_device(name, device)
    if shape is None:
        raise ValueError(f"{name}: 'shape' must be specified")
    if dtype is None:
        raise ValueError(f"{name}: Element type (dtype) must be specified, such as 'float', np.float32 or module.S")
    sizes = check_shape(shape, name)
    if not sizes:
        raise ValueError(f"{name}: a tensor with zero dimensions cannot be made; use shape (1,), or reshape() one")
    return resolve_dtype(device, dtype, program_layout), sizes


def create_storage(device: Any, dtype: SlangType, shape: Sequence[int], usage: Any, memory_type: Any) -> Any:
    _native._check_element(dtype.element_layout)
    stride = dtype.element_layout.stride
    size = max(math.prod(shape), 1) * stride
    return device.create_buffer(size=size, struct_size=stride, usage=usage, memory_type=memory_type)


def derivative_of(dtype: SlangType) -> SlangType | None:
    """The element type of a new gradient. BFloat16, which no function differentiates by itself, is its own."""
    return dtype if dtype.full_name == "BFloat16" else dtype.derivative


def _derivative_names(dtype: SlangType) -> list[str]:
    """Element types that a gradient may have: the derivative, and float32 sums for 16-bit floats."""
    derivative = derivative_of(dtype)
    if derivative is None:
        raise RuntimeError(f"No derivative type found for {dtype.full_name}")
    names = [derivative.full_name]
    if dtype.full_name == "BFloat16":
        names.append("float")
    if dtype.scalar == "half":
        names.append(dtype.full_name.replace("half", "float"))
    return names


def check_gradient(tensor: Tensor, grad: Any, role: str) -> None:
    if grad is None:
        return
    if not isinstance(grad, _native.TensorBase):
        raise TypeError(f"The {role} gradient must be a Tensor or None, got {type(grad).__name__}")
    names = _derivative_names(tensor.dtype)
    if grad.dtype.full_name not in names:
        raise ValueError(
            f"Invalid element type of {role} gradient for tensor of type {tensor.dtype.full_name}: "
            f"Expected {names[0]}, received {grad.dtype.full_name}"
        )
    if grad.shape != tensor.shape:
        raise ValueError(f"Invalid shape of {role} gradient: Expected {tensor.shape}, received {grad.shape}")
    if grad.device is not tensor.device:
        raise ValueError(
            f"Invalid device of {role} gradient: Expected {tensor.device.type.name}, received {grad.device.type.name} "
            "(gradients lie on their tensor's device)"
        )


def torch_stream(tensor: Any) -> int:
    return torch_for("a stream of torch").cuda.current_stream(tensor.device).cuda_stream
