"""What translated host functions call: arithmetic of C++, and the call that they belong to."""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from slangpy.pytorch.raw.types import KernelType

_DTYPES = {"kFloat32": "float32", "kFloat64": "float64", "kFloat16": "float16", "kBFloat16": "bfloat16", "kInt8": "int8",
           "kInt16": "int16", "kInt32": "int32", "kInt64": "int64", "kUInt8": "uint8", "kByte": "uint8", "kBool": "bool",
           "kFloat": "float32", "kDouble": "float64", "kHalf": "float16", "kInt": "int32", "kLong": "int64", "kShort": "int16",
           "kChar": "int8", "kUInt16": "uint16", "kUInt32": "uint32", "kUInt64": "uint64"}  # fmt: skip
_FORMATS = {"float": "f", "double": "d", "half": "e", "int32_t": "i", "uint32_t": "I", "int64_t": "q", "uint64_t": "Q",
            "int16_t": "h", "uint16_t": "H", "int8_t": "b", "uint8_t": "B"}  # fmt: skip


def wrap(value: int, bits: int) -> int:
    """A whole number as a signed one of so many bits."""
    half = 1 << bits - 1
    return ((value + half) & ((1 << bits) - 1)) - half


def f32(value: float) -> float:
    return ctypes.c_float(value).value


def f16(value: float) -> float:
    try:
        return struct.unpack("e", struct.pack("e", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def fdiv(a: float, b: float) -> float:
    if b != 0:
        return a / b
    return math.nan if a == 0 or a != a else math.copysign(math.inf, a) * math.copysign(1.0, b)


def idiv(a: int, b: int) -> int:
    """Towards zero."""
    if b == 0:
        raise ZeroDivisionError("a host function divides a whole number by zero")
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def irem(a: int, b: int) -> int:
    return a - idiv(a, b) * b


def copy(value: Any) -> Any:
    return [copy(item) for item in value] if type(value) is list else value


def each(operation: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    """Over the elements of two vectors or matrices."""
    if type(a) is list:
        return [each(operation, x, y) for x, y in zip(a, b, strict=True)]
    return operation(a, b)


def make(convert: Callable[[Any], Any], parts: tuple[Any, ...], *sizes: int) -> Any:
    """A vector or matrix from its elements, from parts of it, or from one number for all."""
    flat = _flat(parts) if any(type(part) is list for part in parts) else parts
    count = math.prod(sizes)
    flat = [convert(v) for v in (flat * count if len(flat) == 1 else flat)]
    if len(flat) != count:
        raise ValueError(f"{len(flat)} numbers for {count} elements")
    if len(sizes) == 1:
        return flat
    return [flat[i : i + sizes[1]] for i in range(0, count, sizes[1])]


def _flat(value: Any) -> list[Any]:
    return [x for item in value for x in _flat(item)] if isinstance(value, (list, tuple)) else [value]


def select(condition: Any, yes: Any, no: Any) -> Any:
    if type(condition) is list:
        return [y if c else n for c, y, n in zip(condition, yes, no, strict=True)]
    return yes if condition else no


def bits(value: Any, given: str, wanted: str) -> Any:
    return struct.unpack(_FORMATS[wanted], struct.pack(_FORMATS[given], value))[0]


def _safe(function: Callable[..., float]) -> Callable[..., float]:
    """A function of `math` that gives what C's gives where Python's raises."""

    def call(*values: float) -> float:
        try:
            return function(*values)
        except ValueError:
            return -math.inf if function in (math.log, math.log2, math.log10) and values[0] == 0 else math.nan
        except OverflowError:
            return math.inf

    return call


def _round(value: float) -> float:
    return math.copysign(math.floor(abs(value) + 0.5), value) if math.isfinite(value) else value


NAMES: dict[str, Any] = {
    "wrap": wrap, "f32": f32, "f16": f16, "fdiv": fdiv, "idiv": idiv, "irem": irem, "copy": copy, "each": each, "make": make,
    "select": select, "INFINITY": math.inf, "NAN": math.nan,
    "bits": bits, "fmod": _safe(math.fmod), "math_fmod": _safe(math.fmod), "math_abs": abs, "math_min": min,
    "math_max": max, "math_sign": lambda v: (v > 0) - (v < 0), "math_frac": lambda v: v - math.floor(v),
    "math_rsqrt": lambda v: 1 / math.sqrt(v) if v > 0 else (math.inf if v == 0 else math.nan), "math_round": _round,
    "math_exp2": _safe(lambda v: 2.0**v), "math_fma": lambda a, b, c: a * b + c,
    "math_isnan": math.isnan, "math_isinf": math.isinf, "math_isfinite": math.isfinite,
    "math_countbits": lambda v: bin(v & 0xFFFFFFFFFFFFFFFF if v >= 0 else v & 0xFFFFFFFF).count("1"),
    **{f"math_{name}": _safe(getattr(math, name)) for name in (
        "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "exp", "log", "log2",
        "log10", "sqrt", "pow", "atan2", "floor", "ceil", "trunc")},
}  # fmt: skip
"""The globals of translated functions."""


class View:
    """A tensor that is passed to a kernel, with its name in the Slang file."""

    __slots__ = ("name", "tensor")

    def __init__(self, tensor: Any, name: str) -> None:
        self.tensor = tensor
        self.name = name


class HostCall:
    """One call of a host function: its module and device."""

    def __init__(self, label: str, kernels: Callable[[str], Any], torch: Any, device: Any) -> None:
        self._label = label
        self._kernels = kernels
        self._torch = torch
        self._device = device

    def empty(self, sizes: tuple[int, ...], kind: str) -> Any:
        return self._torch.empty(sizes, dtype=getattr(self._torch, _DTYPES[kind]), device=self._device)

    def empty_like(self, other: Any, kind: str) -> Any:
        return self._torch.empty_like(other, dtype=getattr(self._torch, _DTYPES[kind]), device=self._device,
                                      memory_format=self._torch.contiguous_format)  # fmt: skip

    def fill(self, tensor: Any, value: Any) -> Any:
        if type(value) is list:
            return tensor.copy_(self._torch.tensor(value, dtype=tensor.dtype, device=tensor.device))
        return tensor.fill_(value)

    def dims(self, tensor: Any) -> int:
        return len(tensor.shape)

    def data_ptr(self, tensor: Any) -> int:
        return tensor.data_ptr()

    def size(self, tensor: Any, axis: int) -> int:
        return self._axis(tensor, axis, tensor.shape)

    def stride(self, tensor: Any, axis: int) -> int:
        return self._axis(tensor, axis, tensor.stride())

    def _axis(self, tensor: Any, axis: int, values: Any) -> int:
        if axis >= len(values):
            raise IndexError(f"{self._label}: dimension {axis} of a tensor of shape {tuple(tensor.shape)}")
        return values[axis]

    def view(self, tensor: Any, name: str) -> View:
        return View(tensor, name)

    def launch(self, name: str, grid: list[int], block: list[int], arguments: list[Any]) -> None:
        kernel = self._kernels(name)
        given = iter(arguments)
        values = [None if p.type.kind == "empty" else plain(p.type, next(given)) for p in kernel._record.parameters]
        kernel(*values).launchRaw(block, grid)

    def synchronize(self) -> None:
        if self._device.type == "cuda":
            self._torch.cuda.current_stream(self._device).synchronize()


class ArrayCall(HostCall):
    """The same in programs without torch: tensors are NumPy arrays, on the CPU."""

    def empty(self, sizes: tuple[int, ...], kind: str) -> Any:
        return np.empty(sizes, self._dtype(kind))

    def empty_like(self, other: Any, kind: str) -> Any:
        return np.empty(other.shape, self._dtype(kind))

    def _dtype(self, kind: str) -> Any:
        if _DTYPES[kind] == "bfloat16":
            raise TypeError(f"{self._label}: NumPy has no bfloat16; import torch")
        return np.dtype(_DTYPES[kind])

    def fill(self, tensor: Any, value: Any) -> Any:
        tensor[...] = value
        return tensor

    def data_ptr(self, tensor: Any) -> int:
        return tensor.ctypes.data

    def stride(self, tensor: Any, axis: int) -> int:
        return self._axis(tensor, axis, [step // tensor.itemsize for step in tensor.strides])

    def synchronize(self) -> None:
        pass


def plain(type_: KernelType, value: Any) -> Any:
    """A value of a host function as an argument of a kernel."""
    kind = type_.kind
    if isinstance(value, View):
        return value.tensor
    if kind in ("vector", "matrix"):
        flat = _flat(value)
        if kind == "vector":
            return flat
        return [flat[i : i + type_.columns] for i in range(0, len(flat), type_.columns)]
    if kind == "array":
        items = value[0] if len(value) == 1 and type_.count != 1 else value
        return [plain(type_.element, item) for item in items]  # type: ignore[arg-type]
    if kind == "diff_view":
        primal, gradient = value[0], value[1]
        while type(gradient) is list and len(gradient) == 1:
            gradient = gradient[0]
        given = gradient.tensor if isinstance(gradient, View) else None
        return (primal.tensor, given) if given is not None else (primal.tensor,)
    if kind in ("struct", "tuple", "optional"):
        items = iter(value)
        return tuple(None if inner.kind == "empty" else plain(inner, next(items)) for _, inner, _ in type_.fields)
    return value
