"""Kernels as Python sees them: `m.square(input=x, output=y).launchRaw(blockSize=..., gridSize=...)`."""

from __future__ import annotations

import ctypes
import inspect
from functools import cached_property
from typing import Any

from slangpy import _native
from slangpy.pytorch.raw.convert import Packing
from slangpy.pytorch.raw.devices import Programs, device_of
from slangpy.pytorch.raw.place import default_device
from slangpy.pytorch.raw.plain import plain_parameters
from slangpy.pytorch.raw.program import KernelRecord, wide_record
from slangpy.pytorch.raw.tensors import torch_module
from slangpy.pytorch.raw.types import python_name
from slangpy.pytorch.raw.views import NeedsWide

_PARAMETER_BYTES = 32764
_sinks: dict[tuple[str, int], tuple[int, Any]] = {}


def _make_sink(device: tuple[str, int], fresh: bool) -> tuple[int, Any]:
    """16 bytes on a device: new zeros, or those that all calls share."""
    if not fresh and device in _sinks:
        return _sinks[device]
    if device[0] == "cpu":
        made = _host_zeros()
    else:
        torch = torch_module()
        tensor = torch.zeros(4, dtype=torch.float32, device=f"cuda:{device[1]}")
        made = (tensor.data_ptr(), tensor)
    if not fresh:
        _sinks[device] = made
    return made


def _host_zeros() -> tuple[int, Any]:
    """Address of 16 bytes, aligned to as many, and what keeps them."""
    buffer = (ctypes.c_uint64 * 4)()
    return (ctypes.addressof(buffer) + 15) // 16 * 16, buffer


class Kernel(_native.RawKernel):
    """A kernel, or its derivative. Calling it converts and checks the arguments; launching the object it returns runs it.

    Native code takes calls with torch tensors, numbers, tuples and dicts; what it leaves comes to `_convert`.
    """

    def __init__(self, record: KernelRecord, programs: Programs, derivative: str = "", wide: bool = False) -> None:
        self._record = record
        self._programs = programs
        self._derivative = derivative
        self._is_wide = wide
        self._label = f"{record.name}.{derivative}" if derivative else record.name
        parameters = None if record.trouble else plain_parameters(record)
        super().__init__(self._label, parameters, record.size, bool(derivative))
        self._places = {p.name: i for i, p in enumerate(record.parameters)}
        for p in record.parameters:
            self._places.setdefault(python_name(p.name), self._places[p.name])
        self.__name__ = record.name
        self.__qualname__ = self._label
        file, line = record.place
        self.__doc__ = record.signature + (f"\n\n{file}:{line}" if file else "")
        if not derivative and not wide:
            self._fwd = Kernel(record, programs, "fwd")
            self._bwd = Kernel(record, programs, "bwd")

    @property
    def __signature__(self) -> inspect.Signature:
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        return inspect.Signature(
            [
                inspect.Parameter(
                    python_name(p.name), kind, default=inspect.Parameter.empty if p.default is None else p.default
                )
                for p in sorted(self._record.parameters, key=lambda p: p.default is not None)
            ]
        )

    @cached_property
    def fwd(self) -> Kernel:
        """The forward derivative: pairs of tensor and tangent in, tangents of the results out."""
        return self._part("fwd")

    @cached_property
    def bwd(self) -> Kernel:
        """The backward derivative: takes the gradients of the kernel's outputs, adds to those of its inputs."""
        return self._part("bwd")

    @cached_property
    def _wide(self) -> Kernel:
        """The same kernel for tensors with strides of 4 GiB or more."""
        return Kernel(wide_record(self._record), self._programs, self._derivative, True)

    def __getattr__(self, name: str) -> Any:
        if name in ("launchRaw", "launchTotal", "autoLaunch", "launch"):
            call = f"{self._label}({', '.join(p.name + '=...' for p in self._record.parameters)})"
            raise AttributeError(f"{self._label}.{name}: call the kernel with its arguments first: {call}.{name}(...)")
        raise AttributeError(f"kernel '{self.__dict__.get('_label')}' has no attribute '{name}'")

    def _part(self, derivative: str) -> Kernel:
        if self._derivative:
            raise AttributeError(f"{self._label} is a derivative and has no '.{derivative}'")
        self._check_derivative(derivative)
        return self._bwd if derivative == "bwd" else self._fwd

    def _check_derivative(self, derivative: str) -> None:
        record = self._record
        if record.trouble or any(e.derivative == derivative for e in record.emitted):
            return
        what = "backward" if derivative == "bwd" else "forward"
        how = "mark it [Differentiable]" if record.bound else "mark it [Differentiable] and [AutoPyBindCUDA]"
        raise ValueError(f"`{record.name}` has no {what} derivative: {how}")

    def _convert(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _native.Launchable:
        record = self._record
        if record.trouble:
            raise TypeError(f"{self._label} cannot be called: {record.trouble}")
        values = self._match(args, kwargs)
        try:
            return self._pack(values)
        except NeedsWide:
            return self._wide._pack(values)

    def _pack(self, values: list[Any]) -> _native.Launchable:
        record = self._record
        packing = Packing(self._label, self._derivative, _make_sink, record.views)
        out = bytearray(record.size)
        for p, value in zip(record.parameters, values, strict=True):
            if p.type.kind != "empty":
                packing.pack(p.type, value, p.name, out, p.offset)
        device = packing.device or default_device()
        if device[0] != "cpu" and record.size > _PARAMETER_BYTES:
            raise ValueError(f"{self._label}: its parameters take {record.size} bytes; CUDA allows {_PARAMETER_BYTES}")
        return _native.Launchable(self, device, bytes(out), packing.keep)

    def _match(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """One value for each parameter."""
        parameters = self._record.parameters
        listed = ", ".join(p.name for p in parameters) or "none"
        if len(args) > len(parameters):
            raise ValueError(f"{self._label}: takes {len(parameters)} arguments ({listed}), got {len(args)}")
        values: list[Any] = [_MISSING] * len(parameters)
        values[: len(args)] = args
        for name, value in kwargs.items():
            at = self._places.get(name)
            if at is None:
                raise ValueError(f"{self._label}: no parameter '{name}'; its parameters are {listed}")
            if values[at] is not _MISSING:
                raise ValueError(f"{self._label}: '{name}' is given twice")
            values[at] = value
        for at, p in enumerate(parameters):
            if values[at] is _MISSING:
                if p.needed:
                    raise ValueError(f"{self._label}: '{p.name}' is missing; its parameters are {listed}")
                values[at] = p.default
        return values

    def _prepare(self, place: tuple[str, int]) -> tuple[Any, Any]:
        """The open device and the compiled kernel."""
        kernel = self._programs.kernel(place, self._record, self._derivative, self._is_wide)
        return device_of(place), kernel

    def _spare(self, place: tuple[str, int]) -> int:
        """Where gradients lead that a call has none of."""
        return _make_sink(place, False)[0]

    def _stream(self, index: int) -> int:
        """torch's current stream of a CUDA device; without torch, the device's own."""
        torch = torch_module()
        return torch._C._cuda_getCurrentRawStream(index) if torch is not None else 0

    def __copy__(self) -> Kernel:
        return self

    def __deepcopy__(self, memo: Any) -> Kernel:
        return self

    def __repr__(self) -> str:
        return f"<kernel {self._label}: {self._record.signature}>"


_MISSING = object()
