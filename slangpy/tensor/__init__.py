"""`Tensor`: a view of device memory as an n-dimensional array of Slang values, with gradients."""

from __future__ import annotations

import copy
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from .. import _native
from .._native import BufferUsage, MemoryType
from ..base.own_names import own_names
from ..reflection import SlangType
from ..reflection.dtypes import resolve_dtype, scalar_name_of_numpy
from . import images as tensor_images, io as tensor_io, show as tensor_show
from .absent import FormerNumpy
from .index import TensorError, check_shape, check_strides
from .parts import check_device, check_gradient, create_storage, derivative_of, new_arguments, torch_stream
from .views import TensorViews

if TYPE_CHECKING:
    from .._native import Buffer
    from ..device import Device

__all__ = ["Tensor", "TensorDesc", "TensorError"]

_USAGE, _LOCAL = BufferUsage.shader_resource | BufferUsage.unordered_access, MemoryType.device_local
_make = _native._make_tensor


@own_names
@dataclass
class TensorDesc:
    """What a tensor is, apart from its storage. Shape, strides and offset count elements; no strides is row-major."""

    dtype: Any = None
    element_layout: Any = None
    offset: int = 0
    shape: Any = ()
    strides: Any = ()
    usage: Any = _USAGE
    memory_type: Any = _LOCAL


class Tensor(TensorViews):
    """A view `(storage, dtype, shape, strides, offset)` of a buffer, with optional gradients.

    Element `i` lies at storage element `offset + sum(i[k] * strides[k])`. Views share storage and keep it alive.
    """

    # --- construction
    @overload
    def __init__(
        self, storage: Buffer, dtype: Any, shape: Any, strides: Any = (), offset: int = 0,
        grad_in: Tensor | None = None, grad_out: Tensor | None = None,
    ) -> None: ...  # fmt: skip
    @overload
    def __init__(
        self, device: Device, element_type: Any = None, shape: Any = None, usage: Any = ..., memory_type: Any = ...,
        *, dtype: Any = None,
    ) -> None: ...  # fmt: skip
    @overload
    def __init__(
        self, desc: TensorDesc, storage: Buffer, grad_in: Tensor | None = None, grad_out: Tensor | None = None
    ) -> None: ...

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Wraps a `Buffer`, or makes a new uninitialised tensor on a `Device`.

        ValueError when the view reaches outside the buffer, or for gradients that do not fit.
        """
        first = args[0] if args else kwargs.get("device", kwargs.get("desc", kwargs.get("storage")))
        if isinstance(first, _native.Device):
            self._init_new(*args, **kwargs)
        elif isinstance(first, TensorDesc):
            self._init_desc(*args, **kwargs)
        elif isinstance(first, _native.Buffer):
            self._init_view(*args, **kwargs)
        else:
            raise TypeError(
                "Tensor: the first argument is a Buffer, a Device or a TensorDesc, got "
                f"{type(first).__name__}; use Tensor.from_numpy(device, array) for arrays"
            )

    def _init_view(
        self, storage: Any, dtype: Any, shape: Any, strides: Any = (), offset: int = 0,
        grad_in: Any = None, grad_out: Any = None, layout: Any = None,
    ) -> None:  # fmt: skip
        resolved = resolve_dtype(storage.device, dtype)
        sizes = check_shape(shape, "Tensor")
        steps = check_strides(strides, "Tensor") or None
        super().__init__(storage, layout or resolved.element_layout, resolved, sizes, steps, offset, None, None)
        if grad_in is not None:
            self.grad_in = grad_in
        if grad_out is not None:
            self.grad_out = grad_out

    def _init_desc(self, desc: TensorDesc, storage: Any, grad_in: Any = None, grad_out: Any = None) -> None:
        layout = desc.element_layout
        layout = layout if isinstance(layout, _native.TypeLayout) else getattr(layout, "plain", None)
        self._init_view(storage, desc.dtype, desc.shape, desc.strides, desc.offset, grad_in, grad_out, layout)

    def _init_new(
        self, device: Any, element_type: Any = None, shape: Any = None, usage: Any = _USAGE, memory_type: Any = _LOCAL,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        resolved, sizes = new_arguments("Tensor", device, shape, dtype if element_type is None else element_type)
        storage = create_storage(device, resolved, sizes, usage, memory_type)
        super().__init__(storage, resolved.element_layout, resolved, sizes, None, 0, None, None)

    @staticmethod
    def _from_result(buffer: Any, dtype: SlangType, shape: Sequence[int], layout: Any = None) -> Tensor:
        """A row-major tensor over the buffer that a call has filled, with elements as its kernel laid them out."""
        return _make(Tensor, buffer, layout or dtype.element_layout, dtype, shape, None, 0, None, None)

    @staticmethod
    def _from_dual(primal: Tensor, tangent: Tensor) -> Tensor:
        """`primal` with the tangent that the same call made, known to fit."""
        _GRAD_IN.__set__(primal, tangent)
        _GRAD_OUT.__set__(primal, tangent)
        return primal

    @staticmethod
    def empty(
        device: Device, shape: Any, dtype: Any = None, usage: Any = _USAGE, memory_type: Any = _LOCAL,
        program_layout: Any = None,
    ) -> Tensor:  # fmt: skip
        """A new uninitialised tensor.

        shape: sizes, at least one dimension; a 0 is allowed anywhere. dtype: see `resolve_dtype`. program_layout: where
        user types given by name are looked up.
        """
        resolved, sizes = new_arguments("empty", device, shape, dtype, program_layout)
        return _new(device, resolved, sizes, usage, memory_type)

    @staticmethod
    def zeros(
        device: Device, shape: Any, dtype: Any = None, usage: Any = _USAGE, memory_type: Any = _LOCAL,
        program_layout: Any = None,
    ) -> Tensor:  # fmt: skip
        """A new tensor of zeros; see `empty`."""
        resolved, sizes = new_arguments("zeros", device, shape, dtype, program_layout)
        return _zeros(device, resolved, sizes, usage, memory_type)

    @staticmethod
    def ones(
        device: Device, shape: Any, dtype: Any = None, usage: Any = _USAGE, memory_type: Any = _LOCAL,
        program_layout: Any = None,
    ) -> Tensor:  # fmt: skip
        """A new tensor of ones in every scalar; see `empty`. TypeError for structs."""
        resolved, sizes = new_arguments("ones", device, shape, dtype, program_layout)
        return _full("ones", device, resolved, sizes, 1, usage, memory_type)

    @staticmethod
    def full(
        device: Device, shape: Any, value: Any, dtype: Any = None, usage: Any = _USAGE, memory_type: Any = _LOCAL,
        program_layout: Any = None,
    ) -> Tensor:  # fmt: skip
        """A new tensor of `value`: one number for every scalar, or a value of the element's shape. See `empty`."""
        resolved, sizes = new_arguments("full", device, shape, dtype, program_layout)
        return _full("full", device, resolved, sizes, value, usage, memory_type)

    @staticmethod
    def empty_like(other: Tensor) -> Tensor:
        """An uninitialised row-major tensor of the same device, shape, dtype, usage and memory type; no gradients."""
        return _new(other.device, other.dtype, tuple(other.shape), other.usage, other.memory_type)

    @staticmethod
    def zeros_like(other: Tensor) -> Tensor:
        """`empty_like`, filled with zeros."""
        return _zeros(other.device, other.dtype, tuple(other.shape), other.usage, other.memory_type)

    @staticmethod
    def ones_like(other: Tensor) -> Tensor:
        """`empty_like`, filled with ones."""
        return _full("ones_like", other.device, other.dtype, tuple(other.shape), 1, other.usage, other.memory_type)

    @staticmethod
    def from_numpy(
        device: Device, ndarray: np.ndarray[Any, Any], usage: Any = _USAGE, memory_type: Any = _LOCAL,
        program_layout: Any = None, target_slang_dtype: Any = None,
    ) -> Tensor:  # fmt: skip
        """A row-major copy of an array of any strides.

        target_slang_dtype: element type; trailing dimensions equal to its shape are consumed, a struct takes a
        structured array whose item size is its stride in a buffer. ValueError when the array does not fit.
        """
        check_device("from_numpy", device)
        if not isinstance(ndarray, np.ndarray):
            _native._check_torch_storage(ndarray, "from_numpy")
        _native._refuse_masked(ndarray)
        array = np.asarray(ndarray)
        dtype = target_slang_dtype
        if dtype is None:
            if array.dtype.names is not None:
                raise ValueError(
                    f"from_numpy: Structured numpy dtype {array.dtype} says nothing of a Slang struct: give it as "
                    "target_slang_dtype="
                )
            dtype = scalar_name_of_numpy(array.dtype)
            if dtype is None:
                raise TypeError(
                    f"from_numpy: NumPy's {array.dtype} has no Slang type; convert the array with astype() first"
                )
        return _from_array(device, array, dtype, usage, memory_type, program_layout, "from_numpy")

    numpy = FormerNumpy()

    @staticmethod
    def from_torch(
        device: Device, tensor: Any, dtype: Any = None, usage: Any = _USAGE, program_layout: Any = None
    ) -> Tensor:
        """A copy of a torch tensor from any device. dtype: element type as in `from_numpy`, None keeps the scalar."""
        if dtype is None and device.type is _native.DeviceType.cuda and getattr(tensor, "is_cuda", False):
            _native._check_torch_storage(tensor, "from_torch")
            device.sync_to_cuda(torch_stream(tensor))
            return Tensor.from_dlpack(device, tensor.detach()).copy()
        array, scalar = tensor_io.array_of_torch(tensor, "from_torch")
        return _from_array(
            device, array, scalar if dtype is None else dtype, usage, _LOCAL, program_layout, "from_torch"
        )

    @staticmethod
    def from_dlpack(device: Device, x: Any) -> Tensor:
        """A tensor over the memory of `x`, which is kept alive; a copy when it is read-only or lies elsewhere.

        x: an object with `__dlpack__`, or a DLPack capsule. TypeError for others and for types without Slang type.
        """
        found = _native._import_tensor(device, x)
        if found is None:
            to_host = getattr(x, "cpu", None) or getattr(x, "get", None)
            if to_host is None:
                raise BufferError(
                    f"from_dlpack: the memory of {type(x).__name__} lies on another device; copy it to the host first"
                )
            return Tensor.from_dlpack(device, to_host()).contiguous()
        if len(found) == 2:
            array, scalar = found
            resolved = resolve_dtype(device, scalar)
            host = tensor_io.host_format(resolved.element_layout)
            return _from_array(device, array.view(host.dtype), scalar, _USAGE, _LOCAL, None, "from_dlpack")
        storage, scalar, shape, strides, offset = found
        resolved = resolve_dtype(device, scalar)
        return _make(Tensor, storage, resolved.element_layout, resolved, shape, strides, offset, None, None)

    @staticmethod
    def load_from_image(
        device: Device, path: str | os.PathLike[str], flip_y: bool = False, linearize: bool = False,
        scale: float = 1.0, offset: float = 0.0, grayscale: bool = False,
    ) -> Tensor:  # fmt: skip
        """A 2-D tensor (rows, cols) of float, float2, float3 or float4 from an image file.

        Integers map to [0, 1]; linearize undoes sRGB (IEC 61966-2-1); grayscale gives one channel of Rec. 709
        luminance; then `value * scale + offset`; flip_y reverses the rows. ImportError without OpenImageIO.
        """
        values, dtype = tensor_images.load_image(os.fspath(path), flip_y, linearize, scale, offset, grayscale)
        return _from_array(device, values, dtype, _USAGE, _LOCAL, None, "load_from_image")

    def save(self, path: str | os.PathLike[str], srgb: bool | None = None, quality: int = -1) -> None:
        """Writes a 2-D tensor of numbers or vectors as a picture; see `slangpy.save_image`."""
        tensor_images.save(path, self, srgb, quality)

    # --- gradients
    @property
    def grad_in(self) -> Tensor | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Gradient of what functions write to the tensor, read by backward calls; None when absent."""
        return _GRAD_IN.__get__(self)

    @grad_in.setter
    def grad_in(self, value: Tensor | None) -> None:
        check_gradient(self, value, "input")
        _GRAD_IN.__set__(self, value)

    @property
    def grad_out(self) -> Tensor | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Gradient of what functions read from the tensor, added to by backward calls; None when absent."""
        return _GRAD_OUT.__get__(self)

    @grad_out.setter
    def grad_out(self, value: Tensor | None) -> None:
        check_gradient(self, value, "output")
        _GRAD_OUT.__set__(self, value)

    @property
    def grad(self) -> Tensor:
        """`grad_out`, else `grad_in`; RuntimeError when there is neither."""
        found = self.grad_out if self.grad_out is not None else self.grad_in
        if found is None:
            raise RuntimeError("Tensor has no grad. Attach one with tensor = tensor.with_grads()")
        return found

    def with_grads(
        self, grad_in: Tensor | None = None, grad_out: Tensor | None = None, zero: bool | None = None
    ) -> Tensor:
        """A new tensor over the same storage with gradients attached.

        Neither given: one new gradient serves as both. zero: None zeroes new gradients only, True also those given,
        False none. RuntimeError when the dtype has no derivative, ValueError for gradients that do not fit.
        """
        fresh = grad_in is None and grad_out is None
        if fresh:
            derivative = derivative_of(self.dtype)
            if derivative is None:
                raise RuntimeError(f"No derivative type found for {self.dtype.full_name}")
            make = _new if zero is False else _zeros
            grad_in = grad_out = make(self.device, derivative, tuple(self.shape), _USAGE, _LOCAL)
        result = self.detach()
        result.grad_in, result.grad_out = grad_in, grad_out
        if zero and not fresh:
            for grad in {id(g): g for g in (grad_in, grad_out) if g is not None}.values():
                grad.clear()
        return result

    # --- elements
    def __setitem__(self, index: Any, value: Any) -> None:
        """Writes a number, array-like or tensor, broadcast to the view."""
        tensor_io.assign(self.detach()[index], value)

    def __bool__(self) -> bool:
        if self.element_count != 1:
            raise ValueError("the truth value of a tensor with other than one element is ambiguous; compare with None")
        return bool(self.item())

    def contiguous(self) -> Tensor:
        """The tensor itself when it is contiguous, else a row-major copy."""
        return self if self.is_contiguous() else self.copy()

    def copy(self) -> Tensor:
        """A row-major copy without gradients."""
        target = Tensor.empty_like(self)
        tensor_io.copy_elements(self, target)
        return target

    def __copy__(self) -> Tensor:
        """Another view of the same storage, with the same gradients."""
        result = self.detach()
        result.grad_in, result.grad_out = self.grad_in, self.grad_out
        return result

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        """`copy()`, with copies of the gradients."""
        result = memo[id(self)] = self.copy()
        result.grad_in, result.grad_out = copy.deepcopy(self.grad_in, memo), copy.deepcopy(self.grad_out, memo)
        return result

    # --- transfer
    def to_numpy(self, structured: bool = False) -> np.ndarray[Any, Any]:
        """A new C-contiguous array of shape + element shape; waits for earlier work on the tensor.

        Structs have a trailing dimension of bytes (uint8), or with `structured` a structured dtype.
        """
        return tensor_io.to_numpy(self, structured)

    def copy_from_numpy(self, data: np.ndarray[Any, Any]) -> None:
        """Copies a contiguous array of the same scalar type into a contiguous tensor; a smaller one fills a prefix."""
        tensor_io.copy_from_numpy(self, data)

    def copy_from_torch(self, tensor: Any) -> None:
        """`copy_from_numpy` with a torch tensor from any device."""
        array, _ = tensor_io.array_of_torch(tensor, "copy_from_torch")
        tensor_io.copy_from_numpy(self, np.ascontiguousarray(array), "copy_from_torch", "Tensor")

    def to_torch(self) -> Any:
        """A torch tensor of shape + element shape over the same memory. RuntimeError where memory cannot be shared."""
        return tensor_io.to_torch(self)

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
    ) -> Any:
        """DLPack capsule over the memory. BufferError for structs, four-byte bools, and devices without pointers."""
        return tensor_io.dlpack(self, stream, max_version, dl_device, copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        """DLPack device type and index."""
        return _native._dlpack_device(self)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Version 3 of the protocol; on CUDA devices only."""
        return tensor_io.cuda_array_interface(self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        """`to_numpy()`. ValueError for copy=False unless host memory can be shared without conversion."""
        if copy is not False:
            array = self.to_numpy()
            return array if dtype is None else array.astype(dtype, copy=False)
        try:
            if not self._on_host:
                raise BufferError("its memory is not the host's")
            array = np.asarray(_native._export_tensor(self, True))
        except BufferError as error:
            raise ValueError(f"a tensor cannot be a NumPy array without a copy: {error}") from None
        if dtype is not None and np.dtype(dtype) != array.dtype:
            raise ValueError(f"a tensor of {array.dtype} cannot be an array of {np.dtype(dtype)} without a copy")
        return array

    def item(self) -> Any:
        """The only element as a Python value: number, vector, matrix, list or dict. ValueError for other sizes."""
        if self.element_count != 1:
            raise ValueError(f"item: the tensor has {self.element_count} elements, not one (shape {self.shape})")
        if not self.dtype.shape and tensor_io.host_format(self.layout).scalar:
            return self.to_numpy().item()
        return self.copy().cursor()[0].read()

    def tolist(self) -> Any:
        """Nested lists of the values; structs are dicts."""
        if tensor_io.host_format(self.layout).scalar:
            return self.to_numpy().tolist()
        cursor = self.contiguous().cursor()
        values = np.empty(self.element_count, object)
        for i in range(len(values)):
            values[i] = cursor[i].read()
        return values.reshape(tuple(self.shape)).tolist()

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def clear(self, cmd: Any = None, command_encoder: Any = None) -> None:
        """Zeroes the view's elements. cmd: encoder that records it instead."""
        tensor_io.clear(self, cmd if cmd is not None else command_encoder)

    def cursor(self, start: int | None = None, count: int | None = None) -> Any:
        """`BufferCursor` over elements `start` to `start + count` of a contiguous view. IndexError outside."""
        if not self.is_contiguous():
            raise RuntimeError(
                f"cursor: the tensor must be contiguous, but has strides {self.strides} for shape {self.shape}; "
                "use contiguous()"
            )
        total = self.element_count
        first = 0 if start is None else start
        number = total - first if count is None else count
        if first < 0 or number < 0 or first + number > total:
            raise IndexError(f"cursor: elements {first} to {first + number} are outside the {total} of the tensor")
        stride = self.layout.stride
        cursor: Any = _native.BufferCursor(self.layout, self.storage, number * stride, (self.offset + first) * stride)
        cursor._reflect = self.dtype.reflected_layout
        return cursor

    def uniforms(self) -> dict[str, Any]:
        """`_data`, `_shape`, `_strides`, `_offset` for a raw kernel parameter."""
        return {
            "_data": self.storage,
            "_shape": self.shape.as_tuple(),
            "_strides": self.strides.as_tuple(),
            "_offset": self.offset,
        }

    def __str__(self) -> str:
        return tensor_show.to_text(self)

    def __repr__(self) -> str:
        return tensor_show.to_repr(self)

    def _repr_html_(self) -> str | None:
        return None if self._repr_png_() else tensor_show.to_html(self)

    def _repr_png_(self) -> bytes | None:
        return tensor_show.to_png(self)


_GRAD_IN: Any = _native.TensorBase.grad_in
_GRAD_OUT: Any = _native.TensorBase.grad_out


def _new(device: Any, dtype: SlangType, shape: Sequence[int], usage: Any, memory_type: Any) -> Tensor:
    storage = create_storage(device, dtype, shape, usage, memory_type)
    return _make(Tensor, storage, dtype.element_layout, dtype, shape, None, 0, None, None)


def _zeros(device: Any, dtype: SlangType, shape: Sequence[int], usage: Any, memory_type: Any) -> Tensor:
    tensor = _new(device, dtype, shape, usage, memory_type)
    if not tensor._on_host:  # host memory comes zeroed
        tensor_io.clear(tensor, None)
    return tensor


def _full(
    function: str, device: Any, dtype: SlangType, shape: Sequence[int], value: Any, usage: Any, memory_type: Any
) -> Tensor:
    tensor = _new(device, dtype, shape, usage, memory_type)
    tensor_io.fill(tensor, value, function)
    return tensor


def _from_array(
    device: Any, array: np.ndarray[Any, Any], dtype: Any, usage: Any, memory_type: Any, program_layout: Any, what: str
) -> Tensor:
    check_device(what, device)
    resolved = resolve_dtype(device, dtype, program_layout)
    shape, elements = tensor_io.elements_of(array, resolved, what)
    tensor = _new(device, resolved, shape, usage, memory_type)
    if elements.size:
        _native._write_tensor(tensor, elements)
    return tensor
