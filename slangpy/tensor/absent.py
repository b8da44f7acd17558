"""What NumPy's and torch's arrays do and a `Tensor` leaves to others: each says what to write instead."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast, overload

from .. import _native
from ..base.absent import absent
from ..reflection.dtypes import structured_dtype

if TYPE_CHECKING:
    from numpy.typing import NDArray

_OTHER_NAMES = {
    "size": "element_count (or shape)",
    "numel": "element_count",
    "nelement": "element_count",
    "dim": "ndim",
    "stride": "strides",
    "transpose": "T, or permute(...)",
    "swapaxes": "permute(...)",
    "mT": "permute(...)",
    "clone": "copy()",
    "flatten": "reshape(-1)",
    "ravel": "reshape(-1)",
    "squeeze": "reshape(...)",
    "unsqueeze": "tensor[None], tensor[..., None] or reshape(...)",
    "expand": "broadcast_to(shape)",
    "zero_": "clear()",
    "fill": "tensor[...] = value",
    "fill_": "tensor[...] = value",
    "copy_": "tensor[...] = values",
    "cpu": "to_numpy()",
    "cuda": "a device of type cuda: Tensor.from_numpy(device, tensor.to_numpy())",
    "to": "to_numpy(), to_torch(), or Tensor.from_numpy(other_device, tensor.to_numpy())",
    "requires_grad": "with_grads(), which gives a tensor with gradients",
    "requires_grad_": "with_grads(), which gives a tensor with gradients",
    "backward": "function.bwds(..., _result=tensor), or torch tensors as arguments, which have backward()",
    "data_ptr": "storage.device_address, and offset",
    "__array_interface__": "np.asarray(tensor), which copies the data to the host",
    "astype": "np.asarray(tensor).astype(dtype), or f.convert('any') for a call",
    **dict.fromkeys(
        ("float", "double", "half", "int", "long"),
        "np.asarray(tensor).astype(dtype), or f.convert('any') for a call",
    ),
}

_COMPUTED = frozenset(
    "abs all any argmax argmin argsort clip cos cumsum diff dot exp log matmul max mean median min prod round sin sort sqrt "
    "std sum tanh var".split()
)


def _refuse(sign: str) -> Any:
    """An operator that sends the user on. NumPy's arrays and scalars get their turn: they take a Tensor as an array."""

    def operator(self: Any, other: Any = None) -> Any:
        if hasattr(type(other), "__array_ufunc__"):
            return NotImplemented
        raise TypeError(
            f"Tensor has no operator {sign}: compute with a Slang function, or on a copy on the host, np.asarray(tensor)"
        )

    return operator


def field_names(tensor: _native.TensorBase) -> tuple[str, ...]:
    """Of a tensor of structs; empty for others."""
    try:
        layout = tensor.layout
    except TypeError:  # Tensor.__new__(Tensor): never made
        return ()
    return () if _native._element_format(layout) is not None else structured_dtype(layout).names or ()


class FormerNumpy:
    """`tensor.numpy()` as in torch, and `Tensor.numpy(device, array)`, the deprecated name of `from_numpy`."""

    @overload
    def __get__(self, tensor: None, cls: Any) -> Callable[[Any, NDArray[Any]], Any]: ...
    @overload
    def __get__(self, tensor: Any, cls: Any) -> Callable[[], NDArray[Any]]: ...

    def __get__(self, tensor: Any, cls: Any) -> Any:
        if tensor is not None:
            return tensor.to_numpy

        def numpy(device: Any, ndarray: Any) -> Any:
            warnings.warn("Tensor.numpy is deprecated; use Tensor.from_numpy", DeprecationWarning, stacklevel=2)
            return cls.from_numpy(device, ndarray)

        return numpy


class NoArithmetic(_native.TensorBase):
    """The part of `Tensor` that says what is not there."""

    if not TYPE_CHECKING:  # type checkers find what is not there by themselves
        __add__ = __radd__ = _refuse("+")
        __sub__ = __rsub__ = __neg__ = _refuse("-")
        __mul__ = __rmul__ = _refuse("*")
        __truediv__ = __rtruediv__ = _refuse("/")
        __floordiv__ = __rfloordiv__ = _refuse("//")
        __mod__ = __rmod__ = _refuse("%")
        __pow__ = __rpow__ = _refuse("**")
        __matmul__ = __rmatmul__ = _refuse("@")
        __lt__ = _refuse("<")
        __le__ = _refuse("<=")
        __gt__ = _refuse(">")
        __ge__ = _refuse(">=")
        __abs__ = _refuse("abs()")
        __contains__ = _refuse("in")

    __hash__ = _native.TensorBase.__hash__

    def __eq__(self, other: object) -> Any:
        """Whether both are one object, so that tensors can be keys and be found in lists."""
        if isinstance(other, (int, float, complex)) and not hasattr(type(other), "__array_ufunc__"):
            raise TypeError("Tensor has no operator == for numbers: compare the values, np.asarray(tensor) == ...")
        return True if self is other else NotImplemented

    def __format__(self, spec: str) -> str:
        """A single number takes the formats of numbers."""
        if not spec:
            return str(self)
        if self.element_count == 1 and not self.dtype.shape:
            return format(cast("Any", self).item(), spec)
        raise TypeError(f"Tensor of shape {self.shape}: only a tensor of one number can be formatted as '{spec}'")

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            declared = getattr(type(self), name, None)
            if isinstance(declared, property):
                return declared.__get__(self)  # which raised AttributeError, and does so again
            raise absent(lambda: _missing(self, name), name=name, obj=self)


def _missing(tensor: _native.TensorBase, name: str) -> str:
    text = f"'{type(tensor).__name__}' object has no attribute '{name}'"
    if name in _OTHER_NAMES:
        return f"{text}; use {_OTHER_NAMES[name]}"
    if name in _COMPUTED:
        return f"{text}; compute with a Slang function, or on a copy on the host: np.{name}(tensor)"
    if name.startswith("_"):
        return text
    if name in field_names(tensor):
        return f"{text}; it is a field of the elements: tensor.to_numpy(structured=True)['{name}']"
    close = difflib.get_close_matches(name, dir(type(tensor)), 1)
    return f"{text}; did you mean {close[0]}?" if close else text
