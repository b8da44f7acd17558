"""Tensor contents to and from NumPy, torch, DLPack, images and text."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import _native
from ..base.optional import torch_for
from ..reflection.dtypes import (
    numpy_scalar,
    scalar_name_of_numpy,
    scalar_name_of_torch,
    structured_dtype,
    structured_parts,
)
from .index import TensorError, byte_runs

if TYPE_CHECKING:
    from . import Tensor

_MAX_RUNS = 4096
_ROUNDED = {("double", "float"), ("double", "half"), ("float", "half")}
_RAW_FLOATS = {"BFloat16": np.dtype("uint16"), "FloatE4M3": np.dtype("uint8"), "FloatE5M2": np.dtype("uint8")}


class HostFormat(NamedTuple):
    """How elements of a layout look in host arrays."""

    scalar: str  # Slang name; empty for structs, which are raw bytes
    dtype: np.dtype[Any]  # of arrays that users see
    raw: np.dtype[Any]  # of arrays that are copied: integers for types that NumPy lacks
    shape: tuple[int, ...]  # trailing dimensions
    device_bytes: int  # of one scalar


def host_format(layout: Any) -> HostFormat:
    """Host side of an element layout: scalars, packed, bool in one byte; structs as bytes."""
    found = _native._element_format(layout)
    if found is None:
        return HostFormat("", np.dtype("uint8"), np.dtype("uint8"), (layout.stride,), 1)
    scalar, device_bytes, shape = found
    dtype = numpy_scalar(scalar)
    return HostFormat(scalar, dtype, _RAW_FLOATS.get(scalar, dtype), shape, device_bytes)


# --- NumPy


def to_numpy(tensor: Tensor, structured: bool = False) -> np.ndarray[Any, Any]:
    host = host_format(tensor.layout)
    array = np.empty((*tensor.shape, *host.shape), host.raw)
    _native._read_tensor(tensor, array)
    if structured and not host.scalar:
        dtype, inner = structured_parts(tensor.layout)
        return array.view(dtype).reshape((*tensor.shape, *inner))
    return array.view(host.dtype)


def convert_scalars(data: np.ndarray[Any, Any], host: HostFormat, type_name: str, what: str) -> np.ndarray[Any, Any]:
    """`data` with the host's scalar type: same type, other signedness bit for bit, or a rounded wider float."""
    if not data.dtype.isnative:
        data = data.astype(data.dtype.newbyteorder("="))
    if data.dtype == host.dtype:
        return data.view(host.raw)
    same_size = data.dtype.itemsize == host.raw.itemsize
    if same_size and data.dtype.kind in "iu" and host.raw.kind in "iu":
        return data.view(host.raw)
    source = scalar_name_of_numpy(data.dtype)
    if source is not None and (source, host.scalar) in _ROUNDED:
        with np.errstate(over="ignore"):
            return data.astype(host.raw)
    raise TypeError(
        f"{what}: an array of {data.dtype} cannot be copied to elements of type {type_name} ({host.dtype}); "
        f"convert it with astype(numpy.{host.dtype})"
    )


def _is_bytes_of(data: np.ndarray[Any, Any], size: int) -> bool:
    return data.dtype == np.uint8 and data.nbytes == size


def copy_from_numpy(tensor: Tensor, data: Any, what: str = "copy_from_numpy", noun: str = "Numpy array") -> None:
    if isinstance(data, np.generic):  # what arithmetic makes of arrays without dimensions
        data = np.asarray(data)
    if not isinstance(data, np.ndarray):
        raise TypeError(f"{what}: expected a NumPy array, got {type(data).__name__}; convert it with numpy.asarray()")
    _native._refuse_masked(data)
    if not tensor.is_contiguous():
        raise TensorError(f"Destination tensor must be contiguous: strides {tensor.strides} of shape {tensor.shape}")
    if not data.flags.c_contiguous:
        raise TensorError("Source Numpy array must be contiguous; pass numpy.ascontiguousarray(a)")
    host = host_format(tensor.layout)
    limit = tensor.nbytes
    if data.dtype.names is not None or not host.scalar or _is_bytes_of(data, limit):
        return _copy_bytes(tensor, data, host, what, noun)
    values = convert_scalars(data, host, tensor.dtype.full_name, what)
    shape = tuple(tensor.shape)
    if _is_short_vector(values, shape, host):
        padded = np.zeros((*shape, *host.shape), values.dtype)
        padded[..., : values.shape[-1]] = values
        values = padded
    per_element = math.prod(host.shape)
    if values.size > tensor.element_count * per_element:
        raise TensorError(
            f"{noun} is larger than the tensor ({values.size} > {tensor.element_count * per_element} scalars of "
            f"{tensor.dtype.full_name}, shape {tensor.shape})"
        )
    if values.size == math.prod(shape) * per_element:
        _native._write_tensor(tensor, values.reshape((*shape, *host.shape)))
    else:
        _copy_prefix(tensor, values.reshape(-1), host, per_element)


def _is_short_vector(values: np.ndarray[Any, Any], shape: tuple[int, ...], host: HostFormat) -> bool:
    if len(host.shape) != 1 or values.ndim != len(shape) + 1 or values.shape[:-1] != shape:
        return False
    return 0 < values.shape[-1] < host.shape[0]


def _copy_bytes(tensor: Tensor, data: np.ndarray[Any, Any], host: HostFormat, what: str, noun: str) -> None:
    """Bytes in the device's layout: structured arrays, uint8, or an array of any type that fills the tensor, with or
    without the gaps between fields, which differ between devices."""
    if data.dtype.names is not None and (host.scalar or _struct_items(data, tensor.layout)[1] != tensor.layout.stride):
        raise TypeError(
            f"{what}: the array's items of {data.dtype.itemsize} bytes do not match elements of type "
            f"{tensor.dtype.full_name} with {tensor.layout.stride} bytes"
        )
    if data.dtype.names is None and data.dtype != np.uint8 and not data.dtype.hasobject:
        data = _with_gaps(tensor, data)
    if data.dtype.names is None and data.dtype != np.uint8 and (data.nbytes != tensor.nbytes or data.dtype.hasobject):
        raise TypeError(
            f"{what}: an array of {data.dtype} with {data.nbytes} bytes cannot be copied to elements of type "
            f"{tensor.dtype.full_name}; pass a structured array, or any array of the tensor's {tensor.nbytes} bytes"
        )
    if data.nbytes > tensor.nbytes:
        raise TensorError(f"{noun} is larger than the tensor ({data.nbytes} > {tensor.nbytes} bytes)")
    _native._write_tensor_bytes(tensor, data.reshape(-1).view(np.uint8))


def _with_gaps(tensor: Tensor, data: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """An array that fills the fields of a tensor of structs, as bytes in the device's layout; others as they are."""
    if data.nbytes == tensor.nbytes or tensor.layout.kind.name != "struct":
        return data
    places = _value_bytes(structured_dtype(tensor.layout), 0)
    if data.nbytes != len(places) * tensor.element_count:
        return data
    spread = np.zeros((tensor.element_count, tensor.layout.stride), np.uint8)
    spread[:, places] = data.reshape(-1).view(np.uint8).reshape(tensor.element_count, len(places))
    return spread


def _value_bytes(dtype: np.dtype[Any], begin: int) -> list[int]:
    """The bytes of an item that hold values; the others are gaps."""
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        return [at for k in range(math.prod(shape)) for at in _value_bytes(base, begin + k * base.itemsize)]
    if dtype.fields is not None:
        return [at for field in dtype.fields.values() for at in _value_bytes(field[0], begin + field[1])]
    return list(range(begin, begin + dtype.itemsize))


def _copy_prefix(tensor: Tensor, scalars: np.ndarray[Any, Any], host: HostFormat, per_element: int) -> None:
    whole, rest = divmod(scalars.size, per_element)
    flat = tensor.detach().view((tensor.element_count,))
    if whole:
        _native._write_tensor(flat.view((whole,)), scalars[: whole * per_element].reshape(whole, *host.shape))
    if rest:
        last = flat.view((1,), (), whole)
        element = np.empty((1, *host.shape), host.raw)
        _native._read_tensor(last, element)
        element.reshape(-1)[:rest] = scalars[whole * per_element :]
        _native._write_tensor(last, element)


def _as_scalars(value: Any, host: HostFormat, type_name: str, what: str) -> np.ndarray[Any, Any]:
    """Any array-like as scalars of the element type; integers must fit, floats do not become integers."""
    _native._refuse_masked(value)
    array = np.asarray(value)
    if array.dtype == host.dtype:
        return array.view(host.raw)
    source, target = array.dtype.kind, host.dtype.kind
    allowed = {"b": "biu", "i": "biu", "u": "biu", "f": "biuf"}.get(target, "")
    if source not in allowed or (target == "b" and source == "f"):
        raise TypeError(
            f"{what}: {array.dtype} cannot be written to elements of type {type_name} ({host.dtype}); "
            "convert the value first"
        )
    if target in "iu" and array.size:
        bounds = np.iinfo(host.dtype)
        if int(array.min()) < bounds.min or int(array.max()) > bounds.max:
            raise OverflowError(f"{what}: a value is out of range of {type_name} ({bounds.min} to {bounds.max})")
    return array.astype(host.dtype).view(host.raw)  # NumPy warns of what becomes infinite


def _as_struct_bytes(value: Any, layout: Any, type_name: str, what: str) -> np.ndarray[Any, Any]:
    _native._refuse_masked(value)
    array = np.asarray(value)
    shape, size = _struct_items(array, layout)
    if array.dtype.names is not None and size == layout.stride:
        return np.ascontiguousarray(array).reshape(-1).view(np.uint8).reshape(*shape, size)
    if array.dtype == np.uint8 and array.shape[-1:] == (layout.stride,):
        return array
    raise TypeError(
        f"{what}: elements of type {type_name} take a structured array with items of {layout.stride} bytes, or uint8 "
        f"with last dimension {layout.stride}; write single elements with cursor()[i].write(...)"
    )


def _element_of(view: Tensor, value: dict[str, Any]) -> Tensor:
    """A tensor of one element with the fields given; fields that are not are zero."""
    element = type(view).zeros(view.device, (1,), view.dtype)
    cursor = element.cursor()
    cursor[0].write(value)
    cursor.apply()
    return element


def assign(view: Tensor, value: Any, what: str = "Tensor assignment") -> None:
    """Writes a number, array-like, tensor, or (to structs) dict, broadcast to the view."""
    host = host_format(view.layout)
    type_name = view.dtype.full_name
    if isinstance(value, dict) and not host.scalar:
        value = _element_of(view, value)
    if isinstance(value, _native.TensorBase):
        value = to_numpy(value)  # type: ignore[arg-type]
    if host.scalar:
        array = _as_scalars(value, host, type_name, what)
    else:
        array = _as_struct_bytes(value, view.layout, type_name, what)
    shape = (*view.shape, *host.shape)
    while array.ndim > len(shape) and array.shape[0] == 1:
        array = array[0]
    try:
        array = np.broadcast_to(array, shape)
    except ValueError:
        raise ValueError(f"{what}: a value of shape {list(array.shape)} does not broadcast to {list(shape)}") from None
    if array.size:
        _native._write_tensor(view, array)


# --- filling


def _fill_word(scalar_bytes: bytes) -> int | None:
    """The uint32 that, repeated, repeats the scalar; None when there is none."""
    pattern = scalar_bytes * (4 // len(scalar_bytes)) if len(scalar_bytes) < 4 else scalar_bytes
    words = {pattern[i : i + 4] for i in range(0, len(pattern), 4)}
    return int.from_bytes(words.pop(), "little") if len(words) == 1 else None


def fill(tensor: Tensor, value: Any, function: str) -> None:
    """One value for every scalar, or a value of the element's shape for every element of a new tensor."""
    host = host_format(tensor.layout)
    if not host.scalar:
        raise TypeError(
            f"{function}: elements of type {tensor.dtype.full_name} are structs; use zeros() and write them with cursor()"
        )
    element = _as_scalars(value, host, tensor.dtype.full_name, function)
    try:
        element = np.broadcast_to(element, host.shape)
    except ValueError:
        raise ValueError(
            f"{function}: 'value' of shape {list(element.shape)} does not fit elements of type {tensor.dtype.full_name} "
            f"with shape {list(host.shape)}"
        ) from None
    if not tensor.element_count:
        return
    uniform = element.tobytes() == element.reshape(-1)[:1].tobytes() * element.size
    if uniform and not tensor._on_host:
        first = element.reshape(-1)[:1]
        widened = first.astype(np.uint32) if host.device_bytes > host.raw.itemsize else first  # four-byte bool
        word = _fill_word(widened.tobytes())
        if word is not None:
            encoder = tensor.device.create_command_encoder()
            encoder.fill_buffer(tensor.storage, word, (0, tensor.nbytes))
            tensor.device.submit_command_buffer(encoder.finish())
            return
    _native._write_tensor(tensor, np.broadcast_to(element, (*tensor.shape, *host.shape)))


def _record_clear(encoder: Any, storage: Any, offset: int, size: int) -> None:
    head = min(-offset % 4, size)  # encoders clear from multiples of four
    if head:
        encoder.upload_buffer_data(storage, offset, np.zeros(head, np.uint8))
    if size > head:
        encoder.clear_buffer(storage, (offset + head, size - head))


def clear(tensor: Tensor, encoder: Any) -> None:
    if not tensor.element_count:
        return
    stride = tensor.layout.stride
    if encoder is None and tensor._on_host:
        return _native._fill_tensor(tensor, bytes(stride))
    shape, strides = list(tensor.shape), list(tensor.strides)
    outer = math.prod(shape[:-1]) * (1 if strides and strides[-1] == 1 else shape[-1]) if shape else 1
    if encoder is None and outer > _MAX_RUNS and not tensor.is_contiguous():
        return _native._fill_tensor(tensor, bytes(stride))
    commands = encoder if encoder is not None else tensor.device.create_command_encoder()
    for offset, size in byte_runs(shape, strides, tensor.offset, stride):
        _record_clear(commands, tensor.storage, offset, size)
    if encoder is None:
        tensor.device.submit_command_buffer(commands.finish())


def copy_elements(source: Tensor, target: Tensor) -> None:
    """Between tensors of one device, shape and dtype; `target` is contiguous."""
    if not source.element_count:
        return
    if source.is_contiguous() and not source._on_host:
        encoder = source.device.create_command_encoder()
        stride = source.layout.stride
        begin = source.offset * stride
        encoder.copy_buffer(target.storage, target.offset * stride, source.storage, begin, source.nbytes)
        source.device.submit_command_buffer(encoder.finish())
        return
    host = host_format(source.layout)
    array = np.empty((*source.shape, *host.shape), host.raw)
    _native._read_tensor(source, array)
    _native._write_tensor(target, array)


# --- host arrays as elements


def elements_of(array: np.ndarray[Any, Any], dtype: Any, what: str) -> tuple[tuple[int, ...], np.ndarray[Any, Any]]:
    """(tensor shape, array of shape + element shape ready to be copied) for elements of `dtype`."""
    layout = dtype.element_layout
    host = host_format(layout)
    if not host.scalar:
        return _structs_of(array, dtype.full_name, layout, what)
    if array.dtype.names is not None:
        raise ValueError(
            f"{what}: a structured array with items of {array.dtype.itemsize} bytes does not match elements of type "
            f"{dtype.full_name} with {layout.stride} bytes"
        )
    rank = array.ndim - len(host.shape)
    if rank < 0 or tuple(array.shape[rank:]) != host.shape:
        raise ValueError(
            f"{what}: the array's trailing dimensions {list(array.shape[max(rank, 0) :])} do not match the element "
            f"shape {list(host.shape)} of {dtype.full_name}"
        )
    return tuple(array.shape[:rank]), convert_scalars(array, host, dtype.full_name, what)


def _struct_items(array: np.ndarray[Any, Any], layout: Any) -> tuple[tuple[int, ...], int]:
    """Shape of a structured array in elements of a layout, and the bytes of one: arrays of structs take its last dimensions."""
    dtype, inner = structured_parts(layout)
    rank = array.ndim - len(inner)
    if inner and array.shape[max(rank, 0) :] == inner and array.dtype.itemsize == dtype.itemsize:
        return array.shape[:rank], layout.stride
    return array.shape, array.dtype.itemsize


def _structs_of(
    array: np.ndarray[Any, Any], type_name: str, layout: Any, what: str
) -> tuple[tuple[int, ...], np.ndarray[Any, Any]]:
    packed = np.ascontiguousarray(array).reshape(array.shape)
    if array.dtype.names is not None:
        shape, size = _struct_items(array, layout)
    else:
        shape, size = array.shape[:-1], array.shape[-1] * array.dtype.itemsize if array.ndim else 0
    if size != layout.stride:
        counts = ("", "")
        if array.dtype.names is None and array.ndim:
            counts = (f"{array.shape[-1]} scalars, ", f"{layout.stride / array.dtype.itemsize:g} scalars, ")
        raise ValueError(
            f"{what}: an item of {counts[0]}{size} bytes does not match elements of type {type_name} with "
            f"{counts[1]}{layout.stride} bytes"
        )
    data = np.frombuffer(packed.tobytes(), np.uint8) if packed.size else np.empty(0, np.uint8)
    return tuple(shape), data.reshape(*shape, layout.stride)


def array_of_torch(tensor: Any, what: str) -> tuple[np.ndarray[Any, Any], str]:
    """(host array, Slang scalar name) of a torch tensor from any device; types NumPy lacks as integers."""
    torch = torch_for(what)
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"{what}: expected a torch.Tensor, got {type(tensor).__name__}")
    scalar = scalar_name_of_torch(tensor.dtype)
    if scalar is None or tensor.layout is not torch.strided:
        raise TypeError(
            f"{what}: {tensor.layout} tensors of {tensor.dtype} have no Slang type; convert the tensor first"
        )
    _native._check_torch_storage(tensor, what)
    host = tensor.detach().resolve_neg().cpu()
    raw = _RAW_FLOATS.get(scalar)
    if raw is not None:
        host = host.contiguous().view(torch.int16 if raw.itemsize == 2 else torch.uint8)
    array = host.numpy()
    return (array if raw is None else array.view(raw).view(numpy_scalar(scalar))), scalar


def to_torch(tensor: Tensor) -> Any:
    torch = torch_for("Tensor.to_torch")
    if any(stride < 0 for stride in tensor.strides):
        tensor = tensor.copy()
    try:
        exported = _native._export_tensor(tensor, True)
    except BufferError as error:
        raise RuntimeError(f"to_torch: {error}") from None
    if tensor.device.type is _native.DeviceType.cuda:
        tensor.device.sync_to_device(torch.cuda.current_stream().cuda_stream)
    return torch.from_dlpack(exported)


def dlpack(tensor: Tensor, stream: Any, max_version: Any, dl_device: Any, copy: bool | None) -> Any:
    own = _native._dlpack_device(tensor)
    if dl_device is not None and tuple(int(part) for part in dl_device) != own:
        raise BufferError(f"__dlpack__: the tensor lies on DLPack device {own}, not {tuple(dl_device)}; copy it first")
    if any(step < 0 and size > 1 for step, size in zip(tensor.strides, tensor.shape, strict=True)):
        if copy is False:
            raise BufferError("__dlpack__: a reversed view is exported as a copy only; pass copy=None")
        copy = True  # torch.from_dlpack ends the process over negative strides
    source = tensor.copy() if copy else tensor
    exported = _native._export_tensor(source, False)
    if own[0] == 2 and stream != -1:
        tensor.device.sync_to_device(int(stream or 0))
    return exported.__dlpack__(max_version=max_version)


def cuda_array_interface(tensor: Tensor) -> dict[str, Any]:
    if tensor.device.type is not _native.DeviceType.cuda:
        raise AttributeError("__cuda_array_interface__ is there for tensors on CUDA devices only")
    host = host_format(tensor.layout)
    if not host.scalar:
        raise AttributeError(f"__cuda_array_interface__ has no type for elements of {tensor.dtype.full_name}")
    stride = tensor.layout.stride
    exported = _native._export_tensor(tensor.detach(), False)  # marks the memory as handed out
    del exported
    steps = [s * stride for s in tensor.strides]
    return {
        "shape": (*tensor.shape, *host.shape),
        "typestr": host.raw.str,
        "data": (tensor.device_address if tensor.element_count else 0, False),
        "strides": (*steps, *_element_steps(tensor.layout, host)),
        "version": 3,
        "stream": 1,
    }


def _element_steps(layout: Any, host: HostFormat) -> list[int]:
    """Bytes between the entries of each element dimension."""
    steps: list[int] = []
    while layout.kind.name == "array":
        steps.append(layout.element_stride)
        layout = layout.element
    if layout.kind.name == "matrix":
        steps += [layout.element_stride, host.device_bytes]
    elif layout.kind.name == "vector":
        steps.append(host.device_bytes)
    return steps


# --- text
