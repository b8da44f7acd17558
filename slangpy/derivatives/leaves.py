"""The differentiable values of a call as vectors of float64, and containers made from such vectors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np

from .._native import DiffPair, TorchPair
from ..base.optional import torch_for
from ..reflection import SlangType
from ..tensor import Tensor

PLAIN, FORWARD, BACKWARD = "plain", "fwds", "bwds"
Vector = np.ndarray
"""One dimension, float64."""


class Leaf(ABC):
    """One differentiable value among a call's arguments: its numbers, their names, and containers for new numbers."""

    values: Vector
    epsilon: float
    """Relative precision of the stored numbers."""

    def __init__(self, path: str, reads: bool, writes: bool, one_gradient: bool = False) -> None:
        self.path, self.reads, self.writes = path, reads, writes
        self.one_gradient = one_gradient
        """What a backward call reads and what it adds to is one container (`DiffTensorView`)."""

    @abstractmethod
    def label(self, index: int) -> str:
        """Where number `index` is inside the value, as it would be written: "[2, 1].uv[0]"; empty for a scalar."""

    @abstractmethod
    def container(self, values: Vector, seed: Vector | None = None, mode: str = PLAIN) -> Any:
        """A new container of the same kind. `seed`: tangents (forward) or, of an output, incoming gradients."""

    @abstractmethod
    def read(self, container: Any) -> Vector:
        """The numbers in a container."""

    @abstractmethod
    def read_gradient(self, container: Any) -> Vector:
        """The gradient that a backward call has left, or the tangent that a forward-mode call has."""

    def rounded(self, values: Vector) -> Vector:
        """The values as the container can hold them."""
        return values


def _float_paths(dtype: np.dtype[Any]) -> Iterator[tuple[str, ...]]:
    if dtype.subdtype is not None:
        dtype = dtype.subdtype[0]
    if dtype.names is None:
        if dtype.kind == "f":
            yield ()
        return
    for name in dtype.names:
        assert dtype.fields is not None
        for rest in _float_paths(dtype.fields[name][0]):
            yield (name, *rest)


def _field(array: np.ndarray, path: tuple[str, ...]) -> np.ndarray:
    for name in path:
        array = array[name]
    return array


def _host(tensor: Tensor) -> np.ndarray:
    return tensor.to_numpy(structured=True) if tensor.dtype.kind == "struct" else tensor.to_numpy()


class TensorLeaf(Leaf):
    """A Tensor view. Its variables are the stored elements, so that broadcast dimensions count once."""

    def __init__(self, path: str, reads: bool, writes: bool, tensor: Tensor, one_gradient: bool = False) -> None:
        super().__init__(path, reads, writes, one_gradient)
        self._device, self._dtype = tensor.device, tensor.dtype
        self._shape, self._strides = tuple(tensor.shape), tuple(tensor.strides)
        linear = np.zeros(self._shape, np.int64)
        for dim, (size, stride) in enumerate(zip(self._shape, self._strides, strict=True)):
            steps = np.arange(size) * stride
            linear += steps.reshape(size, *[1] * (len(self._shape) - dim - 1))
        places, self._first = np.unique(linear, return_index=True)
        self._low = int(places.min(initial=0))
        self._at = places - self._low
        self._elements = self._stored(tensor)
        derivative = self._dtype.derivative
        if derivative is None:
            raise NotImplementedError(
                f"{path or 'an argument'} holds {self._dtype.full_name}, which has no derivative type"
            )
        kind = "float" if one_gradient and self._dtype.scalar == "half" else derivative
        zeros = Tensor.zeros(self._device, (1,), kind)
        self._derivative: SlangType = zeros.dtype
        zero = _host(zeros)
        self._zero = zero[:1]
        known = set(_float_paths(self._elements.dtype))
        self._paths = [p for p in _float_paths(zero.dtype) if p in known]
        self.values = self._numbers(self._elements)
        kinds = [_field(self._elements, p).dtype for p in self._paths] or [np.dtype(np.float32)]
        self._kinds = kinds
        self.epsilon = max(float(np.finfo(kind).eps) for kind in kinds)

    def _stored(self, tensor: Tensor) -> np.ndarray:
        """One row per stored element."""
        host = _host(tensor)
        count = int(np.prod(self._shape, dtype=np.int64))
        return host.reshape(count, *host.shape[len(self._shape) :])[self._first]

    def _numbers(self, elements: np.ndarray) -> Vector:
        parts = [np.asarray(_field(elements, p), np.float64).ravel() for p in self._paths]
        return np.concatenate(parts) if parts else np.zeros(0)

    def label(self, index: int) -> str:
        for path in self._paths:
            part = _field(self._elements, path)
            if index < part.size:
                where = [int(i) for i in np.unravel_index(index, part.shape)]
                at = [int(i) for i in np.unravel_index(int(self._first[where[0]]), self._shape)] if self._shape else []
                if not path:
                    at += where[1:]
                text = f"[{', '.join(map(str, at))}]" if at else ""
                if path:
                    text += "." + ".".join(path) + (f"[{', '.join(map(str, where[1:]))}]" if where[1:] else "")
                return text
            index -= part.size
        raise IndexError(index)

    def rounded(self, values: Vector) -> Vector:
        result, at = np.array(values), 0
        for path, kind in zip(self._paths, self._kinds, strict=True):
            size = _field(self._elements, path).size
            result[at : at + size] = result[at : at + size].astype(kind)
            at += size
        return result

    def _build(self, dtype: SlangType, elements: np.ndarray, values: Vector | None) -> Tensor:
        elements, at = elements.copy(), 0
        for path in self._paths:
            part = _field(elements, path)
            part[...] = 0 if values is None else values[at : at + part.size].reshape(part.shape)
            at += part.size
        span = int(self._at.max(initial=-1)) + 1
        stored = np.zeros((span, *elements.shape[1:]), elements.dtype)
        stored[self._at] = elements
        base = Tensor.from_numpy(self._device, stored, target_slang_dtype=dtype)
        if span == 0:
            return Tensor.zeros(self._device, self._shape, dtype)
        return Tensor(base.storage, dtype, self._shape, self._strides, base.offset - self._low)

    def _gradient(self, values: Vector | None) -> Tensor:
        return self._build(self._derivative, np.repeat(self._zero, len(self._at), axis=0), values)

    def container(self, values: Vector, seed: Vector | None = None, mode: str = PLAIN) -> Any:
        primal = self._build(self._dtype, self._elements, values)
        if mode == PLAIN:
            return primal
        if mode == FORWARD:
            return primal.with_grads(grad_in=(tangent := self._gradient(seed)), grad_out=tangent)
        grad_in = self._gradient(seed) if self.writes else None
        if self.one_gradient and grad_in is not None:
            return primal.with_grads(grad_in=grad_in, grad_out=grad_in)
        return primal.with_grads(grad_in=grad_in, grad_out=self._gradient(None) if self.reads else None)

    def read(self, container: Any) -> Vector:
        return self._numbers(self._stored(container))

    def read_gradient(self, container: Any) -> Vector:
        return self._numbers(self._stored(container.grad))


class TorchLeaf(Leaf):
    """A torch tensor."""

    def __init__(self, path: str, reads: bool, writes: bool, tensor: Any, one_gradient: bool = False) -> None:
        super().__init__(path, reads, writes, one_gradient)
        self._torch = torch = torch_for("gradients of torch tensors")
        self._tensor = tensor.detach()
        self.values = self.read(self._tensor)
        self.epsilon = float(torch.finfo(tensor.dtype).eps)

    def label(self, index: int) -> str:
        where = np.unravel_index(index, tuple(self._tensor.shape)) if self._tensor.dim() else ()
        return f"[{', '.join(str(int(i)) for i in where)}]" if where else ""

    def rounded(self, values: Vector) -> Vector:
        return self.read(self._make(values))

    def _make(self, values: Vector | None) -> Any:
        result = self._torch.zeros_like(self._tensor)
        if values is not None:
            result.copy_(self._torch.from_numpy(np.array(values).reshape(tuple(result.shape))))
        return result

    def container(self, values: Vector, seed: Vector | None = None, mode: str = PLAIN) -> Any:
        primal = self._make(values)
        if mode == PLAIN:
            return primal
        if mode == FORWARD:
            return TorchPair(primal, self._make(seed))
        if self.one_gradient and self.writes:
            return TorchPair(primal, (gradient := self._make(seed)), gradient)
        return TorchPair(primal, self._make(None) if self.reads else None, self._make(seed) if self.writes else None)

    def read(self, container: Any) -> Vector:
        if isinstance(container, TorchPair):
            container = container.primal
        return container.detach().cpu().double().numpy().ravel()

    def read_gradient(self, container: Any) -> Vector:
        return self.read(container.grad)


class HostLeaf(Leaf):
    """A number, vector, matrix, list or dict on the host, passed as a DiffPair."""

    def __init__(self, path: str, reads: bool, writes: bool, value: Any, type_: SlangType) -> None:
        super().__init__(path, reads, writes)
        self._value, self._type = value, type_
        found = list(_host_numbers(value, type_, ""))
        self._labels = [label for label, _ in found]
        self.values = np.array([number for _, number in found], np.float64)
        self._kind = {"double": np.float64, "half": np.float16}.get(type_.scalar, np.float32)
        self.epsilon = float(np.finfo(self._kind).eps)

    def label(self, index: int) -> str:
        return self._labels[index]

    def rounded(self, values: Vector) -> Vector:
        return values.astype(self._kind).astype(np.float64)

    def container(self, values: Vector, seed: Vector | None = None, mode: str = PLAIN) -> Any:
        primal = _host_rebuild(self._value, self._type, iter(values.tolist()))
        numbers = np.zeros_like(values) if seed is None else seed
        return DiffPair(primal, _host_rebuild(self._value, self._type, iter(numbers.tolist()), True))

    def read(self, container: Any) -> Vector:
        return np.array([n for _, n in _host_numbers(container.primal, self._type, "")], np.float64)

    def read_gradient(self, container: Any) -> Vector:
        return np.array([n for _, n in _host_numbers(container.grad, self._type, "")], np.float64)


def _host_numbers(value: Any, type_: SlangType, path: str) -> Iterator[tuple[str, float]]:
    if type_.kind == "scalar":
        yield path, float(value)
    elif type_.kind in ("vector", "matrix"):
        array = np.asarray(value, np.float64)
        for where in np.ndindex(array.shape):
            yield f"{path}[{', '.join(map(str, where))}]", float(array[where])
    elif type_.kind == "array":
        assert type_.element_type is not None
        for i, item in enumerate(value):
            yield from _host_numbers(item, type_.element_type, f"{path}[{i}]")
    else:
        for name, field in _host_fields(value, type_):
            yield from _host_numbers(value[name], field, f"{path}.{name}")


def _host_fields(value: Any, type_: SlangType) -> list[tuple[str, SlangType]]:
    return [(n, f.type) for n, f in type_.fields.items() if n in value and f.type.differentiable]


def _host_rebuild(value: Any, type_: SlangType, numbers: Iterator[float], only: bool = False) -> Any:
    """The value with other numbers; `only`: without what is not differentiable, as gradients are."""
    if type_.kind == "scalar":
        return next(numbers)
    if type_.kind in ("vector", "matrix"):
        shape = np.asarray(value).shape
        array = np.array([next(numbers) for _ in range(int(np.prod(shape)))]).reshape(shape)
        if not hasattr(value, "element_type"):
            return array.tolist()
        return type(value)(*array.tolist()) if type_.kind == "vector" else type(value)(array.astype(np.float32))
    if type_.kind == "array":
        element = type_.element_type
        assert element is not None
        return [_host_rebuild(item, element, numbers, only) for item in value]
    fields = {n: _host_rebuild(value[n], t, numbers, only) for n, t in _host_fields(value, type_)}
    return fields if only else {**value, **fields}


__all__ = ["BACKWARD", "FORWARD", "PLAIN", "HostLeaf", "Leaf", "TensorLeaf", "TorchLeaf", "Vector"]
