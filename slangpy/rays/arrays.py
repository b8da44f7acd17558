"""Arrays of the user as tensors of a device."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..device.device import Device
from ..tensor import Tensor
from .shapes import Array, host_array, is_torch


def point_tensor(device: Device, what: str, values: Array) -> Tensor:
    """(n, columns) floats, of the values themselves where these are a Tensor, else a copy; without gradients."""
    if isinstance(values, Tensor):
        return floats_of(device, what, values).detach()
    if is_torch(values):
        check_torch(what, values)
        return Tensor.from_torch(device, values.detach())
    return Tensor.from_numpy(device, np.ascontiguousarray(values, np.float32))


def index_tensor(device: Device, what: str, values: Array) -> Tensor:
    """(m, 3) int32; ValueError for those that int32 does not hold."""
    if isinstance(values, Tensor):
        _check_device(device, what, values)
        if values.dtype.full_name in ("int", "int32_t") and len(values.shape) == 2:
            return values
    indices = host_array(values)
    if indices.min() < 0 or indices.max() >= 1 << 31:
        raise ValueError(f"{what}: indices go from 0 to the number of vertices, got {indices.min()} to {indices.max()}")
    return Tensor.from_numpy(device, np.ascontiguousarray(indices, np.int32))


def floats_of(device: Device, what: str, tensor: Tensor) -> Tensor:
    """A tensor of n vectors seen as (n, columns) floats, and so its gradients."""
    _check_device(device, what, tensor)
    if tensor.dtype.scalar != "float":
        raise TypeError(f"{what}: expected a Tensor of float, got one of {tensor.dtype.full_name}")
    columns = list(tensor.dtype.shape)
    if not columns:
        return tensor

    def flat(t: Tensor | None) -> Tensor | None:
        if t is None:
            return None
        return Tensor(t.storage, "float", (*t.shape, *columns), (t.strides[0] * columns[0], 1), t.offset * columns[0])

    return Tensor(
        tensor.storage, "float", (*tensor.shape, *columns), (tensor.strides[0] * columns[0], 1), tensor.offset * columns[0],
        flat(tensor.grad_in), flat(tensor.grad_out),
    )  # fmt: skip


def check_torch(what: str, values: Any) -> None:
    if str(values.dtype) != "torch.float32":
        raise TypeError(f"{what}: expected a torch tensor of torch.float32, got {values.dtype}; convert it with .float()")


def _check_device(device: Device, what: str, tensor: Tensor) -> None:
    if tensor.device is not device:
        raise ValueError(
            f"{what}: the Tensor lies on another device ({tensor.device.type.name}) than the scene's ({device.type.name}); "
            "pass tensor.to_numpy()"
        )
