"""What calls take, for annotations: a name for each family of Slang's types. Stubs of modules are written in them.

Each parameter also takes one value for each invocation, in an array, a Tensor, a list or the like: `Spread`. Instances of
classes that were registered with slangpy are no part of these types.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Protocol, TypeAlias

import numpy as np

from ._native import (
    AccelerationStructure,
    Buffer,
    DescriptorHandle,
    DiffPair,
    Generator,
    Sampler,
    Texture,
    TextureView,
    ValueRef,
)
from .packed import PackedArg
from .tensor import Tensor


class HasDLPack(Protocol):
    """Arrays of other packages: torch, JAX, CuPy."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...


class HasArray(Protocol):
    """What NumPy makes an array of."""

    def __array__(self, *args: Any, **kwargs: Any) -> Any: ...


class HasThis(Protocol):
    """What stands for the value that its method gives."""

    def get_this(self) -> Any: ...


class DataclassInstance(Protocol):
    """An instance of a dataclass."""

    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]


Array: TypeAlias = Tensor | np.ndarray[Any, Any] | HasDLPack | HasArray
"""Memory of any number of dimensions that a call reads, and writes where it can be written."""
Output: TypeAlias = Array | ValueRef | DiffPair | Buffer | Texture | TextureView | HasThis | Mapping[str, Any] | list[Any]
"""For `out` and `inout` parameters, and `_result`: what receives values. Mappings have an output for each field."""
ResultMemory: TypeAlias = Array | DiffPair | Buffer | Texture | TextureView | Mapping[str, Any]
"""For `_result`: what is filled and returned."""
ResultValue: TypeAlias = Output | Literal["numpy", "tensor", "texture"] | type
"""For `_result`: memory, or the name or class of what to make."""
Holder: TypeAlias = ValueRef | DiffPair | PackedArg | HasThis
"""What holds a value."""
Spread: TypeAlias = Array | list[Any] | tuple[Any, ...] | range | Generator | Holder | Texture | TextureView
"""A value for each invocation, or what holds values."""
Fields: TypeAlias = Mapping[str, Any]
"""The fields of a struct, or x, y, z and w of a vector, each by its own rules."""

BoolValue: TypeAlias = bool | int | np.bool_ | np.integer[Any] | Spread
"""For bool."""
IntValue: TypeAlias = int | np.integer[Any] | np.bool_ | enum.Enum | Spread
"""For integers of any width. Floats without a fraction are taken, too, but not by this type."""
FloatValue: TypeAlias = float | np.floating[Any] | np.integer[Any] | np.bool_ | enum.Enum | Spread
"""For half, float and double."""
BoolVector: TypeAlias = BoolValue | Fields
"""For vectors of bool; a number is widened."""
IntVector: TypeAlias = IntValue | Fields
"""For vectors of integers; a number is widened."""
FloatVector: TypeAlias = FloatValue | Fields
"""For vectors of floats; a number is widened."""
ArrayValue: TypeAlias = Spread
"""For matrices and arrays."""
StructValue: TypeAlias = Fields | DataclassInstance | Spread
"""For structs: a dict of the fields, or an instance of a dataclass."""
EnumValue: TypeAlias = int | str | enum.Enum | Spread
"""For enums: a number or a name."""
TensorValue: TypeAlias = Spread
"""For Tensor<T, N> and its kind."""
BufferValue: TypeAlias = Buffer | Spread
"""For StructuredBuffer<T> and ByteAddressBuffer."""
TextureValue: TypeAlias = Texture | TextureView | list[Any] | tuple[Any, ...] | HasThis
"""For textures."""
SamplerValue: TypeAlias = Sampler | list[Any] | tuple[Any, ...] | HasThis
"""For samplers."""
StructureValue: TypeAlias = AccelerationStructure | HasThis
"""For acceleration structures."""
HandleValue: TypeAlias = DescriptorHandle | list[Any] | HasThis
"""For DescriptorHandle<T>."""
PointerValue: TypeAlias = int | Buffer | Spread
"""For pointers: an address, or what has one."""
AnyValue: TypeAlias = FloatValue | Fields | DataclassInstance | Buffer | Sampler | AccelerationStructure | DescriptorHandle
"""For generic types and interfaces."""
