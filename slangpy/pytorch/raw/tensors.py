"""Tensors as kernels see them: torch tensors, `slangpy.Tensor`, NumPy arrays and whatever speaks DLPack."""

from __future__ import annotations

import sys
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from slangpy import _native
from slangpy.base.optional import torch_for
from slangpy.errors import TensorError

CPU = ("cpu", 0)
DTYPES = {
    "float32": "float", "float64": "double", "float16": "half", "bfloat16": "BFloat16", "bool": "bool", "int8": "int8_t",
    "uint8": "uint8_t", "int16": "int16_t", "uint16": "uint16_t", "int32": "int", "uint32": "uint", "int64": "int64_t",
    "uint64": "uint64_t", "float8_e4m3fn": "FloatE4M3", "float8_e5m2": "FloatE5M2",
}  # fmt: skip
"""torch's names of element types and Slang's."""


class TensorInfo(NamedTuple):
    address: int
    scalar: str  # Slang's name of the element type
    item: int  # bytes of an element
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # elements
    device: tuple[str, int]
    value: Any  # what keeps the memory


def torch_module() -> Any:
    """torch if the program has imported it."""
    return sys.modules.get("torch")


@cache
def _torch_dtypes() -> dict[Any, tuple[str, int]]:
    torch = torch_module()
    found = {}
    for name, scalar in DTYPES.items():
        dtype = getattr(torch, name, None)
        if dtype is not None:
            found[dtype] = (scalar, dtype.itemsize)
    return found


def summary(value: Any) -> str:
    """For messages: "float64 cuda:0 (3, 4)"; what is no tensor by its type and text."""
    shape = getattr(value, "shape", None)
    if shape is None or not hasattr(value, "dtype"):
        text = repr(value)
        return f"{type(value).__name__} {text if len(text) < 60 else text[:57] + '...'}"
    device = getattr(value, "device", "cpu")
    return f"{str(value.dtype).removeprefix('torch.')} {device} {tuple(shape)}"


def read_tensor(value: Any, where: str) -> TensorInfo | None:
    """What a tensor is; None for what is none. TensorError for tensors without memory of their own."""
    torch = torch_module()
    if torch is not None and isinstance(value, torch.Tensor):
        return _read_torch(torch, value, where)
    return _read_other(value, where)


def _read_torch(torch: Any, value: Any, where: str) -> TensorInfo:
    if value.layout is not torch.strided:
        raise TensorError(f"{where}: a {str(value.layout).removeprefix('torch.')} tensor; pass tensor.to_dense()")
    device = value.device
    if device.type not in ("cpu", "cuda"):
        raise TensorError(f"{where}: a tensor on {device}; pass a CUDA or CPU tensor")
    if value.is_conj() or value.is_neg():
        raise TensorError(
            f"{where}: a tensor with lazy conjugation or negation; pass tensor.resolve_conj().resolve_neg()"
        )
    known = _torch_dtypes().get(value.dtype)
    if known is None:
        raise TensorError(f"{where}: {summary(value)}; kernels have no such element type")
    if type(value).__module__.startswith("torch._subclasses."):
        raise TensorError(f"{where}: a {type(value).__name__} without memory of its own; pass a real tensor")
    try:
        address = value.data_ptr()
    except RuntimeError as error:  # wrappers
        raise TensorError(f"{where}: a {type(value).__name__} without memory of its own ({error})") from None
    _native._check_torch_storage(value, where)
    if not address and value.numel():
        raise TensorError(f"{where}: a {type(value).__name__} without memory of its own; pass a real tensor")
    place = CPU if device.type == "cpu" else ("cuda", device.index or 0)
    return TensorInfo(address, *known, tuple(value.shape), value.stride(), place, value)


def _read_other(value: Any, where: str) -> TensorInfo | None:
    try:
        return _read_shared(value, where)
    except (BufferError, TypeError) as error:  # of a device whose memory is its own
        raise TensorError(f"{where}: {error}") from error


def _read_shared(value: Any, where: str) -> TensorInfo | None:
    interface = getattr(value, "__cuda_array_interface__", None)
    if interface is not None:
        return _read_cuda(value, interface)
    if hasattr(value, "__array_interface__"):
        return _read_numpy(value, where)
    if hasattr(value, "__dlpack__") and hasattr(value, "__dlpack_device__"):
        if value.__dlpack_device__()[0] == 1 and torch_module() is None:
            return _read_numpy(np.from_dlpack(value), where, True)  # NumPy says read-only of all that comes so
        torch = torch_for("a tensor that comes by DLPack from a GPU")
        return _read_torch(torch, torch.from_dlpack(value), where)
    if type(value).__module__.startswith("slangpy.") and hasattr(value, "to_torch"):
        return read_tensor(value.to_torch(), where)
    return None


def _read_numpy(value: Any, where: str, writable: bool = False) -> TensorInfo | None:
    if not hasattr(value, "shape") or value.dtype.name not in DTYPES:
        if getattr(value, "ndim", 1) == 0:
            return None
        raise TensorError(f"{where}: {summary(value)}; kernels have no such element type")
    if value.ndim and not (writable or value.flags.writeable):
        raise TensorError(f"{where}: a read-only array; pass a copy")
    item = value.dtype.itemsize
    if not value.dtype.isnative or any(stride % item for stride in value.strides):
        raise TensorError(f"{where}: an array with unaligned or byte-swapped elements; pass a copy")
    strides = tuple(stride // item for stride in value.strides)
    return TensorInfo(value.ctypes.data, DTYPES[value.dtype.name], item, value.shape, strides, CPU, value)


_TYPESTR = {"f": {2: "half", 4: "float", 8: "double"}, "i": {1: "int8_t", 2: "int16_t", 4: "int", 8: "int64_t"},
            "u": {1: "uint8_t", 2: "uint16_t", 4: "uint", 8: "uint64_t"}, "b": {1: "bool"}}  # fmt: skip


def _read_cuda(value: Any, interface: dict[str, Any]) -> TensorInfo | None:
    text = interface["typestr"]
    item = int(text[2:])
    scalar = _TYPESTR.get(text[1], {}).get(item)
    if scalar is None:
        return None
    shape = tuple(interface["shape"])
    strides = interface.get("strides")
    if strides is None:
        elements, at = [], 1
        for size in reversed(shape):
            elements.insert(0, at)
            at *= size
    else:
        elements = [stride // item for stride in strides]
    index = getattr(getattr(value, "device", None), "id", 0)
    return TensorInfo(interface["data"][0], scalar, item, shape, tuple(elements), ("cuda", index), value)
