"""Methods of `Buffer` and `Texture` about their memory that the native classes hand on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from slangpy import _native
from slangpy._native import Buffer, Texture
from slangpy.base.optional import torch_for


@dataclass(frozen=True)
class MemoryUsage:
    """Bytes that a resource holds on the device and on the host."""

    device: int
    host: int


def memory_usage(resource: Buffer | Texture) -> MemoryUsage:
    size = resource.size if isinstance(resource, Buffer) else resource._memory_bytes
    on_host = resource.device.info._on_host or resource.desc.memory_type is not _native.MemoryType.device_local
    return MemoryUsage(device=0 if on_host else size, host=size if on_host else 0)


@contextmanager
def mapped(buffer: Buffer) -> Iterator[memoryview]:
    view = buffer.map()
    try:
        yield view
    finally:
        if not buffer.device.is_closed:
            buffer.unmap()


def as_array(resource: Buffer | Texture, dtype: Any = None, copy: bool | None = None) -> Any:
    """What `np.asarray` of a texture or a buffer is: the contents as `to_numpy()` gives them."""
    if copy is False:
        raise ValueError(f"a {type(resource).__name__} cannot be a NumPy array without a copy; use np.asarray or to_numpy()")
    array = resource.to_numpy()
    return array if dtype is None else array.astype(dtype, copy=False)


def buffer_to_torch(
    buffer: Buffer, type: Any = None, shape: Sequence[int] = (), strides: Sequence[int] = (), offset: int = 0
) -> Any:
    torch = torch_for("Buffer.to_torch")
    dtype = _torch_dtype(torch, type)
    flat = torch.from_dlpack(_native._export_bytes(buffer))
    usable = buffer.size // dtype.itemsize * dtype.itemsize
    typed = flat[:usable].view(dtype)
    if offset < 0 or offset > typed.numel():
        raise ValueError(f"to_torch: 'offset' ({offset}) is outside of the buffer's {typed.numel()} elements")
    if not shape:
        if strides:
            raise ValueError("to_torch: 'strides' can only be given with 'shape'")
        return typed[offset:]
    sizes = [int(n) for n in shape]
    steps = [int(n) for n in strides] if strides else [0] * len(sizes)
    if len(steps) != len(sizes):
        raise ValueError(f"to_torch: 'strides' has {len(steps)} entries, 'shape' {len(sizes)}")
    if not strides:
        step = 1
        for i in reversed(range(len(sizes))):
            steps[i], step = step, step * sizes[i]
    last = offset + sum((n - 1) * s for n, s in zip(sizes, steps, strict=True))
    if min(sizes) < 0 or min(steps) < 0 or (0 not in sizes and last >= typed.numel()):
        raise ValueError(f"to_torch: shape {sizes} with strides {steps} does not fit {typed.numel()} elements")
    return torch.as_strided(typed, sizes, steps, offset)


def _torch_dtype(torch: Any, type: Any) -> Any:
    if type is None:
        return torch.uint8
    if isinstance(type, torch.dtype):
        return type
    name = str(getattr(type, "name", type)).rstrip("_")
    dtype = torch.uint8 if name == "void" else getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype):
        raise TypeError(f"to_torch: 'type' must be a DataType or a torch dtype, got {type!r}")
    return dtype
