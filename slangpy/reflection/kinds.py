"""Classes of Slang types by kind: `isinstance(type_, VectorType)`, and the attributes that only some kinds have."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NoReturn

_TENSOR = re.compile(r"^(I?)(RW|W|Atomic|)(Diff|Primal|)Tensor<(.*), ?(\d+)>$")


def kind_of(type_: Any) -> str:
    """Name of the class below that a type belongs to."""
    name = type_.full_name
    base = name.split("<")[0]
    if name == "void":
        return "VoidType"
    if _TENSOR.match(name):
        return "TensorType"
    if base == "DifferentialPair":
        return "DifferentialPairType"
    if base.endswith("StructuredBuffer"):
        return "StructuredBufferType"
    if base.endswith("ByteAddressBuffer"):
        return "ByteAddressBufferType"
    kinds = {
        "scalar": "ScalarType", "vector": "VectorType", "matrix": "MatrixType", "array": "ArrayType",
        "struct": "StructType", "interface": "InterfaceType", "pointer": "PointerType",
        "sampler_state": "SamplerStateType",
    }  # fmt: skip
    if type_.kind == "resource" and "Texture" in base:
        return "TextureType"
    return kinds.get(type_.kind, "UnknownType")


def _tensor(type_: Any) -> tuple[int, str, str]:
    """Dimensions, access and kind of a tensor type."""
    found = _TENSOR.match(type_.full_name)
    assert found is not None
    interface, access, kind, _, rank = found.groups()
    name = "atomic" if access == "Atomic" else {"": "tensor", "Diff": "difftensor", "Primal": "primal"}[kind]
    access = {"": "read", "W": "write", "RW": "read_write", "Atomic": "read_write"}[access]
    return int(rank), access, "interface" if interface else name


def _inner(type_: Any) -> Any:
    """The element of all nested arrays."""
    while type_ is not None and type_.kind == "array":
        type_ = type_.element_type
    return type_


def _array_shape(type_: Any) -> tuple[int, ...]:
    sizes: list[int] = []
    while type_ is not None and type_.kind == "array":
        sizes.append(type_.shape[0])
        type_ = type_.element_type
    return tuple(sizes)


def _writable(type_: Any) -> bool:
    return type_.full_name.startswith(("RW", "Append", "Consume", "RasterizerOrdered"))


def _resource_shape(type_: Any) -> Any:
    return type_.type_reflection.resource_shape


_ATTRIBUTES: dict[tuple[str, str], Callable[[Any], Any]] = {
    ("ScalarType", "slang_scalar_type"): lambda t: t.full_name,
    ("VectorType", "num_elements"): lambda t: t.shape[0],
    ("VectorType", "slang_scalar_type"): lambda t: t.scalar,
    ("MatrixType", "rows"): lambda t: t.shape[0],
    ("MatrixType", "cols"): lambda t: t.shape[1],
    ("MatrixType", "slang_scalar_type"): lambda t: t.scalar,
    ("ArrayType", "num_elements"): lambda t: t.shape[0],
    ("ArrayType", "array_shape"): _array_shape,
    ("ArrayType", "inner_element_type"): _inner,
    ("PointerType", "target_type"): lambda t: t.element_type,
    ("StructuredBufferType", "writable"): _writable,
    ("ByteAddressBufferType", "writable"): _writable,
    ("TextureType", "resource_shape"): _resource_shape,
    ("TextureType", "usage"): lambda t: "unordered_access" if _writable(t) else "shader_resource",
    ("TensorType", "dims"): lambda t: _tensor(t)[0],
    ("TensorType", "access"): lambda t: _tensor(t)[1],
    ("TensorType", "tensor_kind"): lambda t: _tensor(t)[2],
}
_NAMES = {name for _, name in _ATTRIBUTES}


def attribute(type_: Any, name: str) -> Any:
    """An attribute that types of one kind have; AttributeError for others."""
    found = _ATTRIBUTES.get((kind_of(type_), name)) if name in _NAMES else None
    if found is None:
        raise AttributeError(f"SlangType {type_.full_name!r} has no attribute {name!r}")
    return found(type_)


class _Kind(type):
    """Types are of one Python class; what kind they are is asked of the type itself."""

    def __instancecheck__(cls, instance: Any) -> bool:
        from . import SlangType

        return isinstance(instance, SlangType) and kind_of(instance) == cls.__name__

    def __call__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        del args, kwargs
        raise TypeError(f"{cls.__name__} is not made by hand; find types with module.layout.find_type_by_name(name)")


class VoidType(metaclass=_Kind):
    """No value."""


class ScalarType(metaclass=_Kind):
    """Has `slang_scalar_type`."""


class VectorType(metaclass=_Kind):
    """Has `num_elements`, `slang_scalar_type`."""


class MatrixType(metaclass=_Kind):
    """Has `rows`, `cols`, `slang_scalar_type`."""


class ArrayType(metaclass=_Kind):
    """Has `num_elements`, `array_shape`, `inner_element_type`."""


class StructType(metaclass=_Kind):
    """Has `fields`."""


class InterfaceType(metaclass=_Kind):
    """An interface."""


class PointerType(metaclass=_Kind):
    """Has `target_type`."""


class StructuredBufferType(metaclass=_Kind):
    """Has `writable`."""


class ByteAddressBufferType(metaclass=_Kind):
    """Has `writable`."""


class TextureType(metaclass=_Kind):
    """Has `resource_shape`, `usage`."""


class SamplerStateType(metaclass=_Kind):
    """A sampler."""


class TensorType(metaclass=_Kind):
    """Has `dims`, `access`, `tensor_kind`."""


class DifferentialPairType(metaclass=_Kind):
    """A value with its derivative."""


class UnknownType(metaclass=_Kind):
    """Everything else."""
