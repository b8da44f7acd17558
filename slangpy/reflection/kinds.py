"""Classes of Slang types by kind: `isinstance(type_, VectorType)`, and the attributes that only some kinds have."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NoReturn

from .._native import ScalarType as Scalar, Shape, TextureUsage

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


def _array_shape(type_: Any) -> Shape:
    sizes: list[int] = []
    while type_ is not None and type_.kind == "array":
        sizes.append(type_.shape[0])
        type_ = type_.element_type
    return Shape(sizes)


def _writable(type_: Any) -> bool:
    return type_.full_name.startswith(("RW", "Append", "Consume", "RasterizerOrdered"))


def _resource_shape(type_: Any) -> Any:
    return type_.type_reflection.resource_shape


def _resource_access(type_: Any) -> Any:
    return type_.type_reflection.resource_access


def _texture_dims(type_: Any) -> int:
    """Dimensions of the texels: layers count as one, so do the faces of a cube."""
    name = _resource_shape(type_).name
    texels = {"1d": 1, "2d": 2, "3d": 3, "cube": 3, "buffer": 1}[name.split("_")[1]]
    return texels + (1 if name.endswith("_array") else 0)


def resource_dims(type_: Any) -> int:
    """Dimensions of a texture with those of its element; 0 for other resources."""
    if kind_of(type_) != "TextureType":
        return 0
    element = type_.element_type
    return _texture_dims(type_) + (element.num_dims if element is not None else 0)


_SCALAR_NAMES = {
    "bool": "bool", "int8_t": "int8", "int16_t": "int16", "int": "int32", "int64_t": "int64", "uint8_t": "uint8",
    "uint16_t": "uint16", "uint": "uint32", "uint64_t": "uint64", "half": "float16", "float": "float32",
    "double": "float64", "BFloat16": "bfloat16",
}  # fmt: skip


def _scalar_type(type_: Any) -> Any:
    """The `TypeReflection.ScalarType` of scalars, vectors and matrices; that of an address for pointers."""
    if kind_of(type_) == "PointerType":
        return Scalar.uint64
    return Scalar[_SCALAR_NAMES.get(type_.scalar or type_.full_name, "none")]


def declared_name(full_name: str) -> str:
    """A type's name without scope and generic arguments: `ns.Outer<Pair<int>>.Inner` -> `Inner`."""
    if full_name.endswith("]"):
        return "Array"
    parts, depth = [], 0
    for character in full_name:
        depth -= character == ">"
        if depth == 0 and character not in "<>":
            parts.append(character)
        depth += character == "<"
    return "".join(parts).rpartition(".")[2]


def generic_arguments(full_name: str) -> list[str] | None:
    """What stands between the outermost <> at the end of a name; None where there is nothing of the kind."""
    if not full_name.endswith(">"):
        return None
    depth, end, parts = 0, len(full_name) - 1, []
    for at in range(len(full_name) - 1, -1, -1):
        letter = full_name[at]
        depth += (letter == ">") - (letter == "<")
        if depth == 0 or (depth == 1 and letter == ","):
            parts.append(full_name[at + 1 : end].strip())
            end = at
        if depth == 0:
            break
    return parts[::-1]


_ATTRIBUTES: dict[tuple[str, str], Callable[[Any], Any]] = {
    ("ScalarType", "slang_scalar_type"): _scalar_type,
    ("VectorType", "num_elements"): lambda t: t.shape[0],
    ("VectorType", "slang_scalar_type"): _scalar_type,
    ("MatrixType", "rows"): lambda t: t.shape[0],
    ("MatrixType", "cols"): lambda t: t.shape[1],
    ("MatrixType", "slang_scalar_type"): _scalar_type,
    ("ArrayType", "num_elements"): lambda t: max(t.shape[0], 0),
    ("ArrayType", "array_shape"): _array_shape,
    ("ArrayType", "inner_element_type"): _inner,
    ("PointerType", "target_type"): lambda t: t.element_type,
    ("PointerType", "slang_scalar_type"): _scalar_type,
    ("StructuredBufferType", "resource_access"): _resource_access,
    ("ByteAddressBufferType", "resource_access"): _resource_access,
    ("StructuredBufferType", "writable"): _writable,
    ("ByteAddressBufferType", "writable"): _writable,
    ("TextureType", "resource_shape"): _resource_shape,
    ("TextureType", "resource_access"): _resource_access,
    ("TextureType", "texture_dims"): _texture_dims,
    ("TextureType", "usage"): lambda t: TextureUsage.unordered_access if _writable(t) else TextureUsage.shader_resource,
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


class TypeBase:
    """What the classes below ask a type for: its class stands above them."""


class _Kind(type):
    """Types are of one Python class; what kind they are is asked of the type itself."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, TypeBase) and kind_of(instance) == cls.__name__

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
    """Has `num_elements` (0 where it has no size), `array_shape`, `inner_element_type`."""


class StructType(metaclass=_Kind):
    """Has `fields`."""


class InterfaceType(metaclass=_Kind):
    """An interface."""


class PointerType(metaclass=_Kind):
    """Has `target_type`, `slang_scalar_type`."""


class StructuredBufferType(metaclass=_Kind):
    """Has `writable`, `resource_access`."""


class ByteAddressBufferType(metaclass=_Kind):
    """Has `writable`, `resource_access`."""


class TextureType(metaclass=_Kind):
    """Has `resource_shape`, `resource_access`, `texture_dims`, `usage`."""


class SamplerStateType(metaclass=_Kind):
    """A sampler."""


class TensorType(metaclass=_Kind):
    """Has `dims`, `access`, `tensor_kind`."""


class DifferentialPairType(metaclass=_Kind):
    """A value with its derivative."""


class UnknownType(metaclass=_Kind):
    """Everything else."""
